import { type Chunk, type Keys, type Labels, sizeOf } from './chunk.ts'
import { type Column, columnMapped, columnOf } from './column.ts'
import type { JsonValue } from './json.ts'

/** Rows of a table that are read when somebody asks: a column where it is first looked at, one row without any. */
export abstract class ReadChunk implements Chunk {
  readonly keys: Keys
  readonly #width: number
  // Of most chunks nobody looks at a whole column.
  #made: (Column | undefined)[] | undefined
  #labels: Column<Labels> | undefined
  #columns: readonly Column[] | undefined

  /** @param width fields */
  constructor(keys: Keys, width: number) {
    this.keys = keys
    this.#width = width
  }

  protected abstract readLabels(row: number): Labels
  /** @param at the place of the field */
  protected abstract readValue(at: number, row: number): JsonValue

  get labels(): Column<Labels> {
    this.#labels ??= columnOf(Array.from({ length: sizeOf(this) }, (_, row) => this.readLabels(row)))
    return this.#labels
  }

  get columns(): readonly Column[] {
    this.#columns ??= Array.from({ length: this.#width }, (_, at) => this.columnAt(at))
    return this.#columns
  }

  columnAt(at: number): Column {
    this.#made ??= Array.from({ length: this.#width }, () => undefined)
    this.#made[at] ??= columnOf(Array.from({ length: sizeOf(this) }, (_, row) => this.readValue(at, row)))
    return this.#made[at]
  }

  valueAt(at: number, row: number): JsonValue {
    const made = this.#made?.[at]
    return made ? made.at(row) : this.readValue(at, row)
  }

  labelsAt(row: number): Labels {
    return this.#labels?.at(row) ?? this.readLabels(row)
  }
}

/** How labels and values are read of the things that a chunk is made of. */
export interface ChunkReading<T> {
  readonly labels: (thing: T) => Labels
  /** of each field */
  readonly values: readonly ((thing: T) => JsonValue)[]
}

/** Rows that are read of a thing each. It keeps the things, which must not change. */
export class ThingsChunk<T> extends ReadChunk {
  readonly #things: readonly T[]
  readonly #reading: ChunkReading<T>

  constructor(keys: Keys, things: readonly T[], reading: ChunkReading<T>) {
    super(keys, reading.values.length)
    this.#things = things
    this.#reading = reading
  }

  protected override readLabels(row: number): Labels {
    return this.#reading.labels(this.#things[row] as T)
  }

  protected override readValue(at: number, row: number): JsonValue {
    return (this.#reading.values[at] as (thing: T) => JsonValue)(this.#things[row] as T)
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
