import { areEqual, type Column, columnInOrder, columnOf, columnWith, MAX_CHUNK_ROWS } from './column.ts'
import { bytesOfJson, type JsonValue, sameJson } from './json.ts'
import { JoinedTexts, joinedTexts, type Values } from './texts.ts'

/** Labels of an object, as Kubernetes has them. */
export type Labels = Readonly<Record<string, string>>

/** Namespaces and names of a chunk. Chunks that differ in their values only share them. */
export interface Keys {
  readonly namespaces: Column<string>
  readonly names: Values<string>
}

/** Some rows of a table that follow each other, immutable. */
export interface Chunk {
  readonly keys: Keys
  readonly labels: Column<Labels>
  /** in the order of the table's fields */
  readonly columns: readonly Column[]
}

/** A chunk has fewer rows only where it is the only one of its table. */
export const MIN_CHUNK_ROWS = MAX_CHUNK_ROWS / 4

/** By namespace, then name, in code units. */
export function compareKeys(namespaceA: string, nameA: string, namespaceB: string, nameB: string): number {
  if (namespaceA !== namespaceB) return namespaceA < namespaceB ? -1 : 1
  return nameA === nameB ? 0 : nameA < nameB ? -1 : 1
}

export const sizeOf = ({ keys }: Chunk): number => keys.names.length

/** How the key of a row compares with another. */
export const compareRow = ({ namespaces, names }: Keys, row: number, namespace: string, name: string): number =>
  compareKeys(namespaces.at(row), names.at(row) as string, namespace, name)

/** The first row, from `low`, whose key is this or comes after it; the size where there is none. */
export function firstNotBefore(keys: Keys, namespace: string, name: string, low = 0): number {
  let high = keys.names.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compareRow(keys, middle, namespace, name) < 0) low = middle + 1
    else high = middle
  }
  return low
}

/** Memory it keeps, about: a text that other chunks hold as well counts in each. */
export function bytesOfChunk({ keys, labels, columns }: Chunk): number {
  let bytes = 96 + keys.namespaces.bytes + labels.bytes
  if (keys.names instanceof JoinedTexts) bytes += keys.names.bytes
  else for (const name of keys.names) bytes += 8 + bytesOfJson(name)
  for (const column of columns) bytes += column.bytes
  return bytes
}

/** Rows by number, as plain values. */
export interface RowReader {
  readonly namespace: (row: number) => string
  readonly name: (row: number) => string
  readonly labels: (row: number) => Labels
  /** of the field at this place */
  readonly value: (at: number, row: number) => JsonValue
}

/**
 * The chunk with what comes to these rows: `put`, from row `first`. Namespaces and names are as they were; the very same chunk where
 * nothing differs.
 */
export function chunkWith(chunk: Chunk, rows: readonly number[], put: RowReader, first: number): Chunk {
  const size = sizeOf(chunk)
  const labels = columnWith(chunk.labels, size, rows, (i) => put.labels(first + i))
  let columns: Column[] | undefined
  for (let at = 0; at < chunk.columns.length; at++) {
    const column = chunk.columns[at] as Column
    if (isSameAt(column, at, rows, put, first)) continue
    columns ??= [...chunk.columns]
    columns[at] = columnWith(column, size, rows, (i) => put.value(at, first + i))
  }
  return columns || labels !== chunk.labels ? { keys: chunk.keys, labels, columns: columns ?? chunk.columns } : chunk
}

function isSameAt(column: Column, at: number, rows: readonly number[], put: RowReader, first: number): boolean {
  for (let i = 0; i < rows.length; i++) {
    if (!sameJson(column.at(rows[i] as number), put.value(at, first + i))) return false
  }
  return true
}

/** `put`, of the same keys, with those of `chunk` and its columns that are equal; the very same chunk where all are. */
export function chunkOver(chunk: Chunk, put: Chunk): Chunk {
  const { keys } = chunk
  const size = sizeOf(chunk)
  const over = <T extends JsonValue>(column: Column<T>, other: Column<T>): Column<T> =>
    areEqual(column, other, size) ? column : other
  const labels = over(chunk.labels, put.labels)
  const columns = put.columns.map((column, at) => over(chunk.columns[at] as Column, column))
  const is = (one: Chunk) => labels === one.labels && columns.every((column, at) => column === one.columns[at])
  return is(chunk) ? chunk : put.keys === keys && is(put) ? put : { keys, labels, columns }
}

/** Whether chunks name the same rows. */
export function sameKeys(a: Keys, b: Keys): boolean {
  if (a === b) return true
  const size = a.names.length
  if (size !== b.names.length || !areEqual(a.namespaces, b.namespaces, size)) return false
  if (a.names instanceof JoinedTexts && b.names instanceof JoinedTexts) return a.names.equals(b.names)
  for (let row = 0; row < size; row++) if (a.names.at(row) !== b.names.at(row)) return false
  return true
}

