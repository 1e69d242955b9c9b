import { createHash } from 'node:crypto'
import { type Chunk, type CustomState, packChunk, type SourceId, Table, unpackChunk, unpackTable } from '#model'

/*
 * Fields per source beside those of the cluster: what moves with every collection, which chunks its rows are in, and each chunk
 * under a hash of its own, so that one that did not change is not written.
 *
 *   custom:<source>         outcome, freshness, aggregations, …
 *   rows:<source>           {fields, ids}                          builds before format 2: all of the rows
 *   rows:<source>:<id>      one chunk
 */
const HEAD = 'custom:'
const ROWS = 'rows:'

type Custom = ReadonlyMap<SourceId, CustomState>
const NONE: Custom = new Map()

/** Of chunks that were written or read. */
const ids = new WeakMap<Chunk, string>()
/** Tables that were read from one field: none of their chunks is stored. */
const former = new WeakSet<Table>()

/** Fields that differ; undefined: it is to be deleted. */
export function* changedCustomFields(
  before: Custom = NONE,
  after: Custom,
): Generator<readonly [field: string, text: string | undefined]> {
  if (before === after) return
  for (const [source, state] of after) {
    const old = before.get(source)
    if (old === state) continue
    const { rows, ...head } = state
    yield [HEAD + source, JSON.stringify(head)]
    if (rows !== old?.rows) yield* changedRows(source, old?.rows, rows)
  }
  for (const [source, { rows }] of before) {
    if (after.has(source)) continue
    yield [HEAD + source, undefined]
    yield [ROWS + source, undefined]
    for (const id of storedIds(rows)) yield [chunkField(source, id), undefined]
  }
}

const chunkField = (source: SourceId, id: string) => `${ROWS}${source}:${id}`

function* changedRows(
  source: SourceId,
  before: Table | undefined,
  { fields, chunks }: Table,
): Generator<readonly [field: string, text: string | undefined]> {
  const gone = before ? storedIds(before) : new Set<string>()
  const stored = new Set(gone)
  const now: string[] = []
  for (const chunk of chunks) {
    let id = ids.get(chunk)
    if (id === undefined || !stored.has(id)) {
      const text = JSON.stringify(packChunk(chunk))
      id = hashOf(text)
      ids.set(chunk, id)
      if (!stored.has(id)) yield [chunkField(source, id), text]
    }
    gone.delete(id)
    now.push(id)
  }
  yield [ROWS + source, JSON.stringify({ fields, ids: now })]
  for (const id of gone) yield [chunkField(source, id), undefined]
}

/** What a store has that was given this table. */
function storedIds(table: Table): Set<string> {
  if (former.has(table)) return new Set()
  return new Set(table.chunks.flatMap((chunk) => ids.get(chunk) ?? []))
}

const hashOf = (text: string): string => createHash('sha1').update(text).digest('base64url').slice(0, 16)

export interface ReadOptions {
  /** chunks of these are taken instead of being read again */
  readonly known?: Custom | undefined
  /** a field of rows is damaged or missing: the source is left out */
  readonly onDamage?: (source: SourceId, field: string) => void
}

/**
 * Every source of the fields. `before` lends the rows that are not among them.
 * @throws where the head of a source is something else
 */
export function customOf(
  fields: Readonly<Record<string, string>>,
  before: Custom = NONE,
  { known = before, onDamage }: ReadOptions = {},
): Custom {
  const custom = new Map<SourceId, CustomState>()
  for (const [field, text] of Object.entries(fields)) {
    if (!field.startsWith(HEAD)) continue
    const source = field.slice(HEAD.length)
    // Written by changedCustomFields.
    const head = JSON.parse(text) as Omit<CustomState, 'rows'>
    try {
      const lent = fields[ROWS + source] === undefined ? before.get(source)?.rows : undefined
      custom.set(source, { ...head, rows: lent ?? rowsOf(source, fields, known.get(source)?.rows) })
    } catch (error) {
      // Half of a table is none, and a head without its rows must not look like an empty collection.
      if (!(error instanceof Damaged)) throw error
      onDamage?.(source, error.field)
    }
  }
  return custom
}

class Damaged extends Error {
  readonly field: string
  constructor(field: string) {
    super(`${field} is damaged or missing`)
    this.field = field
  }
}

function rowsOf(source: SourceId, fields: Readonly<Record<string, string>>, known: Table | undefined): Table {
  const index = parsed(fields, ROWS + source) as { fields: readonly string[]; ids: readonly string[] }
  if (!Array.isArray(index.ids)) {
    const table = unpackTable(index as never) // which looks at everything
    if (!table) throw new Damaged(ROWS + source)
    former.add(table)
    return orEmpty(table)
  }
  const there = new Map(known?.chunks.map((chunk) => [ids.get(chunk), chunk]))
  const chunks = index.ids.map((id) => {
    const field = chunkField(source, id)
    const same = fields[field] === undefined ? undefined : there.get(id)
    if (same) return same
    const chunk = hashOf(fields[field] ?? '') === id ? unpackChunk(parsed(fields, field) as never) : undefined
    if (!chunk) throw new Damaged(field)
    ids.set(chunk, id)
    return chunk
  })
  const table = Array.isArray(index.fields) ? Table.ofChunks(index.fields, chunks) : undefined
  if (!table) throw new Damaged(ROWS + source)
  return orEmpty(table)
}

const orEmpty = (table: Table): Table => (table.size === 0 && table.fields.length === 0 ? Table.empty : table)

function parsed(fields: Readonly<Record<string, string>>, field: string): object {
  try {
    const value: unknown = JSON.parse(fields[field] ?? 'null')
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // No JSON: the same as nothing.
  }
  throw new Damaged(field)
}
