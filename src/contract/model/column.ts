import { bytesOfJson, type JsonValue, sameJson } from './json.ts'
import { JoinedTexts, joinedTexts, type Values } from './texts.ts'

/** Rows of one chunk, at most. */
export const MAX_CHUNK_ROWS = 512
/** A place among the words takes a byte. */
const MAX_WORDS = 256
/** Codes of every column that holds one value only. */
const ALL_FIRST = new Uint8Array(MAX_CHUNK_ROWS)

/**
 * One column of a chunk, immutable, in the form that takes least: a dictionary (`words` and a byte per row), numbers (NaN is
 * null), or the values as they are. A column of two booleans and null is a dictionary of three words.
 */
export class Column<T extends JsonValue = JsonValue> {
  /** with codes: the distinct values, of which some may be of rows that are gone; without: by row, texts as one text; of numbers none */
  readonly words: Values<T>
  readonly codes: Uint8Array | null
  readonly numbers: Float64Array | null
  #bytes = -1

  constructor(words: Values<T>, codes: Uint8Array | null, numbers: Float64Array | null) {
    this.words = words
    this.codes = codes
    this.numbers = numbers
  }

  /** @param row of the chunk, below its size */
  at(row: number): T {
    // Distinct values are a list of their own.
    if (this.codes !== null) return (this.words as readonly T[])[this.codes[row] as number] as T
    if (this.numbers === null) return this.words.at(row) as T
    const number = this.numbers[row] as number
    return (Number.isNaN(number) ? null : number) as T // only columns of numbers and null have numbers
  }

  /** Of memory, about; a text that other columns hold as well counts in each. */
  get bytes(): number {
    if (this.#bytes < 0) {
      let bytes = 64 + (this.numbers?.byteLength ?? 0) + (this.isOne ? 0 : (this.codes?.byteLength ?? 0))
      if (this.words instanceof JoinedTexts) bytes += this.words.bytes
      else for (const word of this.words) bytes += 8 + bytesOfJson(word)
      this.#bytes = bytes
    }
    return this.#bytes
  }

  /** Whether all rows hold the first word. */
  get isOne(): boolean {
    return this.codes === ALL_FIRST
  }
}

/** A column that holds one value in every row, however many. */
export const columnOfOne = <T extends JsonValue>(value: T): Column<T> => new Column([value], ALL_FIRST, null)

/** The column of these values by row, without a look for equal ones. */
export const columnOfValues = <T extends JsonValue>(values: readonly T[]): Column<T> =>
  new Column(joinedTexts(values), null, null)

/** The column of values[from] up to values[to], MAX_CHUNK_ROWS at most. */
export function columnOf<T extends JsonValue>(values: readonly T[], from = 0, to = values.length): Column<T> {
  if (to - from === 1) return columnOfOne(values[from] as T)
  const places = new Map<T, number>()
  const codes = new Uint8Array(to - from)
  let [last, code]: [T | undefined, number] = [undefined, 0]
  for (let row = from; row < to; row++) {
    const value = values[row] as T
    if (value !== last) {
      let known = places.get(value)
      if (known === undefined) {
        // With more distinct values than half of the rows a dictionary saves little and takes long to make.
        if (places.size === MAX_WORDS || places.size > 16 + (row - from) / 2) return plainColumnOf(values, from, to)
        known = places.size
        places.set(value, known)
      }
      last = value
      code = known
    }
    codes[row - from] = code
  }
  return new Column([...places.keys()], places.size === 1 ? ALL_FIRST : codes, null)
}

function plainColumnOf<T extends JsonValue>(values: readonly T[], from: number, to: number): Column<T> {
  const numbers = new Float64Array(to - from)
  for (let row = from; row < to; row++) {
    const value = values[row] as T
    if (typeof value === 'number') numbers[row - from] = value + 0
    else if (value === null) numbers[row - from] = Number.NaN
    else return columnOfValues(values.slice(from, to))
  }
  return new Column<T>([], null, numbers)
}

/**
 * The column with other values in these rows, which stay in place.
 * @param value what comes to rows[i]
 * @returns the very same column where nothing differs
 */
export function columnWith<T extends JsonValue>(
  column: Column<T>,
  size: number,
  rows: readonly number[],
  value: (i: number) => T,
): Column<T> {
  if (rows.every((row, i) => sameJson(column.at(row), value(i)))) return column
  if (column.codes !== null) {
    const dictionary = new Dictionary(column.words)
    const codes = column.codes.slice(0, size)
    for (const [i, row] of rows.entries()) if (!dictionary.put(codes, row, value(i))) return rebuilt()
    return new Column(dictionary.words, codes, null)
  }
  if (column.numbers !== null) {
    const numbers = column.numbers.slice()
    for (const [i, row] of rows.entries()) if (!putNumber(numbers, row, value(i))) return rebuilt()
    return new Column<T>([], null, numbers)
  }
  const values = [...column.words]
  for (const [i, row] of rows.entries()) values[row] = value(i)
  return columnOfValues(values)

  function rebuilt(): Column<T> {
    const values = Array.from({ length: size }, (_, row) => column.at(row))
    for (const [i, row] of rows.entries()) values[row] = value(i)
    return columnOf(values)
  }
}

/** Whether two columns of so many rows hold the same. */
export function areEqual(a: Column, b: Column, size: number): boolean {
  if (a === b) return true
  const [one, other] = [a.words, b.words]
  if (one instanceof JoinedTexts && other instanceof JoinedTexts) return one.equals(other)
  // Equal dictionaries have equal codes; a dictionary in another order may hold the same.
  if (a.codes !== null && b.codes !== null && sameJson(one, other)) {
    for (let row = 0; row < size; row++) if (a.codes[row] !== b.codes[row]) return false
    return true
  }
  for (let row = 0; row < size; row++) if (!sameJson(a.at(row), b.at(row))) return false
  return true
}

