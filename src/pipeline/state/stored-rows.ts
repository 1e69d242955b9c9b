import { createHash, randomBytes } from 'node:crypto'
import { type Chunk, packChunk, type RowsState, type SourceId, Table, unpackChunk, unpackTable } from '#model'
import { chunkAfter, stepOf, stepOfOne } from './row-steps.ts'

/*
 * Fields per source beside those of the cluster: what moves with every collection, which chunks its rows are in, each chunk under a
 * hash of its own, so that one that did not change is not written, and small changes of a chunk since it was written:
 *
 *   custom:<source>                  outcome, freshness, aggregations, …, which steps there are
 *   rows:<source>                    {fields, ids}                          builds before format 2: all of the rows
 *   rows:<source>:<id>               one chunk
 *   step:<source>:<mark>:<id>:<n>    the nth step of that chunk, from 1
 *
 * Once steps of a chunk hold some rows it is written anew and they go.
 */
const HEAD = 'custom:'
const ROWS = 'rows:'
const STEP = 'step:'

/** Rows in all steps of a chunk: in bytes about as much as half of it. */
const MAX_STEP_ROWS = 64

type Tables = ReadonlyMap<SourceId, RowsState>
const NONE: Tables = new Map()

/** How a store has a chunk. */
interface StoredChunk {
  readonly id: string
  readonly steps: number
  readonly rows: number
  /** of the hashes of its steps */
  readonly sum: number
}

/** All steps of a source, as its head names them: one that is missing or altered is noticed. */
interface Steps {
  /** tells them from those that a former writing left behind */
  readonly mark: string
  readonly count: number
  readonly sum: number
}
type Head = Omit<RowsState, 'rows'> & { readonly steps?: Steps }

const SUMS = 2 ** 48
const plus = (a: number, b: number): number => (a + b + SUMS) % SUMS

/** Fields of a cluster that moved at once. */
export interface MovedFields {
  readonly put: ReadonlyMap<string, string>
  readonly gone: ReadonlySet<string>
}

type FieldChange = readonly [field: string, text: string | undefined]

export interface ReadOptions {
  /** chunks of these are taken instead of being read again */
  readonly known?: Tables | undefined
  /** a field of rows is damaged or missing: the source is left out */
  readonly onDamage?: (source: SourceId, field: string) => void
}

/** How rows stand in one store: which chunks it was given, or gave, and under which names. */
export class StoredRows {
  readonly #chunks = new WeakMap<Chunk, StoredChunk>()
  readonly #steps = new WeakMap<Table, Steps>()
  /** Tables that were read from one field: none of their chunks is stored. */
  readonly #former = new WeakSet<Table>()

  /**
   * Every source of the fields. `before` lends the rows that are not among them.
   * @throws where the head of a source is something else
   */
  read(
    fields: Readonly<Record<string, string>>,
    before: Tables = NONE,
    { known = before, onDamage }: ReadOptions = {},
  ): Tables {
    const tables = new Map<SourceId, RowsState>()
    for (const [field, text] of Object.entries(fields)) {
      if (!field.startsWith(HEAD)) continue
      const source = field.slice(HEAD.length)
      // Written by `changed`.
      const { steps, ...head } = JSON.parse(text) as Head
      try {
        const lent = fields[ROWS + source] === undefined ? before.get(source)?.rows : undefined
        const rows = lent ?? this.#rowsOf(source, fields, { steps, known: known.get(source)?.rows })
        tables.set(source, { ...head, rows })
      } catch (error) {
        // Half of a table is none, and a head without its rows must not look like an empty collection.
        if (!(error instanceof Damaged)) throw error
        onDamage?.(source, error.field)
      }
    }
    return tables
  }

  /**
   * Every source after some fields of its cluster moved, of which nothing is read twice.
   * @param before as it was read here, or came of this
   * @returns undefined where the fields do not lead on from that: all of them are to be read
   */
  after(before: Tables, moved: MovedFields): Tables | undefined {
    const tables = new Map(before)
    for (const field of moved.gone) if (field.startsWith(HEAD)) tables.delete(field.slice(HEAD.length))
    for (const [field, text] of moved.put) {
      if (!field.startsWith(HEAD)) continue
      const source = field.slice(HEAD.length)
      const { steps, ...head } = JSON.parse(text) as Head // written by `changed`
      const rows = this.#rowsAfter(source, before.get(source)?.rows, steps, moved)
      if (!rows) return undefined
      tables.set(source, { ...head, rows })
    }
    return tables
  }

