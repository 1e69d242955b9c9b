import type { OrderedRows } from '../model/ordered-rows.ts'
import { countBy } from '../model/recount.ts'
import type { PackedRows, ShownRow } from './packed-row.ts'
import { ReadRows } from './read-rows.ts'

export type { ShownRow } from './packed-row.ts'

/** The first so many are what most people look at: they are never packed. */
export const unpackedRows = 1024

/** Rows that stand together amidst what was read. */
interface Band {
  readonly rows: readonly ShownRow[]
  readonly byId: ReadonlyMap<string, ShownRow>
  /** how many of the rows that were read stand in front of them */
  readonly from: number
  /** places in what was read, in order, of rows that do not stand there: those of the band, and those that are gone */
  readonly passed: readonly number[]
  /** others as they are now, by their places in what was read */
  readonly newer: ReadonlyMap<number, ShownRow>
}

/** So many rows are asked where a band begins: some of them may have moved. */
const asked = 15

const noBand: Band = { rows: [], byId: new Map(), from: 0, passed: [], newer: new Map() }

/**
 * Rows in order, each known by its id. A list does not change. Of a hundred thousand rows the first are at hand, and each of the others
 * is unpacked when it is looked at; a thousand that the stream tells cost no more amidst them than amidst none.
 */
export class RowList implements ReadonlyMap<string, ShownRow>, OrderedRows<ShownRow> {
  static readonly empty = new RowList(ReadRows.builder(unpackedRows, []).build())
  readonly size: number
  readonly order: object
  readonly members: object
  /** lists with other rows amidst it share it */
  readonly #read: ReadRows
  readonly #band: Band

  /** @param order its own, and whether it has other rows than what was read */
  private constructor(read: ReadRows, band = noBand, { order, members } = { order: read.order, members: read.order }) {
    this.size = band.rows.length + read.size - band.passed.length
    this.order = order
    this.members = members
    this.#read = read
    this.#band = band
  }

  static of(rows: Iterable<ShownRow>): RowList {
    return RowList.empty.with(rows)
  }

