import {
  bytesOfChunk,
  type Chunk,
  chunkOver,
  chunksOfColumns,
  chunksOfPieces,
  chunkWith,
  compareKeys,
  compareRow,
  evenly,
  firstNotBefore,
  type Keys,
  type Labels,
  type Piece,
  type PlainColumns,
  type RowReader,
  sameKeys,
  sizeOf,
} from './chunk.ts'
import { compareRows, differingPairs, PairsOfKeys, pairsOfAll } from './chunk-changes.ts'
import { type Column, columnOf, columnOfOne } from './column.ts'
import { isJson, type JsonValue } from './json.ts'
import { type ChunkReading, columnAt, labelsAt, ThingsChunk, valueAt } from './read-chunk.ts'
import type { Values } from './texts.ts'

/*
 * Rows of one kind of one cluster, sorted by namespace and name, in immutable chunks of 128 to 512 rows, each with a typed
 * column per field:
 *
 *   Table ── chunk ── keys (namespaces, names), labels, a column per field
 *         ├─ chunk
 *         └─ …
 *
 * A patch copies the chunks it touches and, of those, the columns that differ; everything else is shared with the table before.
 * What is the very same chunk in two tables is equal, so differences, stores and checks look at nothing but what was touched.
 */

/** Rows that are looked for one by one; more are merged with all chunks. */
const MAX_IN_PLACE = 64

/** Rows of one table; a collection with more is refused. */
export const MAX_TABLE_ROWS = 500_000

/** One row, made when somebody asks for it. `namespace` is '' for objects of the cluster. */
export interface TableRow {
  readonly namespace: string
  readonly name: string
  readonly labels: Labels
  /** by field; what is missing is null */
  readonly values: Readonly<Record<string, JsonValue>>
}

/** How the rows of a table are read of things of another shape. */
export interface Reading<T> extends ChunkReading<T> {
  readonly fields: readonly string[]
  readonly place: (thing: T) => Pick<TableRow, 'namespace' | 'name'>
}

/** All rows as plain columns of equal length, for codecs. */
export interface TableColumns extends PlainColumns {
  readonly fields: readonly string[]
}

/** Places of rows in two tables, each list rising. */
export interface TableChanges {
  /** of rows that are in both and differ: where they are now */
  readonly changed: readonly number[]
  /** where those were */
  readonly before: readonly number[]
  readonly added: readonly number[]
  /** where rows were that are gone */
  readonly removed: readonly number[]
}

/**
 * Names the row within its table: `namespace/name`, or `name` for objects of the cluster. No two rows share one as long as
 * neither has a `/`, which no name of Kubernetes has; batches with others are refused.
 */
