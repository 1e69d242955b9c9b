import { countBy, groupOf } from '../model/recount.ts'
import {
  haveSameIds,
  idsOf,
  lookedAt,
  type PackedRow,
  type PackedRows,
  packRows,
  type ShownRow,
  textAt,
  unpack,
} from './packed-row.ts'

/** Rows that came together. Packed rows are numbered over all pages, as they came. */
interface Page {
  readonly rows: PackedRows
  /** the number of its first row */
  readonly from: number
  /** its first row is in this place, and the others behind it; null: some are elsewhere */
  readonly place: number | null
}

interface Read {
  readonly size: number
  /** shared with what was read after it, where that is the same rows in the same places */
  readonly order: object
  /** the first so many rows are not packed */
  readonly unpacked: number
  readonly first: readonly ShownRow[]
  readonly pages: readonly Page[]
  /** the number of the row in each place behind the first */
  readonly numbers: Uint32Array
  /** shared with what was made of this, or of the same rows after it: what is longer has more in it */
  readonly places: Map<string, number>
  /** how many rows have which value, by column */
  readonly counts: Map<string, Map<string, number>>
}

/** So many rows that were looked at are known by their places: more than the stream tells at once. */
const mostKnown = 4096

/** Rows that were read, in order, each known by its id. They do not change. */
export class ReadRows {
  readonly size: number
  readonly order: object
  readonly #read: Read
  readonly #known = new Map<number, ShownRow>()

  private constructor(read: Read) {
    this.size = read.size
    this.order = read.order
    this.#read = read
  }

  /**
   * @param counted columns by whose values rows are counted as they come
   * @param before the same rows as they were. Nothing is added to it meanwhile
   */
  static builder(unpacked: number, counted: readonly string[], before: ReadRows | null = null): RowsBuilder {
    const counts = new Map(counted.map((column) => [column, new Map<string, number>()]))
    const nothing = { size: 0, order: {}, unpacked, first: [], pages: [], numbers: new Uint32Array(), counts }
    return new RowsBuilder(
      { ...nothing, places: new Map() },
      (read) => new ReadRows(read),
      before ? before.#read : null,
    )
  }