  /**
   * One of rows that come in parts: they are looked at and packed as they come, and not all at the end.
   * @param counted columns by whose values they are counted meanwhile
   * @param before the same rows as they were: what is known of their ids is kept. Nothing is added to it meanwhile
   */
  static builder({ unpacked = unpackedRows, counted = [] as readonly string[], before = RowList.empty } = {}) {
    const made = ReadRows.builder(unpacked, counted, before.#read)
    return {
      add: (rows: Iterable<ShownRow> | PackedRows): void => made.add(rows),
      build: () => new RowList(made.build()),
    }
  }

  /** What was read, and these rows: in the places they have there, the others after them. Only of the longest list of those that were made so of one another. */
  with(rows: Iterable<ShownRow> | PackedRows): RowList {
    const made = this.#read.longer()
    made.add(rows)
    return new RowList(made.build())
  }

  /**
   * These rows in their order, amidst what else was read. It keeps its `order` where they stand there in these places, too.
   * @param place of the first of them in what was read
   * @param isEnd nothing stands behind them: what was read there is gone
   * @param gone ids of others that are gone
   * @param newer others, as they are now
   */
  withBand(
    rows: Iterable<ShownRow>,
    { place = 0, isEnd = false, gone = [] as Iterable<string>, newer = [] as Iterable<ShownRow> } = {},
  ): RowList {
    const byId = new Map<string, ShownRow>()
    for (const row of rows) byId.set(row.id, row)
    const places = [...byId.keys()].map((id) => this.#read.placeOf(id))
    const isAsRead = places.every((one, at) => one === place + at)
    const known = new Set(places.filter((one) => one !== undefined))
    const members = known.size === byId.size
    if (isEnd) for (let behind = place; behind < this.#read.size; behind++) known.add(behind)
    for (const id of gone) {
      const one = this.#read.placeOf(id)
      if (one !== undefined) known.add(one)
    }
    const amended = new Map<number, ShownRow>()
    for (const row of newer) {
      const one = this.#read.placeOf(row.id)
      if (one !== undefined && !known.has(one)) amended.set(one, row)
    }
    const isBandAlone = known.size === byId.size
    const passed = isAsRead && isBandAlone ? [...known] : [...known].sort((a, b) => a - b)
    const from = place - passed.filter((one) => one < place).length
    const isSame = passed.length === byId.size
    return new RowList(
      this.#read,
      { rows: [...byId.values()], byId, from, passed, newer: amended },
      { order: isAsRead && isSame ? this.#read.order : {}, members: members && isSame ? this.#read.order : {} },
    )
  }

  /** In front of the band stand so many rows. */
  get bandFrom(): number {
    return this.#band.from
  }

  /** Where these rows, which stand together, begin in what was read, as most of the first say that stand there. undefined: none does */
  placeOf(ids: Iterable<string>): number | undefined {
    const begins: number[] = []
    let at = 0
    for (const id of ids) {
      const place = this.#read.placeOf(id)
      if (place !== undefined) begins.push(place - at)
      if (begins.length === asked) break
      at += 1
    }
    const middle = begins.sort((a, b) => a - b)[begins.length >> 1]
    return middle === undefined ? undefined : Math.max(0, middle)
  }

  get(id: string): ShownRow | undefined {
    const told = this.#band.byId.get(id)
    if (told) return told
    const place = this.#read.placeOf(id)
    return place === undefined || this.#isPassed(place) ? undefined : this.#at(place)
  }

  has(id: string): boolean {
    if (this.#band.byId.has(id)) return true
    const place = this.#read.placeOf(id)
    return place !== undefined && !this.#isPassed(place)
  }

  #at(place: number): ShownRow | undefined {
    return this.#band.newer.get(place) ?? this.#read.at(place)
  }

  /** It is of the band, or gone. */
  #isPassed(place: number): boolean {
    const { passed } = this.#band
    return passed[firstNotBelow(passed, place)] === place
  }

  slice(from: number, to: number): readonly ShownRow[] {
    const { rows, from: start, passed } = this.#band
    const some: ShownRow[] = []
    for (let at = Math.max(0, from); at < Math.min(to, this.size); at++) {
      const told = rows[at - start]
      const row = told ?? this.#at(placeBehind(at < start ? at : at - rows.length, passed))
      if (row) some.push(row)
    }
    return some
  }

  *keys(): MapIterator<string> {
    yield* this.#amidst(this.#read.ids(), this.#band.byId.keys())
  }

  /** Unpacks every row, one after the other. */
  *values(): MapIterator<ShownRow> {
    yield* this.#amidst(this.#read.rows(), this.#band.rows, this.#band.newer)
  }

  /** What was read and not passed, with the band where it stands. */
  *#amidst<T>(read: Iterable<T>, band: Iterable<T>, newer?: ReadonlyMap<number, T>): MapIterator<T> {
    const { from, passed } = this.#band
    let [place, skipped] = [0, 0]
    for (const one of read) {
      if (passed[skipped] === place++) {
        skipped += 1
        continue
      }
      if (place - 1 - skipped === from) yield* band
      yield newer?.get(place - 1) ?? one
    }
    if (place - skipped <= from) yield* band
  }

  *entries(): MapIterator<[string, ShownRow]> {
    for (const row of this.values()) yield [row.id, row]
  }

  [Symbol.iterator](): MapIterator<[string, ShownRow]> {
    return this.entries()
  }

  forEach(call: (row: ShownRow, id: string, list: ReadonlyMap<string, ShownRow>) => void): void {
    for (const row of this.values()) call(row, row.id, this)
  }

  /** How many rows have which value of a column. One that was not counted as rows came is counted once, over all of them. */
  countBy(column: string): Readonly<Record<string, number>> {
    const { rows, passed, newer } = this.#band
    const groups = new Map(this.#read.countBy(column))
    const elsewhere = [...passed, ...newer.keys()].flatMap((place) => this.#read.at(place) ?? [])
    countBy(column, elsewhere, groups, -1)
    countBy(column, rows, groups)
    countBy(column, newer.values(), groups)
    return Object.fromEntries([...groups].filter(([, count]) => count > 0))
  }
}

/** The place with so many others before it, of those that are not passed. */
function placeBehind(count: number, passed: readonly number[]): number {
  let [from, to] = [0, passed.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((passed[middle] ?? 0) - middle <= count) from = middle + 1
    else to = middle
  }
  return count + from
}

function firstNotBelow(sorted: readonly number[], value: number): number {
  let [from, to] = [0, sorted.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((sorted[middle] ?? 0) < value) from = middle + 1
    else to = middle
  }
  return from
}
