import type { RowKind } from '#metricsource'
import { type Chunk, type Column, type Health, type JsonValue, type ScalarValue, sizeOf } from '#model'
import { ChunkMemo } from './chunk-memo.ts'
import type { GroupNumbers, Level } from './group-numbers.ts'
import { columnOf, type RowColumn } from './row-columns.ts'
import { listRows, type RowSet } from './row-set.ts'
import type { VisibleType } from './visible-types.ts'

/*
 * Rows of a chunk are counted by the place of their value among the distinct values of the chunk; texts are compared once per distinct
 * value and chunk.
 */

/** Of a chunk. */
const MOST_ROWS = 512

/** From the worst to the best; as places of a list. */
export const healths: readonly Health[] = ['unhealthy', 'degraded', 'unknown', 'healthy']
/** No row of the group says anything. */
export const UNSAID = healths.length

/** The distinct values of a column of a chunk, and of each row which it has. */
interface Coded {
  readonly values: readonly ScalarValue[]
  /** undefined: all rows have the first */
  readonly codes: Uint8Array | Uint16Array | undefined
}

/** Codes of some columns of a million rows. */
const memo = new ChunkMemo(32 * 2 ** 20)
const bytesOfCoded = ({ values, codes }: Coded): number => 100 + 8 * values.length + (codes?.byteLength ?? 0)

/** Three numbers of each group: its own, how many rows, and the place of the worst health among them. */
export type GroupCounts = Int32Array
export const NUMBERS_OF_GROUP = 3

const rowsOfChunk = new Uint16Array(MOST_ROWS)

/** Counts rows of chunks of one type. */
export class ChunkCounter {
  readonly #columns: readonly CodedColumn[]
  readonly #health: RowHealth
  readonly #numbers: GroupNumbers

  /** @throws RefusedError `invalid_parameter`: there is no such column */
  constructor(type: VisibleType, by: readonly string[], numbers: GroupNumbers) {
    this.#columns = by.map((name) => new CodedColumn(columnOf(type, name)))
    this.#health = new RowHealth(type)
    this.#numbers = numbers
  }

  count(chunk: Chunk, rows: RowSet): GroupCounts {
    const size = sizeOf(chunk)
    const { levels, codes } = combined(
      this.#columns.map((column) => column.of(chunk)),
      size,
    )
    this.#numbers.begin(levels)
    return countCodes(codes, listRows(rows, size, rowsOfChunk), this.#health.of(chunk), this.#numbers)
  }
}

class CodedColumn {
  readonly #column: RowColumn
  readonly #coded

  constructor(column: RowColumn) {
    this.#column = column
    this.#coded = memo.answers<Coded>(column.reading, bytesOfCoded)
  }

  of(chunk: Chunk): Coded {
    const column = this.#column.of(chunk)
    return this.#coded.of(column, () => this.#make(column, sizeOf(chunk)))
  }