  /** For rows behind these: only of the longest of those that were made so of one another. */
  longer(): RowsBuilder {
    const { counts, places } = this.#read
    const own = new Map([...counts].map(([column, groups]) => [column, new Map(groups)]))
    const read = { ...this.#read, counts: own, order: {}, places: this.size === 0 ? new Map<string, number>() : places }
    return new RowsBuilder(read, (read) => new ReadRows(read))
  }

  placeOf(id: string): number | undefined {
    const place = this.#read.places.get(id)
    // Beyond the end: a longer list has it.
    return place !== undefined && place < this.size ? place : undefined
  }

  at(place: number): ShownRow | undefined {
    if (place >= this.size) return undefined
    const known = this.#read.first[place] ?? this.#known.get(place)
    if (known) return known
    const row = lookedAt(textOf(this.#read, place))
    if (this.#known.size >= mostKnown) this.#known.clear()
    this.#known.set(place, row)
    return row
  }

  *ids(): IterableIterator<string> {
    // Places are in order; beyond the end are those of a longer list.
    for (const [id, place] of this.#read.places) {
      if (place >= this.size) return
      yield id
    }
  }

  /** Unpacks every row, one after the other. */
  *rows(): IterableIterator<ShownRow> {
    const { first } = this.#read
    for (let place = 0; place < this.size; place++) yield first[place] ?? unpack(textOf(this.#read, place))
  }

  /** How many have which value. A column that was not counted as rows came is counted once, over all of them. */
  countBy(column: string): ReadonlyMap<string, number> {
    const { counts } = this.#read
    const counted = counts.get(column) ?? countBy(column, this.rows())
    counts.set(column, counted)
    return counted
  }
}

function textOf({ pages, numbers }: Read, place: number): PackedRow {
  const number = numbers[place] ?? 0
  const { rows, from } = pageOf(pages, number)
  return textAt(rows.texts, number - from)
}

function pageOf(pages: readonly Page[], number: number): Page {
  let [from, to] = [0, pages.length - 1]
  while (from < to) {
    const middle = (from + to + 1) >> 1
    if ((pages[middle]?.from ?? 0) <= number) from = middle
    else to = middle - 1
  }
  const page = pages[from]
  if (!page) throw new Error('a row that was packed is in no page')
  return page
}

/** Takes rows as they come. */
class RowsBuilder {
  readonly #made: (read: Read) => ReadRows
  readonly #before: Read | null
  readonly #read: Read
  readonly #first: ShownRow[]
  readonly #pages: Page[]
  #numbers: Uint32Array
  #size: number
  /** those of the rows before, as long as the same rows come in the same places */
  #places: Map<string, number>
  #isBorrowed: boolean

  constructor(read: Read, made: (read: Read) => ReadRows, before: Read | null = null) {
    this.#made = made
    this.#before = before
    this.#read = read
    this.#first = [...read.first]
    this.#pages = [...read.pages]
    this.#numbers = read.numbers.slice()
    this.#size = read.size
    // Where the places are those of a longer list, they are not the rows before.
    this.#isBorrowed = before !== null && before.size > 0 && before.size === before.places.size
    this.#places = before && this.#isBorrowed ? before.places : read.places
  }

  /** Those that are known in their places, the others at the end. */
  add(rows: Iterable<ShownRow> | PackedRows): void {
    if ('texts' in rows) this.#addPacked(rows)
    else {
      const behind: ShownRow[] = []
      for (const row of rows) {
        if (this.#placeOf(row.id) < this.#read.unpacked) this.#addOne(row)
        else behind.push(row)
      }
      if (behind.length > 0) this.#addPacked(packRows(behind, [...this.#read.counts.keys()]))
    }
  }

  #addPacked(rows: PackedRows): void {
    const { counts, unpacked } = this.#read
    const newest = this.#pages.at(-1)
    const from = newest ? newest.from + newest.rows.length : 0
    const start = this.#size
    const ids = this.#isAsBefore(rows) ? null : idsOf(rows)
    const page: Writable<Page> = { rows, from, place: null }
    this.#pages.push(page)
    for (let nth = 0; nth < rows.length; nth++) {
      const place = ids ? this.#placeFor(ids[nth] ?? '') : start + nth
      this.#clear(place)
      if (place < unpacked) this.#first[place] = unpack(textAt(rows.texts, nth))
      else this.#number(place, from + nth)
      for (const [column, groups] of counts) count(groups, groupIn(rows, nth, column), 1)
    }
    if (this.#size === start + rows.length) page.place = start
  }

  #addOne(row: ShownRow): void {
    const place = this.#placeFor(row.id)
    this.#clear(place)
    this.#first[place] = row
    for (const [column, groups] of this.#read.counts) count(groups, groupOf(column, row), 1)
  }

  /** Whether the same rows were in these places before: then nothing has to be known of their ids. */
  #isAsBefore(rows: PackedRows): boolean {
    if (!this.#isBorrowed) return false
    const page = this.#before?.pages.find(({ place }) => place === this.#size)
    return page !== undefined && haveSameIds(page.rows, rows)
  }

  /** The place is free, or one more. */
  #clear(place: number): void {
    if (place === this.#size) this.#size++
    else for (const [column, groups] of this.#read.counts) count(groups, this.#groupAt(column, place), -1)
  }

  #groupAt(column: string, place: number): string {
    const row = this.#first[place]
    if (row) return groupOf(column, row)
    const number = this.#numbers[place] ?? 0
    const { rows, from } = pageOf(this.#pages, number)
    return groupIn(rows, number - from, column)
  }

  #number(place: number, number: number): void {
    if (place >= this.#numbers.length) {
      const more = new Uint32Array(Math.max(1024, 2 * place))
      more.set(this.#numbers)
      this.#numbers = more
    }
    this.#numbers[place] = number
  }

  #placeFor(id: string): number {
    const at = this.#placeOf(id)
    if (at < this.#size || this.#places.get(id) === at) return at
    if (this.#isBorrowed) this.#own()
    this.#places.set(id, at)
    return at
  }

  /** Where it is, or would be. */
  #placeOf(id: string): number {
    const at = this.#places.get(id)
    return at !== undefined && at <= this.#size ? at : this.#size
  }

  /** From here on the rows are others than before, or elsewhere. */
  #own(): void {
    this.#isBorrowed = false
    const own = new Map<string, number>()
    for (const [id, at] of this.#places) {
      if (at === this.#size) break
      own.set(id, at)
    }
    this.#places = own
  }

  build(): ReadRows {
    if (this.#places.size > this.#size) this.#own()
    return this.#made({
      ...this.#read,
      ...{ size: this.#size, first: this.#first, pages: this.#pages, numbers: this.#numbers, places: this.#places },
      order: this.#isBorrowed && this.#before ? this.#before.order : this.#read.order,
    })
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

function count(groups: Map<string, number>, group: string, by: number): void {
  groups.set(group, (groups.get(group) ?? 0) + by)
}

function groupIn({ groups, texts }: PackedRows, nth: number, column: string): string {
  const grouped = groups[column]
  return grouped?.names[grouped.of[nth] ?? -1] ?? groupOf(column, unpack(textAt(texts, nth)))
}
