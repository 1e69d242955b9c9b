import type { OrderedRows } from '../model/ordered-rows.ts'
import { countBy, groupOf } from '../model/recount.ts'
import { lookedAt, type PackedRow, type PackedRows, pack, type ShownRow, unpack } from './packed-row.ts'

export type { ShownRow } from './packed-row.ts'

/** The first so many are told by the stream and looked at all the time: they are never packed. */
export const unpackedRows = 1024

/** What was read. Lists with other rows in front of it share it. */
interface Read {
  /** in order */
  readonly items: readonly (ShownRow | PackedRow)[]
  /** shared with what was made of this, or of the same rows after it: what is longer has more in it */
  readonly places: Map<string, number>
  /** how many rows have which value, by column */
  readonly counts: Map<string, Map<string, number>>
  readonly unpacked: number
  /** shared with what was read after it, where that is the same rows in the same places */
  readonly order: object
}

/** Rows in front of what was read. */
interface Lead {
  readonly rows: readonly ShownRow[]
  readonly byId: ReadonlyMap<string, ShownRow>
  /** places of the same rows in what was read, in order */
  readonly passed: readonly number[]
}

const noLead: Lead = { rows: [], byId: new Map(), passed: [] }

/**
 * Rows in order, each known by its id. A list does not change. Of a hundred thousand rows the first are at hand, and each of the others
 * is unpacked when it is looked at; a thousand that the stream tells cost no more in front of them than in front of none.
 */
export class RowList implements ReadonlyMap<string, ShownRow>, OrderedRows<ShownRow> {
  static readonly empty = new RowList({
    ...{ items: [], places: new Map(), counts: new Map(), unpacked: unpackedRows },
    order: {},
  })
  readonly size: number
  readonly order: object
  readonly members: object
  readonly #read: Read
  readonly #lead: Lead

  private constructor(read: Read, lead = noLead, order = read.order) {
    this.size = lead.rows.length + read.items.length - lead.passed.length
    this.order = order
    this.members = lead.passed.length === lead.rows.length ? read.order : {}
    this.#read = read
    this.#lead = lead
  }

  static of(rows: Iterable<ShownRow>): RowList {
    return RowList.empty.with(rows)
  }

  /**
   * One of rows that come in parts: they are looked at and packed as they come, and not all at the end.
   * @param counted columns by whose values they are counted meanwhile
   * @param before the same rows as they were: what says the same is kept once. Nothing is added to it meanwhile
   */
  static builder({ unpacked = unpackedRows, counted = [] as readonly string[], before = RowList.empty } = {}) {
    return new Builder(
      {
        ...{ items: [], places: new Map(), unpacked, order: {} },
        counts: new Map(counted.map((column) => [column, new Map()])),
      },
      (read) => new RowList(read),
      before.#read,
    )
  }

  /** What was read, and these rows: in the places they have there, the others after them. Only of the longest list of those that were made so of one another. */
  with(rows: Iterable<ShownRow> | PackedRows): RowList {
    const { items, places, counts, unpacked } = this.#read
    const isEmpty = items.length === 0
    const made = new Builder(
      {
        items: [...items],
        places: isEmpty ? new Map() : places,
        counts: new Map([...counts].map(([column, groups]) => [column, new Map(groups)])),
        ...{ unpacked, order: {} },
      },
      (read) => new RowList(read),
    )
    made.add(rows)
    return made.build()
  }