export function tableRowId(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

const knownPlaces = new WeakMap<readonly string[], ReadonlyMap<string, number>>()

/** Immutable. A place is the number of a row, from 0; reading by rising places costs about what an array does. */
export class Table {
  readonly size: number
  readonly fields: readonly string[]
  /** for codecs and stores: the very same chunk in two tables is the same rows */
  readonly chunks: readonly Chunk[]
  /** of each chunk, and of the end */
  readonly #starts: readonly number[]
  readonly #places: ReadonlyMap<string, number>
  /** The very same object in two tables: equal fields, namespaces and names, at the same places. */
  readonly keys: object
  /** Stands for this table where the table itself must not be held: one would hold all that were before it. */
  readonly #identity = {}
  /** The last table that this was put into, and what came of it, for as long as somebody has that: a change is kept longer. */
  #made: { readonly of: object; readonly removed: Iterable<string>; readonly made: WeakRef<Table> } | undefined
  /** What this is the patch of, and with what. */
  #by: { readonly of: object; readonly put: Table; readonly removed: readonly string[] } | undefined
  // Where was read last: a row is mostly beside the one before.
  #chunk: Chunk | undefined
  #from = 0
  #to = 0

  /** @param like has the very keys of these chunks, at the same places */
  private constructor(
    fields: readonly string[],
    chunks: readonly Chunk[],
    places: ReadonlyMap<string, number> = placesOf(fields),
    like?: Table,
  ) {
    this.fields = fields
    this.chunks = chunks
    this.#places = places
    this.keys = like?.keys ?? {}
    if (like) {
      this.#starts = like.#starts
      this.size = like.size
      return
    }
    const starts = [0]
    let size = 0
    for (const chunk of chunks) {
      size += sizeOf(chunk)
      starts.push(size)
    }
    this.#starts = starts
    this.size = size
  }

  static readonly empty = new Table([], [])

  /** From rows in any order; of two with the same namespace and name the later counts. Equal labels are kept once. */
  static of(fields: readonly string[], rows: Iterable<TableRow>): Table {
    const all = [...rows]
    const order = orderOfPlaces(all)
    const sorted = order ? order.map((at) => all[at] as TableRow) : all
    const shared = new Map<string, Labels>()
    const columns = {
      namespaces: sorted.map(({ namespace }) => namespace),
      names: sorted.map(({ name }) => name),
      labels: sorted.map(({ labels }) => sharedLabels(labels, shared)),
      // A field may be called like something every object has.
      values: fields.map((field) =>
        sorted.map(({ values }) => (Object.hasOwn(values, field) ? (values[field] ?? null) : null)),
      ),
    }
    return new Table(fields, chunksOfColumns(sorted.length, columns))
  }

  /** The same of things that do not change, which it keeps: each column is read of them when somebody first looks at it. */
  static reading<T>(things: readonly T[], { fields, place, labels, values }: Reading<T>): Table {
    const places = things.map(place)
    const order = orderOfPlaces(places)
    const take = <U>(all: readonly U[]): readonly U[] => (order ? order.map((at) => all[at] as U) : all)
    const sorted = take(things)
    const sortedPlaces = take(places)
    const namespaces = sortedPlaces.map(({ namespace }) => namespace)
    const names = sortedPlaces.map(({ name }) => name)
    const shared = new Map<string, Labels>()
    const reading = { values, labels: (thing: T) => sharedLabels(labels(thing), shared) }
    const chunks = [...evenly(sorted.length)].map(([from, to]) => {
      const keys = { namespaces: columnOf(namespaces, from, to), names: names.slice(from, to) }
      return new ThingsChunk(keys, sorted.slice(from, to), reading)
    })
    return new Table(fields, chunks)
  }

  /**
   * From what `toColumns` gave, or somebody else wrote. Of two rows with the same namespace and name the later counts.
   * @returns undefined where it is nothing of the sort: lists of unlike length, a field twice, values that are no JSON
   */
  static from(columns: TableColumns): Table | undefined {
    if (!areColumns(columns)) return undefined
    const { fields, namespaces, names, labels, values } = columns
    if (isSorted(namespaces, names)) return new Table(fields, chunksOfColumns(names.length, columns))
    const order = orderOf(columns)
    const take = <T>(column: readonly T[]): T[] => order.map((place) => column[place] as T)
    return new Table(
      fields,
      chunksOfColumns(order.length, {
        namespaces: take(namespaces),
        names: take(names),
        labels: take(labels),
        values: values.map(take),
      }),
    )
  }

  /** From chunks of another table. @returns undefined where they do not follow each other, or have not a column per field */
  static ofChunks(fields: readonly string[], chunks: readonly Chunk[]): Table | undefined {
    const fits = chunks.every((chunk, i) => {
      const next = chunks[i + 1]?.keys
      if (sizeOf(chunk) === 0 || chunk.columns.length !== fields.length) return false
      return !next || compareRow(chunk.keys, sizeOf(chunk) - 1, next.namespaces.at(0), next.names.at(0) as string) < 0
    })
    return fits && new Set(fields).size === fields.length ? new Table(fields, chunks) : undefined
  }

  /** Memory it keeps, about, also where others share it. */
  get bytes(): number {
    let bytes = 0
    for (const chunk of this.chunks) bytes += bytesOfChunk(chunk)
    return bytes
  }

  /** @throws RangeError beyond the last row, as all that take a place */
  namespaceAt(place: number): string {
    const { keys } = this.#chunkOf(place)
    return keys.namespaces.at(place - this.#from)
  }

  nameAt(place: number): string {
    const { keys } = this.#chunkOf(place)
    return keys.names.at(place - this.#from) as string
  }

  labelsAt(place: number): Labels {
    const { labels } = this.#chunkOf(place)
    return labels.at(place - this.#from)
  }

  idAt(place: number): string {
    return tableRowId(this.namespaceAt(place), this.nameAt(place))
  }

  /** Values of one field by place; undefined: it is not among the fields. */
  column(field: string): ((place: number) => JsonValue) | undefined {
    const at = this.#places.get(field)
    return at === undefined ? undefined : this.#reader(at)
  }

  row(place: number): TableRow {
    const chunk = this.#chunkOf(place)
    const { keys } = chunk
    const at = place - this.#from
    const values: Record<string, JsonValue> = {}
    for (let i = 0; i < this.fields.length; i++) setOwn(values, this.fields[i] as string, valueAt(chunk, i, at))
    return { namespace: keys.namespaces.at(at), name: keys.names.at(at) as string, labels: labelsAt(chunk, at), values }
  }

  *rows(): Generator<TableRow> {
    for (let place = 0; place < this.size; place++) yield this.row(place)
  }

  toColumns(): TableColumns {
    const all = <T>(at: (place: number) => T): T[] => Array.from({ length: this.size }, (_, place) => at(place))
    const { namespace, name, labels } = this.#rowReader()
    return {
      fields: this.fields,
      namespaces: all(namespace),
      names: all(name),
      labels: all(labels),
      values: this.fields.map((_, at) => all(this.#reader(at))),
    }
  }

  /** Where the row with this namespace and name is; -1 where it is not. */
  indexOf(namespace: string, name: string): number {
    const place = this.firstNotBefore(namespace, name)
    const isThere = place < this.size && this.namespaceAt(place) === namespace && this.nameAt(place) === name
    return isThere ? place : -1
  }

  /** Where the row with this namespace and name is, or would be. */
  firstNotBefore(namespace: string, name: string): number {
    // All rows of the chunks before are before it.
    const i = this.#chunkFor(namespace, name)
    const chunk = this.chunks[i]
    return chunk ? (this.#starts[i] as number) + firstNotBefore(chunk.keys, namespace, name) : 0
  }

  /** The last chunk that begins at or before this row; the first where none does. */
  #chunkFor(namespace: string, name: string): number {
    let [low, high] = [0, this.chunks.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareRow((this.chunks[middle] as Chunk).keys, 0, namespace, name) <= 0) low = middle + 1
      else high = middle
    }
    return Math.max(0, low - 1)
  }

  /** Only the rows at these places, which must rise. */
  only(places: readonly number[]): Table {
    if (places.length === this.size) return this
    return this.#with(chunksOfPieces(this.#piecesAt(places), this.#rowReader()))
  }

  /**
   * Only the rows at these places, which must rise, with other labels and values: a list of as many, or what is there.
   * @param values by field
   * @returns undefined where one of them is no labels, or no JSON
   */
  changedAt(
    places: readonly number[],
    labels: readonly Labels[] | undefined,
    values: readonly (readonly JsonValue[] | undefined)[],
  ): Table | undefined {
    if (labels && !areLabels(labels)) return undefined
    if (!values.every((column) => column === undefined || areAll(column, isJson))) return undefined
    if (places.length === this.size) return this.#changedEverywhere(labels, values)
    const chunks = places.map((place) => this.#chunkOf(place))
    const rows = places.map((place) => place - (this.#starts[this.#chunkIndex(place)] as number))
    const each = <T>(of: (chunk: Chunk, row: number) => T): T[] =>
      chunks.map((chunk, i) => of(chunk, rows[i] as number))
    const columns = {
      namespaces: each(({ keys }, row) => keys.namespaces.at(row)),
      names: each(({ keys }, row) => keys.names.at(row) as string),
      labels: labels ?? each(labelsAt),
      values: this.fields.map((_, at) => values[at] ?? each((chunk, row) => valueAt(chunk, at, row))),
    }
    return this.#with(chunksOfColumns(places.length, columns))
  }

  /** Keys, and columns that are not given, stay the very same. */
  #changedEverywhere(
    labels: readonly Labels[] | undefined,
    values: readonly (readonly JsonValue[] | undefined)[],
  ): Table {
    const chunks = this.chunks.map((chunk, i): Chunk => {
      const [from, to] = [this.#starts[i] as number, this.#starts[i + 1] as number]
      return {
        keys: chunk.keys,
        labels: labels ? columnOf(labels, from, to) : chunk.labels,
        columns: chunk.columns.map((column, at) => (values[at] ? columnOf(values[at], from, to) : column)),
      }
    })
    return new Table(this.fields, chunks, this.#places, this)
  }

  /**
   * The same rows with other values.
   * @param change gives for each chunk one of the very same keys
   * @param fields of what it gives
   */
  mapChunks(change: (chunk: Chunk) => Chunk, fields: readonly string[] = this.fields): Table {
    const chunks = this.chunks.map(change)
    if (fields === this.fields && chunks.every((chunk, i) => chunk === this.chunks[i])) return this
    return fields === this.fields ? new Table(fields, chunks, this.#places, this) : new Table(fields, chunks)
  }

  /** The number of the chunk that holds a row. @throws RangeError beyond the last row */
  chunkAt(place: number): number {
    return this.#chunkIndex(place)
  }

  /** Where the first row of a chunk is; of the number of chunks, the size. */
  startOf(chunk: number): number {
    return this.#starts[chunk] ?? this.size
  }

  /**
   * With these rows put in place of their older selves, and those of these ids gone; the very same table where nothing differs
   * by that. Fields are those of `put` where it has rows or fields. Asked again with the very same, what was made is given again:
   * a step is taken by more than one who has the table.
   */
  patch(put: Table, removed: Iterable<string>): Table {
    const known = put.#made
    const before = known?.of === this.#identity && known.removed === removed ? known.made.deref() : undefined
    if (before) return before
    const made = this.#patch(put, removed)
    if (made !== this && made !== put && put !== Table.empty && Array.isArray(removed)) {
      put.#made = { of: this.#identity, removed, made: new WeakRef(made) }
      made.#by = { of: this.#identity, put, removed }
    }
    return made
  }

  /** The same rows as a table of its own: nothing that was remembered of this one hangs on it. */
  copy(): Table {
    return this.size === 0 ? this : new Table(this.fields, this.chunks, this.#places, this)
  }

  /** What `patch` of this made `next` with; undefined: it did not. */
  patchTo(next: Table): { readonly put: Table; readonly removed: readonly string[] } | undefined {
    return next.#by?.of === this.#identity ? next.#by : undefined
  }

  #patch(put: Table, removed: Iterable<string>): Table {
    const isSame = sameTexts(put.fields, this.fields) || (put.size === 0 && put.fields.length === 0)
    const older = isSame ? this : this.#laidOut(put.fields)
    const gone = older.#placesOf(removed)
    if (put.size === 0 && gone.length === 0) return older
    if (older.size === 0) return put
    if (put.keys === older.keys && gone.length === 0) return put.#over(older)
    const inPlace = gone.length === 0 && put.size <= MAX_IN_PLACE ? older.#inPlace(put) : undefined
    if (inPlace) return inPlace
    const chunks = chunksOfPieces(older.#edits(put, gone), put.#rowReader())
    const isEqual = chunks.length === older.chunks.length && chunks.every((chunk, i) => chunk === older.chunks[i])
    return isEqual ? older : older.#with(chunks)
  }

  #hasKeysOf(older: Table): boolean {
    const { chunks } = older
    return (
      chunks.length === this.chunks.length &&
      this.chunks.every((chunk, i) => sameKeys((chunks[i] as Chunk).keys, chunk.keys))
    )
  }

  /** These rows, which have the same keys, with what is equal in `older` shared. */
  #over(older: Table): Table {
    const chunks = this.chunks.map((chunk, i) => chunkOver(older.chunks[i] as Chunk, chunk))
    const isEqual = chunks.every((chunk, i) => chunk === older.chunks[i])
    return isEqual ? older : new Table(this.fields, chunks, this.#places, older)
  }

  /** Where rows changed, came and went on the way from `older` to this; all that both have, where the fields differ. */
  changes(older: Table): TableChanges {
    const changes = { changed: [] as number[], before: [] as number[], added: [] as number[], removed: [] as number[] }
    if (older === this) return changes
    if (older.keys === this.keys) {
      for (let i = 0; i < this.chunks.length; i++) {
        const [before, chunk] = [older.chunks[i] as Chunk, this.chunks[i] as Chunk]
        if (chunk === before) continue
        const start = this.#starts[i] as number
        for (const row of differingPairs(before, chunk, pairsOfAll(chunk))) changes.changed.push(start + row)
      }
      return { ...changes, before: changes.changed }
    }
    const differs = !sameTexts(older.fields, this.fields)
    let [i, j, a, b] = [0, 0, 0, 0]
    while (i < older.chunks.length || j < this.chunks.length) {
      const [theirs, ours] = [older.chunks[i], this.chunks[j]]
      const [endA, endB] = [older.#starts[i + 1] ?? a, this.#starts[j + 1] ?? b]
      if (!theirs) while (b < endB) changes.added.push(b++)
      else if (!ours) while (a < endA) changes.removed.push(a++)
      else if (theirs.keys === ours.keys) {
        // Rows are walked by key, so both stand at their first row.
        const rows = pairsOfAll(ours)
        const differing = differs
          ? rows.after.subarray(0, rows.count)
          : theirs === ours
            ? []
            : differingPairs(theirs, ours, rows)
        for (const row of differing) {
          changes.before.push(a + row)
          changes.changed.push(b + row)
        }
        a = endA
        b = endB
      } else {
        const [startA, startB] = [older.#starts[i] as number, this.#starts[j] as number]
        const both = new PairsOfKeys(theirs, ours)
        while (a < endA && b < endB) {
          const order = compareRows(theirs, a - startA, ours, b - startB)
          if (order < 0) changes.removed.push(a++)
          else if (order > 0) changes.added.push(b++)
          else both.add(a++ - startA, b++ - startB)
        }
        const differing = differs ? both.before.subarray(0, both.count).keys() : differingPairs(theirs, ours, both)
        for (const at of differing) {
          changes.before.push(startA + (both.before[at] as number))
          changes.changed.push(startB + (both.after[at] as number))
        }
      }
      if (theirs && a === endA) i++
      if (ours && b === endB) j++
    }
    return changes
  }

  /** What must be put and removed so that `older` becomes this. Everything, where the fields differ. */
  diff(older: Table): { readonly put: Table; readonly removed: readonly string[] } {
    const { changed, added, removed } = this.changes(older)
    return { put: this.only(merged(changed, added)), removed: removed.map((place) => older.idAt(place)) }
  }

  /** These rows, in the chunks of `older` wherever it has the same; `older` itself where all rows are. */
  basedOn(older: Table): Table {
    if (older === this || !sameTexts(older.fields, this.fields)) return this
    if (this.#hasKeysOf(older)) return this.#over(older)
    const { changed, added, removed } = this.changes(older)
    if (changed.length + added.length + removed.length === 0) return older
    if (changed.length + added.length > this.size / 2) return this
    const put = this.only(merged(changed, added))
    return older.#with(chunksOfPieces(older.#edits(put, removed), put.#rowReader()))
  }

  /** Equal fields and rows. 0 and -0 are one number. */
  equals(other: Table): boolean {
    if (other === this) return true
    if (other.size !== this.size || !sameTexts(other.fields, this.fields)) return false
    const { changed, added } = this.changes(other)
    return changed.length + added.length === 0
  }

  #with(chunks: readonly Chunk[]): Table {
    return new Table(this.fields, chunks, this.#places)
  }

  #chunkOf(place: number): Chunk {
    if (this.#chunk === undefined || place < this.#from || place >= this.#to) this.#seek(place)
    return this.#chunk as Chunk
  }

  #seek(place: number): void {
    const i = this.#chunkIndex(place)
    this.#chunk = this.chunks[i]
    this.#from = this.#starts[i] as number
    this.#to = this.#starts[i + 1] as number
  }

  #chunkIndex(place: number): number {
    if (!(place >= 0 && place < this.size)) throw new RangeError(`there is no row ${place}`)
    let [low, high] = [0, this.chunks.length - 1]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#starts[middle] as number) <= place) low = middle
      else high = middle - 1
    }
    return low
  }

  /** One function for all columns, which compilers like: what it reads is looked up where a chunk ends. */
  #reader(at: number): (place: number) => JsonValue {
    let [from, to] = [0, 0]
    let words: Values<JsonValue> = []
    let codes: Uint8Array | null = null
    let numbers: Float64Array | null = null
    return (place) => {
      if (place < from || place >= to) {
        const i = this.#chunkIndex(place)
        ;({ words, codes, numbers } = columnAt(this.chunks[i] as Chunk, at))
        from = this.#starts[i] as number
        to = this.#starts[i + 1] as number
      }
      // Distinct values are a list of their own.
      if (codes !== null) return (words as readonly JsonValue[])[codes[place - from] as number] as JsonValue
      if (numbers === null) return words.at(place - from) as JsonValue
      const number = numbers[place - from] as number
      return Number.isNaN(number) ? null : number
    }
  }

  #rowReader(): RowReader {
    return {
      namespace: (place) => this.namespaceAt(place),
      name: (place) => this.nameAt(place),
      labels: (place) => this.labelsAt(place),
      value: (at, place) => {
        const chunk = this.#chunkOf(place)
        return valueAt(chunk, at, place - this.#from)
      },
    }
  }

  *#piecesAt(places: readonly number[]): Generator<Piece> {
    let next = 0
    for (let i = 0; next < places.length; i++) {
      const [start, end] = [this.#starts[i] as number, this.#starts[i + 1] as number]
      const first = next
      while (next < places.length && (places[next] as number) < end) next++
      const chunk = this.chunks[i] as Chunk
      if (next - first === end - start) yield { chunk }
      else if (next > first) {
        yield {
          chunk,
          order: Int32Array.from({ length: next - first }, (_, k) => (places[first + k] as number) - start),
        }
      }
    }
  }

  /** Rising. */
  #placesOf(ids: Iterable<string>): readonly number[] {
    const places = new Set<number>()
    for (const id of ids) {
      const slash = id.indexOf('/')
      const found = [this.indexOf('', id), slash < 0 ? -1 : this.indexOf(id.slice(0, slash), id.slice(slash + 1))]
      for (const place of found) if (place >= 0) places.add(place)
    }
    return [...places].sort((a, b) => a - b)
  }

  /** With rows that are all there already; undefined: one is new. */
  #inPlace(put: Table): Table | undefined {
    const reader = put.#rowReader()
    let chunks: Chunk[] | undefined
    for (let first = 0; first < put.size; ) {
      const i = this.#chunkFor(put.namespaceAt(first), put.nameAt(first))
      const [chunk, next] = [this.chunks[i] as Chunk, this.chunks[i + 1]?.keys]
      let end = first + 1
      while (end < put.size && (!next || compareRow(next, 0, put.namespaceAt(end), put.nameAt(end)) > 0)) end++
      const places = placesOfKeys(chunk.keys, reader, first, end)
      if (!places) return undefined
      const made = chunkWith(chunk, places, reader, first)
      if (made !== chunk) {
        chunks ??= [...this.chunks]
        chunks[i] = made
      }
      first = end
    }
    return chunks ? new Table(this.fields, chunks, this.#places, this) : this
  }

  /** Every chunk with what is put into it and without what is gone. */
  *#edits(put: Table, gone: readonly number[]): Generator<Piece> {
    const reader = put.#rowReader()
    let [first, firstGone] = [0, 0]
    for (let i = 0; i < this.chunks.length; i++) {
      const chunk = this.chunks[i] as Chunk
      if (first === put.size && firstGone === gone.length) {
        yield { chunk }
        continue
      }
      const next = this.chunks[i + 1]?.keys
      let end = first
      if (!next) end = put.size
      else while (end < put.size && compareRow(next, 0, put.namespaceAt(end), put.nameAt(end)) > 0) end++
      const start = this.#starts[i] as number
      const goneHere: number[] = []
      while (firstGone < gone.length && (gone[firstGone] as number) < start + sizeOf(chunk)) {
        goneHere.push((gone[firstGone++] as number) - start)
      }
      if (end === first && goneHere.length === 0) yield { chunk }
      else yield edited(chunk, { put: reader, first, end, gone: goneHere })
      first = end
    }
  }

  /** The same rows under these fields: what they lack is null. */
  #laidOut(fields: readonly string[]): Table {
    const nothing = columnOfOne<JsonValue>(null)
    const chunks = this.chunks.map(({ keys, labels, columns }): Chunk => {
      const own = (field: string): Column | undefined => columns[this.#places.get(field) ?? -1]
      return { keys, labels, columns: fields.map((field) => own(field) ?? nothing) }
    })
    return new Table(fields, chunks)
  }
}

interface Edit {
  readonly put: RowReader
  /** rows of it */
  readonly first: number
  readonly end: number
  /** rows of the chunk, rising */
  readonly gone: readonly number[]
}

function edited(chunk: Chunk, { put, first, end, gone }: Edit): Piece {
  const { keys } = chunk
  const size = sizeOf(chunk)
  if (gone.length === 0) {
    const places = placesOfKeys(keys, put, first, end)
    if (places) return { chunk: chunkWith(chunk, places, put, first) }
  }
  const order = new Int32Array(size + end - first)
  let [count, row, nextGone] = [0, 0, 0]
  const keep = (to: number) => {
    for (; row < to; row++) {
      if (gone[nextGone] === row) nextGone++
      else order[count++] = row
    }
  }
  for (let i = first; i < end; i++) {
    const [namespace, name] = [put.namespace(i), put.name(i)]
    const at = firstNotBefore(keys, namespace, name, row)
    keep(at)
    order[count++] = -1 - i
    if (at >= size || compareRow(keys, at, namespace, name) !== 0) continue
    if (gone[nextGone] === at) nextGone++
    row = at + 1
  }
  keep(size)
  return { chunk, order: order.subarray(0, count) }
}

/** Which rows of a chunk these rows of `put` replace; undefined: one of them is new. */
function placesOfKeys(keys: Keys, put: RowReader, first: number, end: number): readonly number[] | undefined {
  const places: number[] = []
  for (let i = first; i < end; i++) {
    const [namespace, name] = [put.namespace(i), put.name(i)]
    const at = firstNotBefore(keys, namespace, name, (places.at(-1) ?? -1) + 1)
    if (at >= keys.names.length || compareRow(keys, at, namespace, name) !== 0) return undefined
    places.push(at)
  }
  return places
}

function placesOf(fields: readonly string[]): ReadonlyMap<string, number> {
  const places = knownPlaces.get(fields) ?? new Map(fields.map((field, at) => [field, at]))
  knownPlaces.set(fields, places)
  return places
}

/** Two rising lists as one. */
function merged(a: readonly number[], b: readonly number[]): readonly number[] {
  return b.length === 0 ? a : a.length === 0 ? b : [...a, ...b].sort((left, right) => left - right)
}

/** Order of those with these places, of two with the same key the later one; undefined: they lie in it. */
function orderOfPlaces(places: readonly Pick<TableRow, 'namespace' | 'name'>[]): readonly number[] | undefined {
  const columns = { namespaces: places.map(({ namespace }) => namespace), names: places.map(({ name }) => name) }
  return isSorted(columns.namespaces, columns.names) ? undefined : orderOf(columns)
}

function isSorted(namespaces: readonly string[], names: readonly string[]): boolean {
  for (let row = 1; row < names.length; row++) {
    if (compareKeys(namespaces[row - 1] ?? '', names[row - 1] ?? '', namespaces[row] ?? '', names[row] ?? '') >= 0) {
      return false
    }
  }
  return true
}

/** Places of the rows in order; of two with the same key the later one. An API server orders `a-b/x` before `a/x`. */
function orderOf({ namespaces, names }: Pick<PlainColumns, 'namespaces' | 'names'>): readonly number[] {
  const compare = (a: number, b: number) =>
    compareKeys(namespaces[a] ?? '', names[a] ?? '', namespaces[b] ?? '', names[b] ?? '')
  const sorted = Array.from(names.keys()).sort(compare)
  return sorted.filter((place, i) => {
    const next = sorted[i + 1]
    return next === undefined || compare(place, next) !== 0
  })
}

function sharedLabels(labels: Labels, shared: Map<string, Labels>): Labels {
  const key = JSON.stringify(labels)
  const known = shared.get(key)
  if (known) return known
  shared.set(key, labels)
  return labels
}

/** Sets a property of any name: an assignment to `__proto__` would make none. */
function setOwn(made: Record<string, JsonValue>, field: string, value: JsonValue): void {
  if (field !== '__proto__') made[field] = value
  else Object.defineProperty(made, field, { value, enumerable: true, configurable: true, writable: true })
}

const sameTexts = (a: readonly string[], b: readonly string[]) =>
  a === b || (a.length === b.length && a.every((text, i) => text === b[i]))

function areColumns(columns: TableColumns): boolean {
  if (typeof columns !== 'object' || columns === null) return false
  const { namespaces, names, labels, fields, values } = columns
  if (!areTexts(names) || !areTexts(namespaces) || !areTexts(fields)) return false
  const count = names.length
  return (
    namespaces.length === count &&
    areLabels(labels) &&
    labels.length === count &&
    Array.isArray(values) &&
    values.length === fields.length &&
    values.every((column) => areAll(column, isJson) && column.length === count) &&
    new Set(fields).size === fields.length
  )
}

const isText = (value: unknown): value is string => typeof value === 'string'
const areTexts = (list: unknown): list is readonly string[] => areAll(list, isText)
/** Whether it is an object of texts. */
export const isLabels = (value: unknown): value is Labels =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isText)

/** Most rows have the labels of another: one object, looked at once. */
function areLabels(list: unknown): boolean {
  const known = new Set<unknown>()
  return areAll(list, (labels) => {
    if (known.has(labels)) return true
    if (!isLabels(labels)) return false
    known.add(labels)
    return true
  })
}

/** Of holes in a list, too, which `every` passes over. */
function areAll(list: unknown, is: (value: unknown) => boolean): boolean {
  if (!Array.isArray(list)) return false
  for (let i = 0; i < list.length; i++) if (!is(list[i])) return false
  return true
}
