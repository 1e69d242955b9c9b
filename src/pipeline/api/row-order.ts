import { type Chunk, type Column, type Health, invariant, type JsonValue, type ScalarValue, sizeOf } from '#model'
import { type Steps, sortedSteps } from '#runtime'
import type { Best } from './best.ts'
import { ChunkMemo, isKept } from './chunk-memo.ts'
import type { ChunkRows, MatchingTable } from './matching.ts'
import { InvalidCursorError, readCursor, writeCursor } from './page.ts'
import { columnOf, type RowColumn } from './row-columns.ts'
import { allRows, listRows, type RowSet } from './row-set.ts'
import { byText } from './views.ts'
import type { VisibleType } from './visible-types.ts'

/** A row among several clusters as one number: numbers rise as clusters do by name, and rows by namespace and name. */
export const SPAN = 2 ** 32

/** Some rows of one chunk of one of several types. */
export interface Part {
  /** of the type, among those that are asked */
  readonly number: number
  readonly chunk: Chunk
  /** the number of its first row */
  readonly start: number
  readonly rows: RowSet
}

/** No row stands before `first`, or behind `last`. */
export interface Ranged {
  readonly first: Position
  readonly last: Position
}

/** Rows of one table that were found; parts are made where they are looked at. */
export interface BoundedTable extends Ranged {
  /** @param worst those that have only greater values are left out */
  readonly parts: (worst: Position | undefined) => (Ranged & { readonly part: Part })[]
}

/** A row, or where one would be: by what it is sorted, then by where it lies. */
export interface Position {
  readonly value: ScalarValue
  readonly at: number
}

/** Between what values some rows lie. */
interface Bounds {
  /** of the values that are there; null: there are none */
  readonly low: ScalarValue
  readonly high: ScalarValue
  readonly hasNothing: boolean
}

/** The same of a table, and of each of its parts. */
interface TableBounds extends Bounds {
  readonly parts: readonly Bounds[]
}

/** What the rows of a chunk are sorted by. */
interface SortKeys extends Bounds {
  /** by word of the column, as the column has them; null: they are its values */
  readonly keys: readonly ScalarValue[] | null
}

/** A million rows by five columns, of which names and addresses alone have keys of their own. */
const memo = new ChunkMemo(32 * 2 ** 20)
const bytesOfKeys = (keys: SortKeys): number => 120 + 8 * (keys.keys?.length ?? 0)
const bytesOfBounds = (bounds: Bounds | TableBounds): number => 80 + 80 * ('parts' in bounds ? bounds.parts.length : 0)
const rowsOfChunk = new Uint16Array(512)

const ranks: Readonly<Record<Health, number>> = { unhealthy: 0, degraded: 1, unknown: 2, healthy: 3 }

/** What words are compared by: of those that say how well something is that first, of versions their numbers. */
function wordKeyOf(
  { source }: VisibleType,
  sort: string,
): { readonly of: (word: string) => string; readonly name: string } {
  const { health, isVersion } = source.columns.find(({ name }) => name === sort) ?? {}
  if (isVersion) return { of: versionKey, name: 'version' }
  if (!health) return { of: (word) => word, name: '' }
  return {
    of: (word) => `${ranks[health[word] ?? 'degraded']} ${word}`,
    name: `health ${source.id} ${source.hash} ${sort}`,
  }
}

/** Numbers with their digits filled up, so that they compare as text; what is appended sorts a pre-release before its release, and 1.2 before 1.2.3. */
function versionKey(word: string): string {
  const filled = word.replace(/^v(?=\d)/, '').replaceAll(/\d+/g, (digits) => digits.padStart(10, '0'))
  return `${filled}#`.replace('-', '!')
}

/** Whether rows are in one namespace, and called what they are sorted by. */
function liesByName({ rows, source }: VisibleType): boolean {
  if (rows.size === 0) return true
  const name = rows.nameAt(0)
  return source.rowName(name) === name && rows.namespaceAt(0) === rows.namespaceAt(rows.size - 1)
}

/** What one type is sorted by. */
class SortColumn {
  readonly #column: RowColumn
  readonly #wordKey: (word: string) => string
  readonly #question: string
  readonly #sort: string
  readonly #keys

  /** @throws RefusedError `invalid_parameter`: there is no such column */
  constructor(type: VisibleType, sort: string) {
    this.#column = columnOf(type, sort)
    const { of, name } = wordKeyOf(type, sort)
    this.#wordKey = of
    this.#question = JSON.stringify([this.#column.reading, name])
    this.#keys = memo.answers<SortKeys>(this.#question, bytesOfKeys)
    this.#sort = sort
  }