  #make(column: Column, size: number): Coded {
    const { words, codes } = column
    if (column.isOne) return { values: [this.#column.read(words.at(0) as JsonValue)], codes: undefined }
    if (codes) return { values: Array.from(words, (word) => this.#column.read(word)), codes }
    const places = new Map<ScalarValue, number>()
    const made = new Uint16Array(size)
    for (let row = 0; row < size; row++) {
      const key = this.#column.read(column.at(row))
      let place = places.get(key)
      if (place === undefined) {
        place = places.size
        places.set(key, place)
      }
      made[row] = place
    }
    return { values: [...places.keys()], codes: made }
  }
}

interface Combined {
  readonly levels: readonly Level[]
  /** of each row its combination; undefined: all have the first */
  readonly codes: Uint8Array | Uint16Array | undefined
}

/** By pair of codes of two columns, the code of the pair, and one more; zero between two uses. */
const codesOfPairs = new Uint16Array(MOST_ROWS * MOST_ROWS)
const allZero = new Uint16Array(MOST_ROWS)

function combined(columns: readonly Coded[], size: number): Combined {
  let codes: Combined['codes']
  const levels = columns.map(({ values, codes: own }): Level => {
    if (!own) return { values, ownOf: allZero, parentOf: undefined }
    if (!codes) {
      codes = own
      return { values, ownOf: undefined, parentOf: allZero }
    }
    const paired = pairs(codes, own, values.length, size)
    codes = paired.codes
    return { values, ...paired }
  })
  return { levels, codes }
}

function pairs(left: NonNullable<Combined['codes']>, right: NonNullable<Coded['codes']>, width: number, size: number) {
  const [codes, parentOf, ownOf] = [new Uint16Array(size), new Uint16Array(size), new Uint16Array(size)]
  let count = 0
  for (let row = 0; row < size; row++) {
    const [parent, value] = [left[row] as number, right[row] as number]
    const pair = parent * width + value
    let code = codesOfPairs[pair] as number
    if (code === 0) {
      parentOf[count] = parent
      ownOf[count] = value
      count += 1
      code = count
      codesOfPairs[pair] = code
    }
    codes[row] = code - 1
  }
  for (let code = 0; code < count; code++)
    codesOfPairs[(parentOf[code] as number) * width + (ownOf[code] as number)] = 0
  return { codes, parentOf, ownOf }
}

/** By code, for one chunk; zero between two uses. */
const counts = new Uint16Array(MOST_ROWS)
const worsts = new Uint8Array(MOST_ROWS)
const met = new Uint16Array(MOST_ROWS)

/** @param count of the rows that are listed */
function countCodes(
  codes: Combined['codes'],
  count: number,
  health: Uint8Array | undefined,
  numbers: GroupNumbers,
): GroupCounts {
  let distinct = 0
  for (let i = 0; i < count; i++) {
    const row = rowsOfChunk[i] as number
    const code = codes ? (codes[row] as number) : 0
    if (counts[code] === 0) {
      met[distinct++] = code
      worsts[code] = UNSAID
    }
    counts[code] = (counts[code] as number) + 1
    if (health !== undefined && (health[row] as number) < (worsts[code] as number)) worsts[code] = health[row] as number
  }
  const made = new Int32Array(distinct * NUMBERS_OF_GROUP)
  for (let i = 0; i < distinct; i++) {
    const code = met[i] as number
    made[NUMBERS_OF_GROUP * i] = numbers.of(code)
    made[NUMBERS_OF_GROUP * i + 1] = counts[code] as number
    made[NUMBERS_OF_GROUP * i + 2] = worsts[code] as number
    counts[code] = 0
  }
  return made
}

/** What the rows of a kind say of themselves. */
class RowHealth {
  readonly #columns: readonly { readonly column: RowColumn; readonly health: Readonly<Record<string, Health>> }[]
  readonly #known

  constructor(type: VisibleType) {
    const { columns, id, hash }: RowKind = type.source
    this.#columns = columns.flatMap(({ name, health }) => (health ? [{ column: columnOf(type, name), health }] : []))
    this.#known = memo.answers<Uint8Array>(`health ${id} ${hash}`, ({ byteLength }) => 100 + byteLength)
  }

  /** By row, the place among the healths. @returns undefined: rows of this kind say nothing */
  of(chunk: Chunk): Uint8Array | undefined {
    const [first, ...more] = this.#columns
    if (!first) return undefined
    const about = more.length === 0 ? first.column.of(chunk) : chunk
    const known = this.#known.of(about, () => this.#make(chunk))
    return known.length >= sizeOf(chunk) ? known : this.#make(chunk)
  }

  #make(chunk: Chunk): Uint8Array {
    const worst = new Uint8Array(sizeOf(chunk)).fill(UNSAID)
    for (const { column, health } of this.#columns) {
      const values = column.of(chunk)
      const said = (raw: JsonValue): number => {
        const value = column.read(raw)
        return value === null ? UNSAID : healths.indexOf(health[String(value)] ?? 'degraded')
      }
      const ofWords = values.codes ? Array.from(values.words, said) : undefined
      for (let row = 0; row < worst.length; row++) {
        const own = ofWords && values.codes ? (ofWords[values.codes[row] as number] as number) : said(values.at(row))
        if (own < (worst[row] as number)) worst[row] = own
      }
    }
    return worst
  }
}

/** By number of a group, while some are added up; zero between two uses. */
let sums = new Int32Array(1024)
let worstOf = new Uint8Array(1024)
let numbersMet = new Int32Array(1024)

/** What several chunks, or tables, come to. @param most the greatest number of a group, and one more */
export function addedUp(all: readonly GroupCounts[], most: number): GroupCounts {
  const [first, second] = all
  if (first && !second) return first
  if (sums.length < most) {
    sums = new Int32Array(2 * most)
    worstOf = new Uint8Array(2 * most)
    numbersMet = new Int32Array(2 * most)
  }
  let distinct = 0
  for (const counted of all) {
    for (let i = 0; i < counted.length; i += NUMBERS_OF_GROUP) {
      const [number, worst] = [counted[i] as number, counted[i + 2] as number]
      const count = sums[number] as number
      if (count === 0) numbersMet[distinct++] = number
      if (count === 0 || worst < (worstOf[number] as number)) worstOf[number] = worst
      sums[number] = count + (counted[i + 1] as number)
    }
  }
  const made = new Int32Array(distinct * NUMBERS_OF_GROUP)
  for (let i = 0; i < distinct; i++) {
    const number = numbersMet[i] as number
    made[NUMBERS_OF_GROUP * i] = number
    made[NUMBERS_OF_GROUP * i + 1] = sums[number] as number
    made[NUMBERS_OF_GROUP * i + 2] = worstOf[number] as number
    sums[number] = 0
  }
  return made
}
