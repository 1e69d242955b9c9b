import {
  BIGINT,
  DOUBLE,
  type DuckDBAppender,
  DuckDBDataChunk,
  type DuckDBType,
  type DuckDBVector,
  INTEGER,
  UTINYINT,
} from '@duckdb/node-api'

/** Rows of a chunk, DuckDB's own size of a vector. */
const ROWS = 2048

/** Of a column that is no measurement. */
const types: Readonly<Record<string, DuckDBType>> = {
  cluster: INTEGER,
  key: INTEGER,
  t: BIGINT,
  way: UTINYINT,
}

/** What comes to one column: of each row, or the same to all of them; null: not known. */
export type Cells = Float64Array | readonly number[] | number | bigint | null

/** Rows for one table, written column by column: a call per value costs more than the value. */
export class ColumnRows {
  readonly #appender: DuckDBAppender
  readonly #chunk: DuckDBDataChunk
  readonly #vectors: readonly DuckDBVector<number | bigint>[]
  #count = 0

  /** @param names of all columns of the table, in its order */
  constructor(appender: DuckDBAppender, names: readonly string[]) {
    this.#appender = appender
    const columns = names.map((name) => types[name] ?? DOUBLE)
    this.#chunk = DuckDBDataChunk.create(columns, ROWS)
    // Every type above is one of numbers.
    this.#vectors = columns.map((_, at) => this.#chunk.getColumnVector(at) as DuckDBVector<number | bigint>)
  }

  /** @param cells of each column, in the order of the table */
  add(rows: number, cells: readonly Cells[]): void {
    for (let from = 0; from < rows; ) {
      const to = Math.min(rows, from + ROWS - this.#count)
      for (const [at, vector] of this.#vectors.entries()) fill(vector, this.#count, cells[at] ?? null, from, to)
      this.#count += to - from
      from = to
      if (this.#count === ROWS) this.#append()
    }
  }

  close(): void {
    if (this.#count > 0) this.#append()
    this.#appender.closeSync()
  }

  #append(): void {
    for (const vector of this.#vectors) vector.flush()
    if (this.#count < ROWS) this.#chunk.rowCount = this.#count
    this.#appender.appendDataChunk(this.#chunk)
    this.#count = 0
  }
}

function fill(vector: DuckDBVector<number | bigint>, at: number, cells: Cells, from: number, to: number): void {
  const isSame = cells === null || typeof cells !== 'object'
  for (let row = from; row < to; row++) {
    const value = isSame ? cells : (cells[row] as number) // as long as the rows
    vector.setItem(at + row - from, typeof value === 'number' && !Number.isFinite(value) ? null : value)
  }
}