  /** Between what values the rows that were found lie, kept with the table and of each chunk. */
  *boundsIn({ table, parts, question }: MatchingTable): Steps<TableBounds> {
    if (!isKept(table)) return yield* this.#tableBounds(parts, (chunk, rows) => this.#boundsOf(chunk, rows))
    const asked = JSON.stringify([question, this.#sort, this.#question])
    const known = memo.answers<Bounds>(`${asked} chunk`, bytesOfBounds)
    const boundsOf = (chunk: Chunk, rows: RowSet) => known.of(chunk, () => this.#boundsOf(chunk, rows))
    return yield* memo.answers<TableBounds>(asked, bytesOfBounds).steps(table, () => this.#tableBounds(parts, boundsOf))
  }

  *#tableBounds(parts: readonly ChunkRows[], boundsOf: (chunk: Chunk, rows: RowSet) => Bounds): Steps<TableBounds> {
    const all: Bounds[] = []
    for (const { chunk, rows } of parts) {
      all.push(rows === allRows ? this.of(chunk) : boundsOf(chunk, rows))
      yield
    }
    return { ...joinedBounds(all), parts: all }
  }

  #boundsOf(chunk: Chunk, rows: RowSet): Bounds {
    const { column, keys } = this.of(chunk)
    const { codes, numbers } = column
    let [low, high, hasNothing]: [ScalarValue, ScalarValue, boolean] = [null, null, false]
    const count = listRows(rows, sizeOf(chunk), rowsOfChunk)
    for (let i = 0; i < count; i++) {
      const row = rowsOfChunk[i] as number
      let value: ScalarValue
      if (keys !== null) value = keys[codes === null ? row : (codes[row] as number)] as ScalarValue
      else if (numbers !== null) {
        const found = numbers[row] as number
        value = Number.isNaN(found) ? null : found
      } else value = column.at(row) as ScalarValue // keys are its values
      if (value === null) hasNothing = true
      else if (low === null || high === null) [low, high] = [value, value]
      else if (compareValues(value, low) < 0) low = value
      else if (compareValues(value, high) > 0) high = value
    }
    return { low, high, hasNothing }
  }

  of(chunk: Chunk): { readonly column: Column } & SortKeys {
    const column = this.#column.of(chunk)
    const { keys, low, high, hasNothing } = this.#keys.of(column, (one) => this.#make(one))
    return { column, keys, low, high, hasNothing }
  }

  /** Of one row, without the others. */
  valueAt(chunk: Chunk, row: number): ScalarValue {
    return this.#key(this.#column.of(chunk).at(row))
  }

  #key(raw: JsonValue): ScalarValue {
    const value = this.#column.read(raw)
    return typeof value === 'string' ? this.#wordKey(value) : value
  }

  #make({ words, codes, numbers }: Column): SortKeys {
    if (numbers) return { keys: null, ...boundsOfNumbers(numbers) }
    const keys = Array.from(words, (word) => this.#key(word))
    let [low, high]: [ScalarValue, ScalarValue] = [null, null]
    for (const key of keys) {
      if (key === null) continue
      if (low === null || compareValues(key, low) < 0) low = key
      if (high === null || compareValues(key, high) > 0) high = key
    }
    const hasNothing = keys.includes(null)
    // Words are mostly their own keys.
    if (!keys.every((key, i) => key === words.at(i))) return { keys, low, high, hasNothing }
    // Distinct values are a list of their own.
    return { keys: codes ? (words as readonly ScalarValue[]) : null, low, high, hasNothing }
  }
}

function joinedBounds(all: readonly Bounds[]): Bounds {
  let [low, high]: [ScalarValue, ScalarValue] = [null, null]
  for (const one of all) {
    if (one.low !== null && (low === null || compareValues(one.low, low) < 0)) low = one.low
    if (one.high !== null && (high === null || compareValues(one.high, high) > 0)) high = one.high
  }
  return { low, high, hasNothing: all.some(({ hasNothing }) => hasNothing) }
}

function boundsOfNumbers(numbers: Float64Array): Bounds {
  let [low, high, hasNothing] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, false]
  for (let row = 0; row < numbers.length; row++) {
    const number = numbers[row] as number
    if (number < low) low = number
    if (number > high) high = number
    hasNothing ||= Number.isNaN(number)
  }
  return low > high ? { low: null, high: null, hasNothing } : { low, high, hasNothing }
}

/** Rows of several clusters in one order: by value, then as they lie. null sorts last, whichever way. */
export class RowOrder {
  /** rows already lie in this order */
  readonly isNatural: boolean
  readonly #types: readonly VisibleType[]
  readonly #columns: readonly SortColumn[]
  readonly #sort: string
  readonly #order: 'asc' | 'desc'
  readonly #direction: 1 | -1

