import type { RowItem, RowsAccessView, ToldRow } from '#access'
import type { RowKind } from '#metricsource'
import { type Chunk, chunkMapped, columnAt, columnOf, type JsonValue, sizeOf, type Table, type Telling } from '#model'
import { type Answers, ChunkMemo, FEW_ROWS } from './chunk-memo.ts'
import { countOf, type RowSet, rowsOf, setOfColumn, setOfRows } from './row-set.ts'

/** What policies leave of the rows of one type on one cluster; as long as these rows. */
export interface SeenRows {
  /** equal ones of equal rows: the same is left */
  readonly question: string
  /** how many */
  readonly count: number
  /** rising */
  readonly places: readonly number[]
  /** all rows, without the names and values that may not be seen */
  readonly rows: Table
  /** of a chunk, by its number */
  seenIn(chunk: number): RowSet
}

/**
 * Decides chunk by chunk, when somebody asks, and keeps what was decided: of a row that changes, the chunk is decided about anew. All
 * that a decision hangs on is in its question, so that none outlives what it was made of.
 */
export class SeenChunks {
  /** A thousand rows take up to 0.4 KB, for each access view that sees a part of them; most see all of a chunk, or nothing. */
  readonly #memo = new ChunkMemo(64 * 2 ** 20)
  readonly #numbers = new WeakMap<object, number>()
  #last = 0

  /** @param key who looks at what */
  questionOf(key: string, { basis }: RowsAccessView, { id, hash }: RowKind): string {
    return `${key} ${id} ${hash} ${basis.map((one) => (typeof one === 'object' && one !== null ? this.#numberOf(one) : String(one)))}`
  }

  /** @param question equal ones are decided equally */
  of(question: string, rows: Table, custom: RowsAccessView, source: RowKind): SeenRows {
    const sets = this.#memo.answers<RowSet>(`shown ${question} ${rows.fields}`, bytesOfSet)
    const named = this.#memo.answers<Chunk>(`named ${question} ${rows.fields}`, bytesOfNames)
    return new SeenTable(question, rows, new Decision(rows.fields, custom, source), { sets, named })
  }

  /** Of so few rows that nothing of them is kept (`isKept`), for they have no question. */
  ofStep(rows: Table, custom: RowsAccessView, source: RowKind): SeenRows {
    return new SeenTable('', rows, new Decision(rows.fields, custom, source), undefined)
  }

  #numberOf(one: object): number {
    const number = this.#numbers.get(one) ?? ++this.#last
    this.#numbers.set(one, number)
    return number
  }
}

const bytesOfSet = (set: RowSet): number => (set.length === 0 ? 0 : 240 + set.byteLength)
/** Of the words of a column of names, and of a column that is another one in every row. */
const bytesOfNames = (chunk: Chunk): number => 1500 + 8 * sizeOf(chunk)

/** What is known of chunks. */
interface KnownOfChunks {
  readonly sets: Answers<RowSet>
  readonly named: Answers<Chunk>
}

class SeenTable implements SeenRows {
  readonly question: string
  readonly #all: Table
  readonly #decision: Decision
  readonly #known: KnownOfChunks | undefined
  #rows: Table | undefined
  #places: readonly number[] | undefined
  #count = -1

  constructor(question: string, all: Table, decision: Decision, known: KnownOfChunks | undefined) {
    this.question = question
    this.#all = all
    this.#decision = decision
    this.#known = known
  }

  seenIn(number: number): RowSet {
    const chunk = this.#all.chunks[number] as Chunk // callers go over the chunks there are
    const sets = this.#known?.sets
    if (!sets || sizeOf(chunk) < FEW_ROWS) return this.#decision.of(chunk)
    // What does not look at values stays while they change.
    return sets.of(this.#decision.isOfKeys ? chunk.keys : chunk, () => this.#decision.of(chunk))
  }

  get count(): number {
    if (this.#count < 0)
      this.#count = this.#all.chunks.reduce((sum, chunk, i) => sum + countOf(this.seenIn(i), sizeOf(chunk)), 0)
    return this.#count
  }

  get places(): readonly number[] {
    this.#places ??= this.#all.chunks.flatMap((chunk, i) => {
      const start = this.#all.startOf(i)
      return Array.from(rowsOf(this.seenIn(i), sizeOf(chunk)), (row) => start + row)
    })
    return this.#places
  }

  get rows(): Table {
    this.#rows ??= this.#decision.withoutHiddenNames(this.#all, this.#known?.named)
    return this.#rows
  }
}

/** A column, by its place, that says something of namespaces. */
interface Speaking {
  readonly at: number
  readonly tells: Telling
}

/** What one access view shows of rows with these fields. */
class Decision {
  /** the keys of a chunk alone decide */
  readonly isOfKeys: boolean
  readonly #fields: readonly string[]
  readonly #custom: RowsAccessView
  readonly #source: RowKind
  readonly #looksAt: NonNullable<RowsAccessView['looksAt']>
  readonly #nodes = new Map<string, boolean>()