  /** Equal rows that are kept under another table are stored as those were. @returns the one to keep: `kept` where that can be said of it */
  keep(read: Table, kept: Table): Table {
    if (kept === read) return kept
    const isLaidOut = kept.chunks.length === read.chunks.length && !this.#former.has(read)
    if (!isLaidOut || !kept.chunks.every(({ keys }, i) => keys.names.length === read.chunks[i]?.keys.names.length))
      return read
    for (const [i, chunk] of kept.chunks.entries()) {
      const stored = this.#chunks.get(read.chunks[i] as Chunk)
      if (stored) this.#chunks.set(chunk, stored)
    }
    const steps = this.#steps.get(read)
    if (steps) this.#steps.set(kept, steps)
    else this.#steps.delete(kept)
    return kept
  }

  /** Fields that differ; undefined: it is to be deleted. What was given counts as stored. */
  *changed(before: Tables = NONE, after: Tables): Generator<FieldChange> {
    if (before === after) return
    for (const [source, state] of after) {
      const old = before.get(source)
      if (old === state) continue
      const { rows, ...head } = state
      if (rows !== old?.rows) yield* this.#changedRows(source, old?.rows, rows)
      const steps = this.#steps.get(rows)
      yield [HEAD + source, JSON.stringify(steps ? { ...head, steps } : head)]
    }
    for (const [source, { rows }] of before) {
      if (after.has(source)) continue
      yield [HEAD + source, undefined]
      yield [ROWS + source, undefined]
      if (this.#former.has(rows)) continue
      for (const chunk of rows.chunks) yield* this.#gone(source, this.#steps.get(rows), this.#chunks.get(chunk), true)
    }
  }

  *#changedRows(source: SourceId, before: Table | undefined, after: Table): Generator<FieldChange> {
    const stored = before && !this.#former.has(before) ? before : undefined
    const steps = stored && this.#stepsTo(stored, after)
    yield* steps ? this.#stepped(source, stored, after, steps) : this.#written(source, stored, after)
  }

  /** Which chunks changed; undefined: not each in its place. */
  #stepsTo(before: Table, after: Table): readonly number[] | undefined {
    if (before.chunks.length !== after.chunks.length || !sameTexts(before.fields, after.fields)) return undefined
    const places: number[] = []
    for (let i = 0; i < after.chunks.length; i++) {
      const old = before.chunks[i] as Chunk
      if (old === after.chunks[i]) continue
      if (!this.#chunks.has(old)) return undefined
      places.push(i)
    }
    return places
  }

