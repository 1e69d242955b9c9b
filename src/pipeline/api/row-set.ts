import type { Column, JsonValue } from '#model'

/** Some rows of one chunk, a bit each; immutable. `allRows` and `noRows` stand for themselves, whatever the size. */
export type RowSet = Uint32Array

export const noRows: RowSet = new Uint32Array(0)
export const allRows: RowSet = new Uint32Array(0)

const wordsFor = (size: number): number => (size + 31) >> 5

/** As `allRows` or `noRows` where it is one of these. */
function plain(set: Uint32Array, size: number): RowSet {
  const count = bitsOf(set)
  return count === 0 ? noRows : count === size ? allRows : set
}

function bitsOf(set: Uint32Array, words = set.length): number {
  let count = 0
  for (let i = 0; i < words; i++) {
    let word = set[i] as number
    word -= (word >>> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333)
    count += (((word + (word >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24
  }
  return count
}

export const countOf = (set: RowSet, size: number): number => (set === allRows ? size : bitsOf(set))

export const hasRow = (set: RowSet, row: number): boolean =>
  set === allRows || ((set[row >> 5] ?? 0) & (1 << (row & 31))) !== 0

export function both(a: RowSet, b: RowSet, size: number): RowSet {
  if (a === noRows || b === allRows) return a
  if (b === noRows || a === allRows) return b
  return plain(
    a.map((word, i) => word & (b[i] as number)),
    size,
  )
}

export function either(a: RowSet, b: RowSet, size: number): RowSet {
  if (a === allRows || b === noRows) return a
  if (b === allRows || a === noRows) return b
  return plain(
    a.map((word, i) => word | (b[i] as number)),
    size,
  )
}

export function others(set: RowSet, size: number): RowSet {
  if (set === allRows) return noRows
  if (set === noRows) return allRows
  const made = set.map((word) => ~word)
  if (size & 31) made[made.length - 1] = (made[made.length - 1] as number) & ((1 << (size & 31)) - 1)
  return made
}

/** @param rows of the chunk */
export function setOfRows(rows: Iterable<number>, size: number): RowSet {
  const set = new Uint32Array(wordsFor(size))
  for (const row of rows) set[row >> 5] = (set[row >> 5] as number) | (1 << (row & 31))
  return plain(set, size)
}

/** A copy of the bits, whose words beyond those of the size are not looked at. */
export const setOfBits = (bits: Uint32Array, size: number): RowSet => {
  const count = bitsOf(bits, wordsFor(size))
  return count === 0 ? noRows : count === size ? allRows : bits.slice(0, wordsFor(size))
}

/** The rows whose value passes; a value that several rows share is asked about once, where the column keeps it once. */
export function setOfColumn<T extends JsonValue>(column: Column<T>, size: number, test: (value: T) => boolean): RowSet {
  if (column.isOne) return test(column.words.at(0) as T) ? allRows : noRows
  const { words, codes, numbers } = column
  let passing: Uint8Array | undefined
  if (codes !== null) {
    passing = new Uint8Array(words.length)
    let count = 0
    for (let code = 0; code < words.length; code++) if (test(words.at(code) as T)) count += passing[code] = 1
    if (count === 0) return noRows
    if (count === words.length) return allRows
  }
  const set = new Uint32Array(wordsFor(size))
  const put = (row: number): void => {
    set[row >> 5] = (set[row >> 5] as number) | (1 << (row & 31))
  }
  if (codes !== null && passing) {
    for (let row = 0; row < size; row++) if (passing[codes[row] as number]) put(row)
  } else if (numbers !== null) {
    const isNothing = test(null as T) // NaN is null
    for (let row = 0; row < size; row++) {
      const number = numbers[row] as number
      if (Number.isNaN(number) ? isNothing : test(number as T)) put(row)
    }
  } else for (let row = 0; row < size; row++) if (test(words.at(row) as T)) put(row)
  return plain(set, size)
}

/** From the first to the last. */
export function* rowsOf(set: RowSet, size: number): Generator<number> {
  if (set === allRows) for (let row = 0; row < size; row++) yield row
  else {
    for (let i = 0; i < set.length; i++) {
      for (let word = set[i] as number; word !== 0; word &= word - 1) yield (i << 5) + 31 - Math.clz32(word & -word)
    }
  }
}

/** Puts the rows into `list`, from the first to the last. @returns how many */
export function listRows(set: RowSet, size: number, list: Uint16Array): number {
  let count = 0
  if (set === allRows) for (; count < size; count++) list[count] = count
  else {
    for (let i = 0; i < set.length; i++) {
      for (let word = set[i] as number; word !== 0; word &= word - 1)
        list[count++] = (i << 5) + 31 - Math.clz32(word & -word)
    }
  }
  return count
}