  constructor(fields: readonly string[], custom: RowsAccessView, source: RowKind) {
    this.#fields = fields
    this.#custom = custom
    this.#source = source
    this.#looksAt = custom.looksAt ?? { names: true, labels: true, fields: true }
    this.isOfKeys = !this.#looksAt.labels && !this.#looksAt.fields
  }

  /** One item serves all rows, because an access view keeps nothing of it. */
  of(chunk: Chunk): RowSet {
    const { keys } = chunk
    const values: Record<string, JsonValue> = Object.create(null) // a field may be called __proto__
    const item: { -readonly [K in keyof RowItem]: RowItem[K] } = { name: '', labels: {}, values }
    if (this.isOfKeys && !this.#looksAt.names)
      return setOfColumn(keys.namespaces, sizeOf(chunk), (namespace) => {
        item.namespace = namespace
        return this.#custom.shows(item)
      })
    const fields = this.#looksAt.fields ? this.#fields : []
    const columns = fields.map((_, at) => columnAt(chunk, at))
    const rows: number[] = []
    for (let row = 0; row < sizeOf(chunk); row++) {
      item.name = this.#source.rowName(keys.names.at(row) as string)
      item.namespace = keys.namespaces.at(row)
      if (this.#looksAt.labels) item.labels = chunk.labels.at(row)
      for (let at = 0; at < fields.length; at++) values[fields[at] as string] = columns[at]?.at(row) ?? null
      if (this.#custom.shows(item)) rows.push(row)
    }
    return setOfRows(rows, sizeOf(chunk))
  }

  /** Without the values that each row withholds. */
  #withoutWithheld(chunk: Chunk, withholds: NonNullable<RowsAccessView['withholds']>): Chunk {
    const columns = this.#fields.map((_, at) => columnAt(chunk, at))
    const withheld = this.#fields.map(() => new Set<number>())
    for (let row = 0; row < sizeOf(chunk); row++) {
      const values = Object.fromEntries(this.#fields.map((field, at) => [field, columns[at]?.at(row) ?? null]))
      const namespace = chunk.keys.namespaces.at(row)
      for (const field of withholds({ name: '', namespace, values })) withheld[this.#fields.indexOf(field)]?.add(row)
    }
    if (withheld.every(({ size }) => size === 0)) return chunk
    const left = columns.map((column, at) => {
      const hidden = withheld[at]
      if (!hidden?.size) return column
      return columnOf(Array.from({ length: sizeOf(chunk) }, (_, row) => (hidden.has(row) ? null : column.at(row))))
    })
    return { keys: chunk.keys, labels: chunk.labels, columns: left }
  }

  /** Columns that speak of namespaces say of them what each row may tell. */
  #told(chunk: Chunk, tell: NonNullable<RowsAccessView['tells']>, telling: readonly Speaking[]): Chunk {
    const row = (at: number): ToldRow => ({
      namespace: chunk.keys.namespaces.at(at),
      value: (column) => columnAt(chunk, this.#fields.indexOf(column))?.at(at),
    })
    const told = new Map(
      telling.map(({ at, tells }) => {
        const column = columnAt(chunk, at)
        const values = Array.from({ length: sizeOf(chunk) }, (_, i) => tell(tells, column?.at(i) ?? null, row(i)))
        return [at, values.every((value, i) => value === (column?.at(i) ?? null)) ? column : columnOf(values)] as const
      }),
    )
    const columns = this.#fields.map((_, at) => told.get(at) ?? columnAt(chunk, at))
    return { keys: chunk.keys, labels: chunk.labels, columns }
  }

  /** A row that may be seen does not name a node or a namespace that may not. */
  withoutHiddenNames(rows: Table, named: Answers<Chunk> | undefined): Table {
    const { showsNode, withholds, tells } = this.#custom
    const columnsOf = rows.fields.map((field) => this.#source.columns.find(({ name }) => name === field))
    const naming = showsNode ? columnsOf.flatMap((column, at) => (column?.refersTo === 'node' ? [at] : [])) : []
    const telling = columnsOf.flatMap((column, at): Speaking[] => (column?.tells ? [{ at, tells: column.tells }] : []))
    const isTelling = tells && telling.length > 0
    if (!withholds && !isTelling && naming.length === 0) return rows
    const seen = (value: JsonValue): JsonValue => {
      if (typeof value !== 'string') return null
      const isSeen = this.#nodes.get(value) ?? showsNode?.(value) ?? true
      this.#nodes.set(value, isSeen)
      return isSeen ? value : null
    }
    const left = (chunk: Chunk): Chunk => {
      const shown = withholds ? this.#withoutWithheld(chunk, withholds) : chunk
      const told = isTelling ? this.#told(shown, tells, telling) : shown
      return naming.reduce((made, at) => chunkMapped(made, at, seen), told)
    }
    return rows.mapChunks((chunk) => (named ? named.of(chunk, left) : left(chunk)))
  }
}