/** Rows of a chunk in rising order, all of them where there is no order; -1 - i is row i of what is put between them. */
export interface Piece {
  readonly chunk: Chunk
  readonly order?: Int32Array
}

const rowsOf = ({ chunk, order }: Piece): number => order?.length ?? sizeOf(chunk)
const read = (put: RowReader, at: number) => (row: number) => put.value(at, row)

/**
 * Chunks of all these rows, none too large or too small. Whole chunks stay the very same wherever they can.
 * @param put where an order names rows of it
 */
export function chunksOfPieces(pieces: Iterable<Piece>, put: RowReader): readonly Chunk[] {
  const chunks: Chunk[] = []
  let small: Piece[] = []
  let smallRows = 0
  const join = () => {
    chunks.push(...joined(small, smallRows, put))
    small = []
    smallRows = 0
  }
  for (const piece of pieces) {
    const rows = rowsOf(piece)
    if (rows === 0) continue
    if (smallRows === 0 && rows >= MIN_CHUNK_ROWS) {
      if (piece.order) for (const order of evenParts(piece.order)) chunks.push(inOrder(piece.chunk, order, put))
      else chunks.push(piece.chunk)
      continue
    }
    small.push(piece)
    smallRows += rows
    if (smallRows >= MIN_CHUNK_ROWS) join()
  }
  if (smallRows === 0) return chunks
  const before = chunks.pop()
  if (before) {
    small.unshift({ chunk: before })
    smallRows += sizeOf(before)
  }
  join()
  return chunks
}

function* evenParts(order: Int32Array): Generator<Int32Array> {
  for (const [from, to] of evenly(order.length)) yield order.subarray(from, to)
}

/** From where to where each of the fewest chunks of about the same size goes. */
export function* evenly(rows: number): Generator<readonly [from: number, to: number]> {
  const count = Math.ceil(rows / MAX_CHUNK_ROWS)
  for (let i = 0; i < count; i++) yield [Math.floor((i * rows) / count), Math.floor(((i + 1) * rows) / count)]
}

function inOrder({ keys, labels, columns }: Chunk, order: Int32Array, put: RowReader): Chunk {
  return {
    keys: {
      namespaces: columnInOrder(keys.namespaces, order, put.namespace),
      names: joinedTexts(
        Array.from(order, (from) => (from >= 0 ? (keys.names.at(from) as string) : put.name(-1 - from))),
      ),
    },
    labels: columnInOrder(labels, order, put.labels),
    columns: columns.map((column, at) => columnInOrder(column, order, read(put, at))),
  }
}

/** Columns made anew: what no row holds any more is gone. */
function joined(pieces: readonly Piece[], rows: number, put: RowReader): readonly Chunk[] {
  const gather = <T>(own: (chunk: Chunk) => (row: number) => T, other: (row: number) => T): T[] => {
    const values: T[] = []
    for (const { chunk, order } of pieces) {
      const at = own(chunk)
      const size = order?.length ?? sizeOf(chunk)
      for (let row = 0; row < size; row++) {
        const from = order ? (order[row] as number) : row
        values.push(from >= 0 ? at(from) : other(-1 - from))
      }
    }
    return values
  }
  return chunksOfColumns(rows, {
    namespaces: gather(
      ({ keys }) =>
        (row) =>
          keys.namespaces.at(row),
      put.namespace,
    ),
    names: gather(
      ({ keys }) =>
        (row) =>
          keys.names.at(row) as string,
      put.name,
    ),
    labels: gather(
      ({ labels }) =>
        (row) =>
          labels.at(row),
      put.labels,
    ),
    values: (pieces[0]?.chunk.columns ?? []).map((_, at) =>
      gather(
        ({ columns }) => {
          const column = columns[at] as Column
          return (row) => column.at(row)
        },
        read(put, at),
      ),
    ),
  })
}

/** Rows as plain columns of equal length. */
export interface PlainColumns {
  readonly namespaces: readonly string[]
  readonly names: readonly string[]
  readonly labels: readonly Labels[]
  readonly values: readonly (readonly JsonValue[])[]
}

/** @param columns sorted, no key twice */
export function chunksOfColumns(rows: number, { namespaces, names, labels, values }: PlainColumns): readonly Chunk[] {
  const chunks: Chunk[] = []
  for (const [from, to] of evenly(rows)) {
    chunks.push({
      keys: { namespaces: columnOf(namespaces, from, to), names: joinedTexts(names.slice(from, to)) },
      labels: columnOf(labels, from, to),
      columns: values.map((column) => columnOf(column, from, to)),
    })
  }
  return chunks
}
