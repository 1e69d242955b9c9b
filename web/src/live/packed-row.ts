import type { TableRowView } from '../contract.ts'
import { groupOf } from '../model/recount.ts'

/** `id` is unique in its list; `rowId` on its cluster. */
export type ShownRow = TableRowView & { readonly cluster: string; readonly rowId: string }

/**
 * A row as one text: a hundred thousand rows are some million objects, which the garbage collector visits again and again. What its
 * fields are called is left out, as it is the same of nearly all.
 */
export type PackedRow = string & { readonly is?: 'packed' }

/** The names of a row's fields, and of its values. */
type Names = readonly [fields: readonly string[], values: readonly string[]]

/** By what rows call them that were packed here, or in a worker: each calls its own otherwise. */
const known = new Map<string, Names>()
const mark = 'document' in globalThis ? 'page' : 'worker'
/** Some for each kind that somebody looks at. A row with others is packed with its names. */
const mostKnown = 256

export function pack(row: ShownRow): PackedRow {
  const key = namesOf(row)
  if (key === undefined) return JSON.stringify(row)
  return JSON.stringify([key, Object.values({ ...row, values: Object.values(row.values) })])
}

function namesOf(row: ShownRow): string | undefined {
  const [fields, values] = [Object.keys(row), Object.keys(row.values)]
  for (const [key, names] of known) if (isSame(names[0], fields) && isSame(names[1], values)) return key
  if (known.size >= mostKnown) return undefined
  const key = `${mark}${known.size}`
  known.set(key, [fields, values])
  return key
}

/** What somebody needs, who was not there as they were packed, to unpack rows. */
export const namesOfPacked = (): ReadonlyMap<string, Names> => known

export function learnNames(names: ReadonlyMap<string, Names>): void {
  for (const [key, of] of names) known.set(key, of)
}

function isSame<T>(some: ArrayLike<T>, others: ArrayLike<T>): boolean {
  if (some.length !== others.length) return false
  for (let at = 0; at < some.length; at++) if (some[at] !== others[at]) return false
  return true
}

export function unpack(text: PackedRow): ShownRow {
  const packed: unknown = JSON.parse(text)
  if (!Array.isArray(packed)) return packed as ShownRow // packed above
  const [key, fields] = packed as [string, readonly unknown[]]
  const [names, valueNames] = known.get(key) ?? [[], []]
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

/** Rows that were packed as they came, in their order: as bytes, which the garbage collector does not look into, and which a worker gives away. */
export interface PackedRows {
  readonly length: number
  /** as JSON: `idsOf` */
  readonly ids: Uint8Array<ArrayBuffer>
  readonly texts: Texts
  /** what each of them is counted as, by column */
  readonly groups: Readonly<Record<string, Grouped>>
}

/** Texts in UTF-8, one after the other: where each ends. */
interface Texts {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly ends: Uint32Array<ArrayBuffer>
}

/** `names[of[nth]]` is what the nth is counted as. */
interface Grouped {
  readonly names: readonly string[]
  readonly of: Uint32Array<ArrayBuffer>
}

/** @param counted columns by whose values they are counted */
export const packRows = (rows: readonly ShownRow[], counted: readonly string[]): PackedRows => ({
  length: rows.length,
  ids: encoder.encode(JSON.stringify(rows.map(({ id }) => id))),
  texts: textsOf(rows.map(pack)),
  groups: Object.fromEntries(counted.map((column) => [column, groupedBy(column, rows)])),
})

/** What a worker gives away with them. */
export const buffersOf = ({ ids, texts, groups }: PackedRows): ArrayBuffer[] =>
  [ids, texts.bytes, texts.ends, ...Object.values(groups).map(({ of }) => of)].map(({ buffer }) => buffer)

const encoder = new TextEncoder()
const decoder = new TextDecoder()
/** A character of a text is at most so many bytes. */
const mostBytes = 3

function textsOf(all: readonly string[]): Texts {
  const room = new Uint8Array(mostBytes * all.reduce((length, text) => length + text.length, 0))
  let end = 0
  const ends = Uint32Array.from(all, (text) => {
    end += encoder.encodeInto(text, room.subarray(end)).written
    return end
  })
  return { bytes: room.slice(0, end), ends }
}

export const textAt = ({ bytes, ends }: Texts, nth: number): string =>
  decoder.decode(bytes.subarray(ends[nth - 1] ?? 0, ends[nth]))

/** Read as JSON they are strings of their own; each of those that a decoder makes is one more thing outside that the collector has to visit. */
export const idsOf = ({ ids }: PackedRows): readonly string[] => JSON.parse(decoder.decode(ids)) as string[] // as they were packed

export const haveSameIds = (some: PackedRows, others: PackedRows): boolean =>
  some.length === others.length && isSame(some.ids, others.ids)

function groupedBy(column: string, rows: readonly ShownRow[]): Grouped {
  const places = new Map<string, number>()
  const of = Uint32Array.from(rows, (row) => {
    const group = groupOf(column, row)
    const place = places.get(group) ?? places.size
    places.set(group, place)
    return place
  })
  return { names: [...places.keys()], of }
}