/** Rows of two columns, one of each, in pairs. */
export interface RowPairs {
  readonly count: number
  readonly before: Int32Array
  readonly after: Int32Array
}

/** Marks the pairs of rows in which two columns differ. A loop per form: one for all would be many times as slow. */
export function markDifferences(a: Column, b: Column, pairs: RowPairs, differs: Uint8Array): void {
  const { count, before, after } = pairs
  const mark = (i: number): void => {
    if (!sameJson(a.at(before[i] as number), b.at(after[i] as number))) differs[i] = 1
  }
  // Of a dictionary that has grown from the other the same code is the same word.
  if (a.codes !== null && b.codes !== null && isGrownFrom(a.words, b.words)) markCodes(a.codes, b.codes, pairs, mark)
  else if (a.numbers !== null && b.numbers !== null) markNumbers(a.numbers, b.numbers, pairs, mark)
  else if (isPlain(a) && isPlain(b)) markWords(a.words, b.words, pairs, mark)
  else for (let i = 0; i < count; i++) mark(i)
}

const isPlain = ({ codes, numbers }: Column): boolean => codes === null && numbers === null

function markWords(
  a: Values<JsonValue>,
  b: Values<JsonValue>,
  { count, before, after }: RowPairs,
  mark: (i: number) => void,
): void {
  for (let i = 0; i < count; i++) if (a.at(before[i] as number) !== b.at(after[i] as number)) mark(i)
}

function markCodes(a: Uint8Array, b: Uint8Array, { count, before, after }: RowPairs, mark: (i: number) => void): void {
  for (let i = 0; i < count; i++) if (a[before[i] as number] !== b[after[i] as number]) mark(i)
}

function markNumbers(
  a: Float64Array,
  b: Float64Array,
  { count, before, after }: RowPairs,
  mark: (i: number) => void,
): void {
  for (let i = 0; i < count; i++) if (a[before[i] as number] !== b[after[i] as number]) mark(i)
}

function isGrownFrom(words: Values<JsonValue>, grown: Values<JsonValue>): boolean {
  if (words === grown) return true
  if (words.length > grown.length) return false
  for (let i = 0; i < words.length; i++) if (words.at(i) !== grown.at(i)) return false
  return true
}

/**
 * The column in another order, with others between: `order` has a row of the column, or -1 - i for value(i).
 * At most MAX_CHUNK_ROWS.
 */
export function columnInOrder<T extends JsonValue>(
  column: Column<T>,
  order: Int32Array,
  value: (i: number) => T,
): Column<T> {
  const size = order.length
  if (column.codes !== null) {
    const dictionary = new Dictionary(column.words)
    const codes = new Uint8Array(size)
    for (let row = 0; row < size; row++) {
      const from = order[row] as number
      if (from >= 0) codes[row] = column.codes[from] as number
      else if (!dictionary.put(codes, row, value(-1 - from))) return rebuilt()
    }
    return new Column(dictionary.words, column.isOne && dictionary.words.length === 1 ? ALL_FIRST : codes, null)
  }
  if (column.numbers === null) return columnOfValues(valuesInOrder(column, order, value))
  const numbers = new Float64Array(size)
  for (let row = 0; row < size; row++) {
    const from = order[row] as number
    if (from >= 0) numbers[row] = column.numbers[from] as number
    else if (!putNumber(numbers, row, value(-1 - from))) return rebuilt()
  }
  return new Column<T>([], null, numbers)

  function rebuilt(): Column<T> {
    return columnOf(valuesInOrder(column, order, value))
  }
}

/**
 * The column with each value changed, a word of a dictionary once however many rows have it.
 * @returns the very same column where nothing differs
 */
export function columnMapped(column: Column, size: number, change: (value: JsonValue) => JsonValue): Column {
  if (column.numbers === null) {
    const words = Array.from(column.words, change)
    if (words.every((word, i) => word === column.words.at(i))) return column
    return column.codes === null ? columnOfValues(words) : new Column(words, column.codes, null)
  }
  const values = Array.from({ length: size }, (_, row) => column.at(row))
  const changed = values.map(change)
  return changed.every((value, i) => value === values[i]) ? column : columnOf(changed)
}

function valuesInOrder<T extends JsonValue>(column: Column<T>, order: Int32Array, value: (i: number) => T): T[] {
  return Array.from(order, (from) => (from >= 0 ? column.at(from) : value(-1 - from)))
}

/** The words of a column, of which none goes, with those that come. */
class Dictionary<T extends JsonValue> {
  words: readonly T[]
  #own: T[] | undefined

  constructor(words: Values<T>) {
    this.words = Array.isArray(words) ? words : [...words]
  }

  /** false: there are too many words, of which many may be unused */
  put(codes: Uint8Array, row: number, value: T): boolean {
    let code = this.words.indexOf(value)
    if (code < 0 && typeof value === 'object') code = this.words.findIndex((word) => sameJson(word, value))
    if (code < 0) {
      code = this.words.length
      if (code === MAX_WORDS) return false
      this.#own ??= this.words.slice()
      this.#own.push(value)
      this.words = this.#own
    }
    codes[row] = code
    return true
  }
}

function putNumber(numbers: Float64Array, row: number, value: JsonValue): boolean {
  if (typeof value !== 'number' && value !== null) return false
  numbers[row] = value === null ? Number.NaN : value + 0
  return true
}
