import { type Chunk, type Keys, type Labels, sizeOf } from './chunk.ts'
import { type Column, columnMapped, columnOf } from './column.ts'
import type { JsonValue } from './json.ts'

/** How labels and values are read of the things that a chunk is made of. */
export interface ChunkReading<T> {
  readonly labels: (thing: T) => Labels
  /** of each field */
  readonly values: readonly ((thing: T) => JsonValue)[]
}

/**
 * Rows of a table that are read of other things when somebody asks: a column where it is first looked at, one row without any.
 * It keeps the things, which must not change.
 */
export class ReadChunk<T = unknown> implements Chunk {
  readonly keys: Keys
  readonly #things: readonly T[]
  readonly #reading: ChunkReading<T>
  readonly #made: (Column | undefined)[]
  #labels: Column<Labels> | undefined
  #columns: readonly Column[] | undefined

  constructor(keys: Keys, things: readonly T[], reading: ChunkReading<T>) {
    this.keys = keys
    this.#things = things
    this.#reading = reading
    this.#made = reading.values.map(() => undefined)
  }

  get labels(): Column<Labels> {
    this.#labels ??= columnOf(this.#things.map(this.#reading.labels))
    return this.#labels
  }

  get columns(): readonly Column[] {
    this.#columns ??= this.#made.map((_, at) => this.columnAt(at))
    return this.#columns
  }

  columnAt(at: number): Column {
    this.#made[at] ??= columnOf(this.#things.map(this.#read(at)))
    return this.#made[at]
  }

  valueAt(at: number, row: number): JsonValue {
    const made = this.#made[at]
    return made ? made.at(row) : this.#read(at)(this.#things[row] as T)
  }

  labelsAt(row: number): Labels {
    return this.#labels?.at(row) ?? this.#reading.labels(this.#things[row] as T)
  }

  #read(at: number): (thing: T) => JsonValue {
    return this.#reading.values[at] as (thing: T) => JsonValue
  }
}

/** One column of a chunk, without the others where they are still to be read. */
export const columnAt = (chunk: Chunk, at: number): Column =>
  chunk instanceof ReadChunk ? chunk.columnAt(at) : (chunk.columns[at] as Column)

/** One value of a chunk, as is `columnAt`. */
export const valueAt = (chunk: Chunk, at: number, row: number): JsonValue =>
  chunk instanceof ReadChunk ? chunk.valueAt(at, row) : (chunk.columns[at] as Column).at(row)

/** Labels of one row of a chunk, as is `columnAt`. */
export const labelsAt = (chunk: Chunk, row: number): Labels =>
  chunk instanceof ReadChunk ? chunk.labelsAt(row) : chunk.labels.at(row)

/** The chunk with each value of this field changed; `change` is asked once per distinct value, or about every row. */
export function chunkMapped(chunk: Chunk, at: number, change: (value: JsonValue) => JsonValue): Chunk {
  const before = columnAt(chunk, at)
  const after = columnMapped(before, sizeOf(chunk), change)
  return after === before ? chunk : { keys: chunk.keys, labels: chunk.labels, columns: chunk.columns.with(at, after) }
}