  *#stepped(source: SourceId, before: Table, after: Table, places: readonly number[]): Generator<FieldChange> {
    let steps = this.#steps.get(before) ?? { mark: randomBytes(6).toString('base64url'), count: 0, sum: 0 }
    let isIndexed = true
    for (const place of places) {
      const [old, chunk] = [before.chunks[place] as Chunk, after.chunks[place] as Chunk]
      const stored = this.#chunks.get(old) as StoredChunk // it was looked for
      const left = MAX_STEP_ROWS - stored.rows
      const one = places.length === 1 && left > 0 ? stepOfOne(before, after) : undefined
      const step = one ?? stepOf(old, chunk, left)
      if (step) {
        const field = stepField(source, steps.mark, stored.id, stored.steps + 1)
        const sum = sumOf(field, step.text)
        yield [field, step.text]
        steps = { ...steps, count: steps.count + 1, sum: plus(steps.sum, sum) }
        const next = {
          id: stored.id,
          steps: stored.steps + 1,
          rows: stored.rows + step.rows,
          sum: plus(stored.sum, sum),
        }
        this.#chunks.set(chunk, next)
        continue
      }
      isIndexed = false
      const { id, text } = this.#whole(chunk)
      if (id !== stored.id) yield [chunkField(source, id), text]
      yield* this.#gone(source, steps, stored, id !== stored.id)
      steps = { ...steps, count: steps.count - stored.steps, sum: plus(steps.sum, -stored.sum) }
    }
    if (steps.count > 0) this.#steps.set(after, steps)
    if (!isIndexed) yield this.#index(source, after)
  }

  *#written(source: SourceId, before: Table | undefined, after: Table): Generator<FieldChange> {
    const left = new Set(before?.chunks)
    const steps = before && this.#steps.get(before)
    const kept = new Set<Chunk>()
    for (const chunk of after.chunks) if (left.delete(chunk) && this.#chunks.has(chunk)) kept.add(chunk)
    const texts = new Map<string, string>()
    for (const chunk of after.chunks) {
      if (kept.has(chunk)) continue
      const { id, text } = this.#whole(chunk)
      texts.set(id, text)
    }
    let { count, sum } = steps ?? { count: 0, sum: 0 }
    for (const chunk of left) {
      const stored = this.#chunks.get(chunk)
      if (!stored) continue
      // A chunk of the same content may have come.
      yield* this.#gone(source, steps, stored, !texts.delete(stored.id))
      count -= stored.steps
      sum = plus(sum, -stored.sum)
    }
    for (const [id, text] of texts) yield [chunkField(source, id), text]
    // The same table may have been written in steps, where it was lost since.
    if (steps && count > 0) this.#steps.set(after, { mark: steps.mark, count, sum })
    else this.#steps.delete(after)
    yield this.#index(source, after)
  }

  #whole(chunk: Chunk): { readonly id: string; readonly text: string } {
    const text = JSON.stringify(packChunk(chunk))
    const id = hashOf(text)
    this.#chunks.set(chunk, { id, steps: 0, rows: 0, sum: 0 })
    return { id, text }
  }

  #index(source: SourceId, { fields, chunks }: Table): FieldChange {
    return [ROWS + source, JSON.stringify({ fields, ids: chunks.map((chunk) => this.#chunks.get(chunk)?.id) })]
  }

  *#gone(
    source: SourceId,
    steps: Steps | undefined,
    stored: StoredChunk | undefined,
    withChunk: boolean,
  ): Generator<FieldChange> {
    if (!stored) return
    if (withChunk) yield [chunkField(source, stored.id), undefined]
    if (!steps) return
    for (let n = 1; n <= stored.steps; n++) yield [stepField(source, steps.mark, stored.id, n), undefined]
  }

  #rowsOf(
    source: SourceId,
    fields: Readonly<Record<string, string>>,
    { steps, known }: { readonly steps: Steps | undefined; readonly known: Table | undefined },
  ): Table {
    const index = parsed(fields, ROWS + source) as { fields: readonly string[]; ids: readonly string[] }
    if (!Array.isArray(index.ids)) {
      const table = unpackTable(index as never) // which looks at everything
      if (!table) throw new Damaged(ROWS + source)
      this.#former.add(table)
      return orEmpty(table)
    }
    if (!Array.isArray(index.fields)) throw new Damaged(ROWS + source)
    const there = new Map(known?.chunks.map((chunk) => [this.#chunks.get(chunk)?.id, chunk]))
    const told = index.ids.map((id) => (steps ? stepsIn(fields, source, steps.mark, id) : []))
    if (steps && (steps.count !== told.flat().length || steps.sum !== sumOfAll(told.flat())))
      throw new Damaged(STEP + source)
    const chunks = index.ids.map((id, i) =>
      this.#chunkOf(source, { fields, id, told: told[i] ?? [], names: index.fields }, there.get(id)),
    )
    const table = Table.ofChunks(index.fields, chunks)
    if (!table) throw new Damaged(ROWS + source)
    if (steps) this.#steps.set(table, steps)
    return orEmpty(table)
  }

  #rowsAfter(
    source: SourceId,
    before: Table | undefined,
    steps: Steps | undefined,
    { put, gone }: MovedFields,
  ): Table | undefined {
    const text = put.get(ROWS + source)
    const index =
      text === undefined ? undefined : (JSON.parse(text) as { fields: readonly string[]; ids: readonly string[] })
    if (before ? this.#former.has(before) : !index) return undefined
    const known = new Map(before?.chunks.map((chunk) => [this.#chunks.get(chunk)?.id, chunk]))
    const ids = index?.ids ?? [...known.keys()]
    const fields = index?.fields ?? before?.fields ?? []
    const mark = before && this.#steps.get(before)?.mark
    const chunks: Chunk[] = []
    let { count, sum } = { count: 0, sum: 0 }
    for (const id of ids) {
      if (id === undefined) return undefined
      const whole = put.get(chunkField(source, id))
      const base = whole === undefined ? known.get(id) : this.#unpacked(id, whole)
      const stored = base && this.#chunks.get(base)
      if (!stored) return undefined
      // What it was written as, without its steps, is in no memory.
      if (stored.steps > 0 && (mark !== steps?.mark || gone.has(stepField(source, mark ?? '', id, 1)))) return undefined
      const chunk = steps ? this.#stepsOnto(base, { source, mark: steps.mark, fields, put }) : base
      const at = chunk && this.#chunks.get(chunk)
      if (!at) return undefined
      count += at.steps
      sum = plus(sum, at.sum)
      chunks.push(chunk)
    }
    if (count !== (steps?.count ?? 0) || sum !== (steps?.sum ?? 0)) return undefined
    const isSame = before && !index && chunks.every((chunk, i) => chunk === before.chunks[i])
    const table = isSame ? before : Table.ofChunks(fields, chunks)
    if (table && steps) this.#steps.set(table, steps)
    return table && orEmpty(table)
  }

  /** With the steps that follow those it has. @returns undefined where one of them is nothing of the sort */
  #stepsOnto(
    base: Chunk,
    {
      source,
      mark,
      fields,
      put,
    }: Pick<MovedFields, 'put'> & { source: SourceId; mark: string; fields: readonly string[] },
  ): Chunk | undefined {
    let chunk = base
    for (;;) {
      const at = this.#chunks.get(chunk) as StoredChunk // it was looked for, or set below
      const field = stepField(source, mark, at.id, at.steps + 1)
      const text = put.get(field)
      if (text === undefined) return chunk
      const step = chunkAfter(fields, chunk, text)
      if (!step) return undefined
      chunk = step.chunk
      const sum = plus(at.sum, sumOf(field, text))
      this.#chunks.set(chunk, { id: at.id, steps: at.steps + 1, rows: at.rows + step.rows, sum })
    }
  }

  #unpacked(id: string, text: string): Chunk | undefined {
    const chunk = hashOf(text) === id ? unpackChunk(JSON.parse(text) as never) : undefined
    if (chunk) this.#chunks.set(chunk, { id, steps: 0, rows: 0, sum: 0 })
    return chunk
  }

  #chunkOf(source: SourceId, { fields, id, told, names }: Kept, known: Chunk | undefined): Chunk {
    const field = chunkField(source, id)
    const text = fields[field]
    const stored = known && text !== undefined ? this.#chunks.get(known) : undefined
    const isBase =
      stored !== undefined && stored.steps <= told.length && stored.sum === sumOfAll(told.slice(0, stored.steps))
    let chunk = isBase ? known : undefined
    let at = isBase ? stored : { id, steps: 0, rows: 0, sum: 0 }
    if (!chunk) {
      chunk = hashOf(text ?? '') === id ? unpackChunk(parsed(fields, field) as never) : undefined
      if (!chunk) throw new Damaged(field)
      this.#chunks.set(chunk, at)
    }
    for (const { field, text, hash } of told.slice(at.steps)) {
      const step = chunkAfter(names, chunk, text)
      if (!step) throw new Damaged(field)
      at = { id, steps: at.steps + 1, rows: at.rows + step.rows, sum: plus(at.sum, hash) }
      chunk = step.chunk
      this.#chunks.set(chunk, at)
    }
    return chunk
  }
}

/** What the fields have of one chunk. */
interface Kept {
  readonly fields: Readonly<Record<string, string>>
  readonly id: string
  readonly told: readonly ToldStep[]
  /** of the table */
  readonly names: readonly string[]
}

interface ToldStep {
  readonly field: string
  readonly text: string
  readonly hash: number
}

const chunkField = (source: SourceId, id: string) => `${ROWS}${source}:${id}`
const stepField = (source: SourceId, mark: string, id: string, n: number) => `${STEP}${source}:${mark}:${id}:${n}`

function stepsIn(fields: Readonly<Record<string, string>>, source: SourceId, mark: string, id: string): ToldStep[] {
  const steps: ToldStep[] = []
  for (;;) {
    const field = stepField(source, mark, id, steps.length + 1)
    const text = fields[field]
    if (text === undefined) return steps
    steps.push({ field, text, hash: sumOf(field, text) })
  }
}

const sumOfAll = (steps: readonly ToldStep[]): number => steps.reduce((sum, { hash }) => plus(sum, hash), 0)

const sha1 = (text: string): Buffer => createHash('sha1').update(text).digest()
const hashOf = (text: string): string => sha1(text).toString('base64url').slice(0, 16)
const sumOf = (field: string, text: string): number => sha1(`${field} ${text}`).readUIntBE(0, 6)

class Damaged extends Error {
  readonly field: string
  constructor(field: string) {
    super(`${field} is damaged or missing`)
    this.field = field
  }
}

const orEmpty = (table: Table): Table => (table.size === 0 && table.fields.length === 0 ? Table.empty : table)

const sameTexts = (a: readonly string[], b: readonly string[]) =>
  a === b || (a.length === b.length && a.every((text, i) => text === b[i]))

function parsed(fields: Readonly<Record<string, string>>, field: string): object {
  try {
    const value: unknown = JSON.parse(fields[field] ?? 'null')
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // No JSON: the same as nothing.
  }
  throw new Damaged(field)
}
