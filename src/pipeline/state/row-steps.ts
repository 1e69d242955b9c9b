import { type Chunk, chunkChanges, type JsonValue, type Labels, Table, tableRowId } from '#model'

/*
 * A step from one chunk to the next, as text: rows that come in place of their older selves or are new, and ids of those that go.
 */

/** namespace, name, labels, values in the order of the fields */
type StepRow = readonly [string, string, Labels, readonly JsonValue[]]

interface Step {
  readonly put: readonly StepRow[]
  readonly gone?: readonly string[]
}

/** As text, and how many rows it names. */
interface StepText {
  readonly text: string
  readonly rows: number
}

/** What leads from `before` to `after`, chunks of the same fields. @returns undefined where it names more than `most` rows */
export function stepOf(before: Chunk, after: Chunk, most: number): StepText | undefined {
  const { put, removed } = chunkChanges(before, after, most)
  const rows = put.length + removed.length
  if (rows > most) return undefined
  const gone = removed.map((row) => tableRowId(before.keys.namespaces.at(row), before.keys.names.at(row) as string))
  return { text: textOf(after, put, gone), rows }
}

/** The same of one row that is known to be all that was patched; undefined where it was more. */
export function stepOfOne(before: Table, after: Table): StepText | undefined {
  const patch = before.patchTo(after)
  if (!patch || patch.put.size + patch.removed.length !== 1) return undefined
  const [chunk] = patch.put.chunks
  return { text: chunk ? textOf(chunk, [0], []) : JSON.stringify({ put: [], gone: patch.removed }), rows: 1 }
}

function textOf({ keys, labels, columns }: Chunk, rows: readonly number[], gone: readonly string[]): string {
  const put = rows.map((row): StepRow => {
    const values = columns.map((column) => column.at(row))
    return [keys.namespaces.at(row), keys.names.at(row) as string, labels.at(row), values]
  })
  const step: Step = gone.length > 0 ? { put, gone } : { put }
  return JSON.stringify(step)
}

/** The chunk after what `stepOf` told, and how many rows that names. @returns undefined where the text is nothing of the sort */
export function chunkAfter(
  fields: readonly string[],
  chunk: Chunk,
  text: string,
): { readonly chunk: Chunk; readonly rows: number } | undefined {
  const step = parsed(text)
  if (!step || !Array.isArray(step.put) || !step.put.every(Array.isArray)) return undefined
  const put = Table.from({
    fields,
    namespaces: step.put.map(([namespace]) => namespace),
    names: step.put.map(([, name]) => name),
    labels: step.put.map(([, , labels]) => labels),
    values: fields.map((_, at) => step.put.map(([, , , values]) => values?.[at] as JsonValue)),
  })
  const before = Table.ofChunks(fields, [chunk])
  if (!put || !before) return undefined
  const { put: given, gone = [] } = step
  const { chunks } = before.patch(put, gone)
  return chunks[0] && chunks.length === 1 ? { chunk: chunks[0], rows: given.length + gone.length } : undefined
}

function parsed(text: string): Step | null {
  try {
    return JSON.parse(text) as Step | null
  } catch {
    return null
  }
}
