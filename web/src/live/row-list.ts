import type { OrderedRows } from '../model/ordered-rows.ts'
import { countBy } from '../model/recount.ts'
import type { PackedRows, ShownRow } from './packed-row.ts'
import { ReadRows } from './read-rows.ts'

export type { ShownRow } from './packed-row.ts'

/** The first so many are told by the stream and looked at all the time: they are never packed. */
export const unpackedRows = 1024

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
  static readonly empty = new RowList(ReadRows.builder(unpackedRows, []).build())
  readonly size: number
  readonly order: object
  readonly members: object
  /** lists with other rows in front of it share it */
  readonly #read: ReadRows
  readonly #lead: Lead

  private constructor(read: ReadRows, lead = noLead, order = read.order) {
    this.size = lead.rows.length + read.size - lead.passed.length
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

  /** These rows in their order, and behind them what else was read. It keeps its `order` where they stand there in these places, too. */
  ledBy(rows: Iterable<ShownRow>): RowList {
    const byId = new Map<string, ShownRow>()
    for (const row of rows) byId.set(row.id, row)
    const places = [...byId.keys()].map((id) => this.#read.placeOf(id))
    const passed = places.filter((place) => place !== undefined).sort((a, b) => a - b)
    const isAsRead = places.every((place, at) => place === at)
    return new RowList(this.#read, { rows: [...byId.values()], byId, passed }, isAsRead ? this.#read.order : {})
  }

  get(id: string): ShownRow | undefined {
    const first = this.#lead.byId.get(id)
    if (first) return first
    const place = this.#read.placeOf(id)
    return place === undefined ? undefined : this.#read.at(place)
  }

  has(id: string): boolean {
    return this.#lead.byId.has(id) || this.#read.placeOf(id) !== undefined
  }

  slice(from: number, to: number): readonly ShownRow[] {
    const { rows, passed } = this.#lead
    const some: ShownRow[] = rows.slice(from, to)
    for (let at = Math.max(from, rows.length); at < Math.min(to, this.size); at++) {
      const row = this.#read.at(placeBehind(at - rows.length, passed))
      if (row) some.push(row)
    }
    return some
  }

  *keys(): MapIterator<string> {
    const { byId } = this.#lead
    yield* byId.keys()
    for (const id of this.#read.ids()) if (!byId.has(id)) yield id
  }

  /** Unpacks every row, one after the other. */
  *values(): MapIterator<ShownRow> {
    const { rows, byId } = this.#lead
    yield* rows
    for (const row of this.#read.rows()) if (!byId.has(row.id)) yield row
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
    const groups = new Map(this.#read.countBy(column))
    const behind = passed.flatMap((place) => this.#read.at(place) ?? [])
    countBy(column, behind, groups, -1)
    countBy(column, rows, groups)
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