  /** @throws RefusedError `invalid_parameter`: there is no such column */
  constructor(types: readonly VisibleType[], sort: string, order: 'asc' | 'desc') {
    this.#types = types
    // Clusters stand by name, and rows of one by namespace, then by name.
    const isOne = types.length < 2
    this.isNatural =
      sort === 'cluster' || (isOne && (sort === 'namespace' || (sort === 'name' && types.every(liesByName))))
    this.#columns = this.isNatural ? [] : types.map((type) => new SortColumn(type, sort))
    this.#sort = sort
    this.#order = order
    this.#direction = order === 'asc' ? 1 : -1
  }

  compare(left: Position, right: Position): number {
    return this.#compare(left.value, left.at, right.value, right.at)
  }

  /** Where the rows of a table, and of each of its parts, stand. */
  *boundsIn(found: MatchingTable): Steps<BoundedTable> {
    const { number, table } = found
    const bounds = yield* this.#of(number).boundsIn(found)
    const from = number * SPAN
    return {
      ...this.#ranged(bounds, from, from + table.size - 1),
      parts: (worst) =>
        found.parts.flatMap(({ chunk, start, rows }, i) => {
          const own = bounds.parts[i] as Bounds // one for each
          if (worst && this.#compareValues(this.#direction > 0 ? own.low : own.high, worst.value) > 0) return []
          const ranged = this.#ranged(own, from + start, from + start + sizeOf(chunk) - 1)
          return [{ part: { number, chunk, start: from + start, rows }, ...ranged }]
        }),
    }
  }

  #ranged({ low, high, hasNothing }: Bounds, start: number, end: number): Ranged {
    const isRising = this.#direction > 0
    const [firstAt, lastAt] = isRising ? [start, end] : [end, start]
    const first = { value: isRising ? low : high, at: firstAt }
    return { first, last: { value: hasNothing ? null : isRising ? high : low, at: lastAt } }
  }

  /** Adds what is better than the worst that is kept. @param rows of the part, the first `count` */
  addBest(
    best: Best<Position>,
    { number, chunk, start }: Part,
    rows: Uint16Array,
    count: number,
    after?: Position,
  ): void {
    const { column, keys } = this.#of(number).of(chunk)
    const { codes, numbers } = column
    let { bound } = best
    // Most rows are behind what is kept by their value alone, which many share.
    const isBehind = (value: ScalarValue): boolean => bound !== undefined && this.#compareValues(value, bound.value) > 0
    const behind = keys !== null && codes !== null ? keys.map(isBehind) : undefined
    for (let i = 0; i < count; i++) {
      const row = rows[i] as number
      let value: ScalarValue
      if (keys !== null) {
        if (behind?.[(codes as Uint8Array)[row] as number]) continue
        value = keys[codes === null ? row : (codes[row] as number)] as ScalarValue
      } else if (numbers !== null) {
        const found = numbers[row] as number
        value = Number.isNaN(found) ? null : found
      } else value = column.at(row) as ScalarValue // keys are its values
      const at = start + row
      if (bound !== undefined && this.#compare(value, at, bound.value, bound.at) >= 0) continue
      if (after !== undefined && this.#compare(value, at, after.value, after.at) <= 0) continue
      best.add({ value, at })
      bound = best.bound
    }
  }

  /** All rows of these parts, by number. */
  *sorted(parts: Iterable<Part>): Steps<readonly number[]> {
    const all: Position[] = []
    const rows = new Uint16Array(512)
    for (const { number, chunk, start, rows: set } of parts) {
      const column = this.#of(number)
      const count = listRows(set, sizeOf(chunk), rows)
      for (let i = 0; i < count; i++) {
        const row = rows[i] as number
        all.push({ value: column.valueAt(chunk, row), at: start + row })
      }
      yield
    }
    const sorted = yield* sortedSteps(all, (left, right) => this.compare(left, right))
    return sorted.map(({ at }) => at)
  }

  cursorOf(at: number): string {
    const type = this.#typeOf(at)
    const { rows, cluster, source } = type
    const place = at % SPAN
    const key = JSON.stringify([cluster.name, rows.namespaceAt(place), rows.nameAt(place)])
    // By name rows may lie in order on this page, and not on the next.
    const value = this.#sort === 'name' ? source.rowName(rows.nameAt(place)) : this.#valueOf(at)
    return writeCursor([value, key], this.#sort, this.#order)
  }

  /** Where the row of a cursor is, or would be: half a place before the first that comes after it. @throws InvalidCursorError */
  positionOf(cursor: string): Position {
    const [written, key] = readCursor(cursor, this.#sort, this.#order)
    const value = this.isNatural ? null : written
    const [cluster, namespace, name] = keyOf(key)
    const number = this.#types.findIndex((type) => byText(type.cluster.name, cluster) >= 0)
    const type = this.#types[number]
    if (!type) return { value, at: this.#types.length * SPAN }
    if (type.cluster.name !== cluster) return { value, at: number * SPAN - 0.5 }
    return { value, at: number * SPAN + this.#placeOf(type, namespace, name) }
  }

  /** Where the row is; half a place off where it would be. */
  #placeOf({ rows }: VisibleType, namespace: string, name: string): number {
    // By name rows lie in order where they are of one namespace, which those of the page before may not have been.
    const own = this.isNatural && this.#sort === 'name' && rows.size > 0 ? rows.namespaceAt(0) : namespace
    const found = rows.indexOf(own, name)
    if (found < 0) return rows.firstNotBefore(own, name) - 0.5
    return found + Math.sign(byText(namespace, own)) / 2
  }

  #typeOf(at: number): VisibleType {
    const type = this.#types[Math.floor(at / SPAN)]
    invariant(type, 'a row is of one of the clusters')
    return type
  }

  #of(number: number): SortColumn {
    const column = this.#columns[number]
    invariant(column, 'a part is of one of the clusters, and is sorted')
    return column
  }

  /** What a row is compared by besides where it lies. */
  #valueOf(at: number): ScalarValue {
    if (this.isNatural) return null
    const { rows } = this.#typeOf(at)
    const place = at % SPAN
    const chunk = rows.chunkAt(place)
    return this.#of(Math.floor(at / SPAN)).valueAt(rows.chunks[chunk] as Chunk, place - rows.startOf(chunk))
  }

  #compare(left: ScalarValue, leftAt: number, right: ScalarValue, rightAt: number): number {
    return this.#compareValues(left, right) || this.#direction * (leftAt - rightAt)
  }

  #compareValues(left: ScalarValue, right: ScalarValue): number {
    if (left === right) return 0
    if (left === null || right === null) return left === null ? 1 : -1
    return this.#direction * compareValues(left, right)
  }
}

