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

/**
 * The first rows of an order, and some more behind them that move up when others leave. Immutable. It holds the very first
 * rows that there are: a row that is not in it stands behind its last.
 */
export class RowsWindow {
  readonly rows: readonly WindowRow[]
  /** of all, in the window or not */
  readonly total: number
  readonly #limit: number
  readonly #order: Order

  constructor(rows: readonly WindowRow[], total: number, limit: number, order: Order) {
    this.rows = rows
    this.total = total
    this.#limit = limit
    this.#order = order
  }

  /** So many are kept: those that are shown, and those behind them. */
  static capacity(limit: number): number {
    return limit + Math.max(32, limit >> 1)
  }

  get shown(): readonly WindowRow[] {
    return this.rows.length > this.#limit ? this.rows.slice(0, this.#limit) : this.rows
  }

  /**
   * The window after these rows are gone and those have come; a row that changed is in both.
   * @returns undefined: rows from behind the window would have to move up, which are not known here
   */
  moved(gone: ReadonlySet<string>, come: readonly Incoming[]): RowsWindow | undefined {
    const total = this.total - gone.size + come.length
    const last = this.rows.at(-1)
    const isAll = this.rows.length === this.total
    const entering = come.filter((row) => isAll || (last !== undefined && this.#compare(row, last) <= 0))
    const staying = gone.size === 0 ? this.rows : this.rows.filter(({ key }) => !gone.has(key))
    const isSame = staying.length === this.rows.length && entering.length === 0
    const rows = isSame ? this.rows : this.#merged(staying, entering)
    if (rows.length < Math.min(this.#limit, total)) return undefined
    return new RowsWindow(rows.slice(0, 2 * RowsWindow.capacity(this.#limit)), total, this.#limit, this.#order)
  }

  #merged(staying: readonly WindowRow[], entering: readonly Incoming[]): readonly WindowRow[] {
    const rendered = entering.map(
      ({ render, key, id, value, cluster, namespace, name }): WindowRow => ({
        ...{ key, id, value, cluster, namespace, name },
        json: render(),
      }),
    )
    return [...staying, ...rendered].sort((left, right) => this.#compare(left, right))
  }

  #compare(left: Placed, right: Placed): number {
    return comparePlaced(left, right, this.#order)
  }
}

/** What one who is shown `before` must be told to be shown `after`. */
export function windowTexts(before: readonly WindowRow[], after: readonly WindowRow[]): string[] {
  if (before === after) return []
  const known = new Map(before.map((row) => [row.key, row]))
  const texts: string[] = []
  const puts: string[] = []
  const still = new Set<string>()
  for (const [at, row] of after.entries()) {
    still.add(row.key)
    if (known.get(row.key)?.json !== row.json) puts.push(`{"op":"put","row":${row.json},"at":${at}}`)
  }
  for (const { key, cluster, id } of before)
    if (!still.has(key)) texts.push(JSON.stringify({ op: 'remove', cluster, id }))
  return [...texts, ...puts]
}
