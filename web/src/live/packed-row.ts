import type { TableRowView } from '../contract.ts'

/** `id` is unique in its list; `rowId` on its cluster. */
export type ShownRow = TableRowView & { readonly cluster: string; readonly rowId: string }

/**
 * A row as one text: a hundred thousand rows are some million objects, which the garbage collector visits again and again. What its
 * fields are called is left out, as it is the same of nearly all.
 */
export type PackedRow = string & { readonly is?: 'packed' }

/** The names of a row's fields, and of its values. */
type Names = readonly [fields: readonly string[], values: readonly string[]]

const known: Names[] = []
/** Some for each kind that somebody looks at. A row with others is packed with its names. */
const mostKnown = 256

export function pack(row: ShownRow): PackedRow {
  const at = namesOf(row)
  if (at === undefined) return JSON.stringify(row)
  return JSON.stringify([at, Object.values({ ...row, values: Object.values(row.values) })])
}

function namesOf(row: ShownRow): number | undefined {
  const [fields, values] = [Object.keys(row), Object.keys(row.values)]
  const at = known.findIndex((names) => isSame(names[0], fields) && isSame(names[1], values))
  if (at >= 0) return at
  return known.length < mostKnown ? known.push([fields, values]) - 1 : undefined
}

const isSame = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === others.length && some.every((one, at) => one === others[at])

export function unpack(text: PackedRow): ShownRow {
  const packed: unknown = JSON.parse(text)
  if (!Array.isArray(packed)) return packed as ShownRow // packed above
  const [at, fields] = packed as [number, readonly unknown[]]
  const [names, valueNames] = known[at] ?? [[], []]
  const named = (of: readonly string[], some: readonly unknown[]) =>
    Object.fromEntries(of.map((name, place) => [name, some[place]]))
  const row = named(names, fields)
  return { ...row, values: named(valueNames, row.values as readonly unknown[]) } as ShownRow
}

/** Rows that were looked at last stay unpacked: as long as one says the same, it is the same, and is not drawn anew. */
const looked = new Map<PackedRow, ShownRow>()
/** As many as the stream tells, should they have come from anywhere, and those in view. */
const mostLooked = 2048

export function lookedAt(text: PackedRow): ShownRow {
  const before = looked.get(text)
  if (before) return before
  const row = unpack(text)
  looked.set(text, row)
  const [oldest] = looked.keys()
  if (looked.size > mostLooked && oldest !== undefined) looked.delete(oldest)
  return row
}