type Present = NonNullable<ScalarValue>
const kindRanks: Readonly<Record<string, number>> = { number: 0, boolean: 1, string: 2 }

/** What depends may be of several kinds: each kind stands together. */
export function compareValues(left: Present, right: Present): number {
  if (typeof left === 'string' && typeof right === 'string') return byText(left, right)
  if (typeof left !== typeof right) return (kindRanks[typeof left] ?? 0) - (kindRanks[typeof right] ?? 0)
  return Number(left) - Number(right)
}

function keyOf(text: string): readonly [cluster: string, namespace: string, name: string] {
  let key: unknown
  try {
    key = JSON.parse(text)
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new InvalidCursorError()
  }
  const [cluster, namespace, name] = Array.isArray(key) ? (key as unknown[]) : []
  if (typeof cluster !== 'string' || typeof namespace !== 'string' || typeof name !== 'string')
    throw new InvalidCursorError()
  return [cluster, namespace, name]
}

// ── rows one by one ──────────────────────────────────────────────────────────────────────────────────────────────────

/** What rows of a type are sorted by, by place. @throws RefusedError `invalid_parameter` */
export function sortValues(type: VisibleType, sort: string): (place: number) => ScalarValue {
  const column = new SortColumn(type, sort)
  const { rows } = type
  return (place) => {
    const chunk = rows.chunkAt(place)
    return column.valueAt(rows.chunks[chunk] as Chunk, place - rows.startOf(chunk)) // below their number
  }
}

/** A row with what it is sorted by, wherever its table is. */
export interface Placed {
  readonly value: ScalarValue
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/** The row that a cursor names, with what it was sorted by then. @throws InvalidCursorError of another order */
export function placedAt(cursor: string, sort: string, order: 'asc' | 'desc'): Placed {
  const [written, key] = readCursor(cursor, sort, order)
  const [cluster, namespace, name] = keyOf(key)
  // Where rows lie in order, nothing else is written of them.
  const lies = sort === 'cluster' ? cluster : sort === 'namespace' ? namespace : null
  return { value: lies ?? written, cluster, namespace, name }
}

/** The order of `orderedRows`, of rows one by one. */
export function comparePlaced(left: Placed, right: Placed, order: 'asc' | 'desc'): number {
  const direction = order === 'asc' ? 1 : -1
  const lies = (): number =>
    byText(left.cluster, right.cluster) || byText(left.namespace, right.namespace) || byText(left.name, right.name)
  if (left.value === right.value) return direction * lies()
  if (left.value === null || right.value === null) return left.value === null ? 1 : -1
  return direction * (compareValues(left.value, right.value) || lies())
}
