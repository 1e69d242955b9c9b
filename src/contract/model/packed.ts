import { type Chunk, compareKeys, type Labels, sizeOf } from './chunk.ts'
import { Column, columnOf, columnOfOne, MAX_CHUNK_ROWS } from './column.ts'
import { isJson, type JsonValue } from './json.ts'
import { isLabels, Table, type TableColumns } from './table.ts'
import { joinedTexts } from './texts.ts'

/*
 * Tables as JSON that repeats little: for stores, the log, and between processes of one hub. A chunk is packed as it is kept,
 * so that one that changed is written without the others.
 */

/** Values by row; or the distinct ones and, a character of 48 + its number per row, which each row has; all have one without. */
type PackedColumn = readonly JsonValue[] | { readonly words: readonly JsonValue[]; readonly codes?: string }

/** A chunk as plain values that JSON can carry. */
export interface PackedChunk {
  readonly names: readonly string[]
  readonly namespaces: PackedColumn
  readonly labels: PackedColumn
  /** in the order of the fields */
  readonly values: readonly PackedColumn[]
}

/** A table as plain values that JSON can carry. */
export interface PackedTable {
  readonly fields: readonly string[]
  readonly chunks: readonly PackedChunk[]
}

/** A table as plain values, chunk by chunk. */
export const packTable = ({ fields, chunks }: Table): PackedTable => ({ fields, chunks: chunks.map(packChunk) })

/** A chunk as plain values. */
export function packChunk(chunk: Chunk): PackedChunk {
  const size = sizeOf(chunk)
  return {
    names: [...chunk.keys.names],
    namespaces: packColumn(chunk.keys.namespaces, size),
    labels: packColumn(chunk.labels, size),
    values: chunk.columns.map((column) => packColumn(column, size)),
  }
}

const FIRST_CODE = 48

function packColumn({ words, codes, numbers, isOne }: Column, size: number): PackedColumn {
  if (isOne) return { words: [...words] }
  if (codes) return { words: [...words], codes: textOfCodes(codes, size) }
  return numbers ? valuesOfNumbers(numbers) : [...words]
}

// Plain loops: a chunk is packed each time it changes, and functions per value take most of that.
function textOfCodes(codes: Uint8Array, size: number): string {
  const units: number[] = []
  for (let row = 0; row < size; row++) units.push((codes[row] as number) + FIRST_CODE)
  return String.fromCharCode.apply(null, units)
}

function valuesOfNumbers(numbers: Float64Array): (number | null)[] {
  const values: (number | null)[] = []
  for (let row = 0; row < numbers.length; row++) {
    const number = numbers[row] as number
    values.push(Number.isNaN(number) ? null : number)
  }
  return values
}

/**
 * What packTable gave, after JSON, or what a former build wrote.
 * @returns undefined where it is nothing of the sort
 */
export function unpackTable(packed: PackedTable | FormerRows): Table | undefined {
  if (typeof packed !== 'object' || packed === null) return undefined
  if (!('chunks' in packed)) return formerTable(packed)
  const { fields, chunks } = packed
  if (!areTexts(fields) || !Array.isArray(chunks)) return undefined
  const made: Chunk[] = []
  for (const one of chunks) {
    const chunk = unpackChunk(one)
    if (!chunk) return undefined
    made.push(chunk)
  }
  return Table.ofChunks(fields, made)
}

/** What packChunk gave, after JSON. @returns undefined where it is nothing of the sort */
export function unpackChunk(packed: PackedChunk): Chunk | undefined {
  if (typeof packed !== 'object' || packed === null) return undefined
  const { names, namespaces, labels, values } = packed
  if (!areTexts(names) || names.length === 0 || names.length > MAX_CHUNK_ROWS || !Array.isArray(values))
    return undefined
  const size = names.length
  const [spaces, labelled] = [unpackColumn(namespaces, size, isText), unpackColumn(labels, size, isLabels)]
  const columns = values.map((column) => unpackColumn(column, size, isJson))
  if (!spaces || !labelled || !columns.every((column) => column !== undefined)) return undefined
  for (let row = 1; row < size; row++) {
    if (compareKeys(spaces.at(row - 1), names[row - 1] as string, spaces.at(row), names[row] as string) >= 0)
      return undefined
  }
  return { keys: { namespaces: spaces, names: joinedTexts(names) }, labels: labelled, columns }
}

function unpackColumn<T extends JsonValue>(
  packed: PackedColumn,
  size: number,
  is: (value: unknown) => value is T,
): Column<T> | undefined {
  if (Array.isArray(packed))
    return packed.length === size && packed.every((one) => is(one)) ? columnOf(packed) : undefined
  if (typeof packed !== 'object' || packed === null) return undefined
  const { words, codes } = packed as Exclude<PackedColumn, readonly unknown[]>
  if (!Array.isArray(words) || !words.every((one) => is(one))) return undefined
  if (codes === undefined) return words.length === 1 ? columnOfOne(words[0] as T) : undefined
  if (typeof codes !== 'string' || codes.length !== size) return undefined
  const places = new Uint8Array(size)
  for (let row = 0; row < size; row++) {
    const code = codes.charCodeAt(row) - FIRST_CODE
    if (!(code >= 0 && code < words.length && code < 256)) return undefined
    places[row] = code
  }
  return new Column<T>(words, places, null)
}

/** A table as builds wrote it before it had chunks: namespaces as runs, labels as distinct maps and a place for each row. */
export interface FormerRows {
  readonly fields: readonly string[]
  readonly namespaces: readonly (readonly [name: string, rows: number])[]
  readonly names: readonly string[]
  readonly labels: readonly Labels[]
  readonly labelOf: readonly number[]
  readonly values: TableColumns['values']
}

function formerTable({ fields, namespaces: runs, names, labels, labelOf, values }: FormerRows): Table | undefined {
  if (![runs, names, labels, labelOf].every(Array.isArray)) return undefined
  const namespaces: string[] = []
  for (const run of runs) {
    if (!Array.isArray(run)) return undefined
    const [name, count] = run
    if (!Number.isSafeInteger(count) || namespaces.length + count > names.length) return undefined
    for (let i = 0; i < count; i++) namespaces.push(name)
  }
  // A place that is none leaves a gap, which `from` refuses.
  return Table.from({ fields, namespaces, names, labels: labelOf.map((place) => labels[place] as Labels), values })
}

const isText = (value: unknown): value is string => typeof value === 'string'
const areTexts = (list: unknown): list is readonly string[] => Array.isArray(list) && list.every(isText)
