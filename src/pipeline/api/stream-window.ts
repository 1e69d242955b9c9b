import { comparePlaced, type Placed } from './row-order.ts'

/** One row of a window, as it is told. */
export interface WindowRow extends Placed {
  /** of its cluster and id */
  readonly key: string
  readonly id: string
  readonly json: string
}

/** What may enter a window: rendered where it does. */
export interface Incoming extends Placed {
  readonly key: string
  readonly id: string
  readonly render: () => string
}

type Order = 'asc' | 'desc'

/** What a window shows of all rows. */
export interface WindowPlace {
  /** the first so many */
  readonly limit: number
  readonly order: Order
  /** of those behind this row, which may be gone; absent: of all */
  readonly after?: Placed
}

/**
 * The first rows of an order, or the first behind a row, and some more behind them that move up when others leave. Immutable. It holds
 * the very first rows that there are: a row that is not in it stands behind its last, or not behind the row that it begins at.
 */
export class RowsWindow {
  readonly rows: readonly WindowRow[]
  /** of all, in the window or not */
  readonly total: number
  readonly #place: WindowPlace
  /** nothing stands behind the last */
  readonly #isAll: boolean

  /** @param isAll nothing stands behind the last of the rows */
  constructor(rows: readonly WindowRow[], total: number, place: WindowPlace, isAll: boolean) {
    this.rows = rows
    this.total = total
    this.#place = place
    this.#isAll = isAll || (!place.after && rows.length === total)
  }

  /** So many are kept: those that are shown, and those behind them. */
  static capacity(limit: number): number {
    return limit + Math.max(32, limit >> 1)
  }

  /** How many of its first rows are shown. */
  get count(): number {
    return Math.min(this.rows.length, this.#place.limit)
  }

  get shown(): readonly WindowRow[] {
    const { limit } = this.#place
    return this.rows.length > limit ? this.rows.slice(0, limit) : this.rows
  }

  /** Negative: `left` stands before `right`. 0: they are the same row. */
  compare(left: Placed, right: Placed): number {
    return comparePlaced(left, right, this.#place.order)
  }

  /**
   * The window after these rows are gone and those have come; a row that changed is in both.
   * @returns undefined: rows that are not known here would have to move up or to go
   */
  moved(gone: readonly Placed[], come: readonly Incoming[]): RowsWindow | undefined {
    const total = this.total - gone.length + come.length
    const last = this.rows.at(-1)
    const { after, limit } = this.#place
    const isBehind = (row: Placed): boolean => !after || this.compare(row, after) > 0
    const isWithin = (row: Placed): boolean => last !== undefined && this.compare(row, last) <= 0 && isBehind(row)
    const entering = come.filter(this.#isAll ? isBehind : isWithin)
    const staying = this.#without(gone.filter(isWithin))
    if (!staying) return undefined
    const rows = entering.length === 0 ? staying : this.#merged(staying, entering)
    if (!this.#isAll && rows.length < Math.min(limit, total)) return undefined
    const most = 2 * RowsWindow.capacity(limit)
    const isCut = rows.length > most
    return new RowsWindow(isCut ? rows.slice(0, most) : rows, total, this.#place, this.#isAll && !isCut)
  }

  /** @param gone none behind the last. @returns undefined: one of them is not here */
  #without(gone: readonly Placed[]): readonly WindowRow[] | undefined {
    if (gone.length === 0) return this.rows
    const places: number[] = []
    for (const row of gone) {
      const place = this.#placeIn(this.rows, row, 0) - 1
      const held = this.rows[place]
      if (!held || this.compare(held, row) !== 0) return undefined
      places.push(place)
    }
    const rows: WindowRow[] = []
    let from = 0
    for (const place of [...places.sort((left, right) => left - right), this.rows.length]) {
      while (from < place) rows.push(this.rows[from++] as WindowRow)
      from = place + 1
    }
    return rows
  }

  /** Few come, and the others stand in order already. */
  #merged(staying: readonly WindowRow[], entering: readonly Incoming[]): readonly WindowRow[] {
    const sorted = entering.map(rendered).sort((left, right) => this.compare(left, right))
    const rows: WindowRow[] = []
    let from = 0
    for (const row of sorted) {
      const to = this.#placeIn(staying, row, from)
      while (from < to) rows.push(staying[from++] as WindowRow)
      rows.push(row)
    }
    while (from < staying.length) rows.push(staying[from++] as WindowRow)
    return rows
  }

  /** Behind those from a place on that do not stand behind the row. */
  #placeIn(rows: readonly WindowRow[], row: Placed, from: number): number {
    let [low, high] = [from, rows.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.compare(rows[middle] as WindowRow, row) <= 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

const rendered = ({ render, key, id, value, cluster, namespace, name }: Incoming): WindowRow => ({
  ...{ key, id, value, cluster, namespace, name },
  json: render(),
})

/** How what is shown differs. */
export interface WindowDifference {
  /** rows that are not shown any more */
  readonly removed: readonly WindowRow[]
  /** keys of rows that are new, changed or elsewhere, and what is told of them */
  readonly put: ReadonlySet<string>
  readonly puts: readonly string[]
}

/**
 * What one who is shown `before` must be told to be shown `after`. Both stand in the same order, and rows that did not move are the same
 * objects: so one walk finds what differs.
 */
export function windowDifference(before: RowsWindow, after: RowsWindow): WindowDifference {
  const left: WindowRow[] = []
  const puts: string[] = []
  const put = new Set<string>()
  if (before.rows === after.rows) return { removed: left, put, puts }
  let [i, at] = [0, 0]
  while (i < before.count || at < after.count) {
    const old = i < before.count ? before.rows[i] : undefined
    const row = at < after.count ? after.rows[at] : undefined
    if (old && old === row) {
      i++
      at++
      continue
    }
    const order = !old ? 1 : !row ? -1 : after.compare(old, row)
    if (old && order < 0) left.push(old)
    if (row && (order > 0 || (order === 0 && old?.json !== row.json))) {
      puts.push(`{"op":"put","row":${row.json},"at":${at}}`)
      put.add(row.key)
    }
    if (order <= 0) i++
    if (order >= 0) at++
  }
  return { removed: left.filter(({ key }) => !put.has(key)), put, puts }
}
