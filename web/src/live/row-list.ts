import type { TableRowView } from '../contract.ts'

/** `id` is unique in its list; `rowId` on its cluster. */
export type ShownRow = TableRowView & { readonly cluster: string; readonly rowId: string }

/**
 * Rows in order, each known by its id. A list does not change; those made of it share what is equal, so that a hundred thousand
 * rows of which one moved cost a copy of their places.
 */
export class RowList implements ReadonlyMap<string, ShownRow> {
  static readonly empty = new RowList([], new Map())
  /** in order */
  readonly items: readonly ShownRow[]
  /** shared with lists made of this one: those that are longer have more in it */
  readonly #places: Map<string, number>

  private constructor(items: readonly ShownRow[], places: Map<string, number>) {
    this.items = items
    this.#places = places
  }

  static of(rows: Iterable<ShownRow>): RowList {
    return RowList.empty.with(rows)
  }

  /** One of rows that come in parts: they are looked at as they come, and not all at the end. */
  static builder(): { add(rows: Iterable<ShownRow>): void; build(): RowList } {
    const items: ShownRow[] = []
    const places = new Map<string, number>()
    return { add: (rows) => place(rows, items, places), build: () => new RowList(items, places) }
  }

  get size(): number {
    return this.items.length
  }

  get(id: string): ShownRow | undefined {
    const place = this.#places.get(id)
    // Beyond the end: a longer list has it.
    return place === undefined ? undefined : this.items[place]
  }

  has(id: string): boolean {
    return this.get(id) !== undefined
  }

  /** These rows in the places they have here; others are left out. */
  put(rows: Iterable<ShownRow>): RowList {
    const items = [...this.items]
    for (const row of rows) {
      const place = this.#places.get(row.id)
      if (place !== undefined && place < items.length) items[place] = row
    }
    return new RowList(items, this.#places)
  }

  /** These rows in the places they have here, the others after them. Only of the longest list of those that were made of one another. */
  with(rows: Iterable<ShownRow>): RowList {
    const places = this.size === 0 ? new Map<string, number>() : this.#places
    const items = [...this.items]
    place(rows, items, places)
    return new RowList(items, places)
  }

  *keys(): MapIterator<string> {
    for (const { id } of this.items) yield id
  }

  values(): MapIterator<ShownRow> {
    return this.items.values()
  }

  *entries(): MapIterator<[string, ShownRow]> {
    for (const row of this.items) yield [row.id, row]
  }

  [Symbol.iterator](): MapIterator<[string, ShownRow]> {
    return this.entries()
  }

  forEach(call: (row: ShownRow, id: string, list: ReadonlyMap<string, ShownRow>) => void): void {
    for (const row of this.items) call(row, row.id, this)
  }
}

/** Those that are known in their places, the others at the end. */
function place(rows: Iterable<ShownRow>, items: ShownRow[], places: Map<string, number>): void {
  for (const row of rows) {
    const at = places.get(row.id) ?? items.length
    places.set(row.id, at)
    items[at] = row
  }
}