  /** These rows in their order, and behind them what else was read. It keeps its `order` where they stand there in these places, too. */
  ledBy(rows: Iterable<ShownRow>): RowList {
    const byId = new Map<string, ShownRow>()
    for (const row of rows) byId.set(row.id, row)
    const places = [...byId.keys()].map((id) => this.#placeOf(id))
    const passed = places.filter((place) => place !== undefined).sort((a, b) => a - b)
    const isAsRead = places.every((place, at) => place === at)
    return new RowList(this.#read, { rows: [...byId.values()], byId, passed }, isAsRead ? this.#read.order : {})
  }

  get(id: string): ShownRow | undefined {
    const first = this.#lead.byId.get(id)
    if (first) return first
    const place = this.#placeOf(id)
    return place === undefined ? undefined : this.#at(place)
  }

  has(id: string): boolean {
    return this.#lead.byId.has(id) || this.#placeOf(id) !== undefined
  }

  slice(from: number, to: number): readonly ShownRow[] {
    const { rows, passed } = this.#lead
    const some: ShownRow[] = rows.slice(from, to)
    for (let at = Math.max(from, rows.length); at < Math.min(to, this.size); at++) {
      const row = this.#at(placeBehind(at - rows.length, passed))
      if (row) some.push(row)
    }
    return some
  }

  *keys(): MapIterator<string> {
    const { byId } = this.#lead
    const { items, places } = this.#read
    yield* byId.keys()
    let left = this.size - byId.size
    // Places are in order; beyond the end are those of a longer list.
    for (const [id, place] of places) {
      if (left === 0 || place >= items.length) return
      if (byId.has(id)) continue
      left--
      yield id
    }
  }

  /** Unpacks every row, one after the other. */
  *values(): MapIterator<ShownRow> {
    const { rows, byId } = this.#lead
    yield* rows
    for (const item of this.#read.items) {
      const row = typeof item === 'string' ? unpack(item) : item
      if (!byId.has(row.id)) yield row
    }
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
    const { rows, passed } = this.#lead
    const { counts } = this.#read
    const read = counts.get(column) ?? countBy(column, new RowList(this.#read).values())
    counts.set(column, read)
    const groups = new Map(read)
    countBy(
      column,
      passed.flatMap((place) => this.#at(place) ?? []),
      groups,
      -1,
    )
    countBy(column, rows, groups)
    return Object.fromEntries([...groups].filter(([, count]) => count > 0))
  }

  /** in what was read */
  #placeOf(id: string): number | undefined {
    const { items, places } = this.#read
    const place = places.get(id)
    // Beyond the end: a longer list has it.
    return place !== undefined && place < items.length ? place : undefined
  }

  #at(place: number): ShownRow | undefined {
    const item = this.#read.items[place]
    return typeof item === 'string' ? lookedAt(item) : item
  }
}

class Builder {
  readonly #read: Read & { readonly items: (ShownRow | PackedRow)[] }
  readonly #made: (read: Read) => RowList
  readonly #before: Read | undefined
  /** those of the rows before, as long as the same rows come in the same places */
  #places: Map<string, number>
  #isBorrowed: boolean

  constructor(read: Read & { readonly items: (ShownRow | PackedRow)[] }, made: (read: Read) => RowList, before?: Read) {
    this.#read = read
    this.#made = made
    this.#before = before
    // Where the places are those of a longer list, they are not the rows before.
    this.#isBorrowed = before !== undefined && before.items.length > 0 && before.items.length === before.places.size
    this.#places = before && this.#isBorrowed ? before.places : read.places
  }

  /** Those that are known in their places, the others at the end. */
  add(rows: Iterable<ShownRow> | PackedRows): void {
    const { unpacked } = this.#read
    if ('texts' in rows) {
      const { ids, texts, groups } = rows
      ids.forEach((id, nth) => {
        const at = this.#placeFor(id)
        const text = texts[nth] ?? ''
        this.#put(at, id, at < unpacked ? unpack(text) : text, (column) => groups[column]?.[nth])
      })
    } else
      for (const row of rows) {
        const at = this.#placeFor(row.id)
        this.#put(at, row.id, at < unpacked ? row : pack(row), (column) => groupOf(column, row))
      }
  }

  #put(at: number, id: string, item: ShownRow | PackedRow, groupIn: (column: string) => string | undefined): void {
    const { items, counts } = this.#read
    const twice = items[at]
    for (const [column, groups] of counts) {
      if (twice !== undefined) countBy(column, [typeof twice === 'string' ? lookedAt(twice) : twice], groups, -1)
      const group = groupIn(column)
      if (group !== undefined) groups.set(group, (groups.get(group) ?? 0) + 1)
    }
    // The text that there is: what did not change since is nothing new to the garbage collector.
    const before = typeof item === 'string' ? this.#before?.items[this.#before.places.get(id) ?? -1] : undefined
    items[at] = before === item ? before : item
  }

  #placeFor(id: string): number {
    const { length } = this.#read.items
    const at = this.#places.get(id)
    if (at !== undefined && at <= length) return at
    if (this.#isBorrowed) this.#own()
    this.#places.set(id, length)
    return length
  }

  /** From here on the rows are others than before, or elsewhere. */
  #own(): void {
    this.#isBorrowed = false
    const { length } = this.#read.items
    const own = new Map<string, number>()
    for (const [id, at] of this.#places) {
      if (at === length) break
      own.set(id, at)
    }
    this.#places = own
  }

  build(): RowList {
    if (this.#places.size > this.#read.items.length) this.#own()
    const order = this.#isBorrowed && this.#before ? this.#before.order : this.#read.order
    return this.#made({ ...this.#read, places: this.#places, order })
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
