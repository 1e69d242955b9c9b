import { parse } from 'yaml'
import { compareRows, type Row } from '#extract'
import { SinkError } from '../sink.ts'
import { formatOf } from './layout.ts'

/**
 * Rows of a snapshot that may lack some, with those that stood in the sink before and that it says nothing of: what is missing
 * need not be gone.
 */
export function withFormer(rows: Iterable<Row>, former: Iterable<Row>): readonly Row[] {
  const all = new Map<string, Row>()
  for (const row of former) all.set(keyOf(row), row)
  for (const row of rows) all.set(keyOf(row), row)
  return [...all.values()].sort(compareRows)
}

const keyOf = ({ targetNamespace, targetName, namespace, name, uid }: Row): string =>
  JSON.stringify([targetNamespace, targetName, namespace, name, uid])

/** The rows of a document that stands in a sink. @throws SinkError terminal, where it is none */
export function rowsOfDocument(path: string, text: string): readonly Row[] {
  const rows = listOf(path, text)
  if (Array.isArray(rows) && rows.every(isRow)) return rows
  throw new SinkError(
    'terminal',
    `${path} in the sink is no document of rows any more, and this snapshot may lack some of them: mend what is missing in the inventory, or delete that file`,
  )
}

function listOf(path: string, text: string): unknown {
  try {
    switch (formatOf(path, undefined, 'json')) {
      case 'yaml':
        // Whoever may write to the sink may have written it: each key would be compared with every other one.
        return parse(text, { uniqueKeys: false })
      case 'ndjson':
        return text
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as unknown)
      case 'json': {
        const body: unknown = JSON.parse(text)
        return Array.isArray(body) ? body : (body as { readonly items?: unknown } | null)?.items
      }
    }
  } catch {
    return undefined
  }
}

function isRow(value: unknown): value is Row {
  if (typeof value !== 'object' || value === null) return false
  const row = value as Readonly<Record<string, unknown>>
  const texts = ['targetNamespace', 'targetName', 'namespace', 'name', 'version', 'kind', 'uid']
  return (
    texts.every((key) => typeof row[key] === 'string') && typeof row.attributes === 'object' && row.attributes !== null
  )
}
