import type { FleetRowView, HeldRows, RowLinkView, RowsAgeView, TypeOnClusterView } from '../contract.ts'
import { anythingBeyond, type Beyond, nothingBeyond } from '../model/ordered-rows.ts'
import { RowList } from './row-list.ts'
import type { Paged, ShownRow } from './row-pages.ts'

type Here = Extract<Paged, { state: 'here' }>

export interface Overlaid {
  readonly paged: Here
  /** what is told are others by now, or stands in another order, than in the pages: read the pages anew */
  readonly isBehind: boolean
  /** the stream tells every row that is loaded: nothing has to be read to stay true */
  readonly reaches: boolean
  /** of rows that are not among these */
  readonly beyond: Beyond<ShownRow>
  /** places of the rows that the stream tells */
  readonly from: number
  readonly to: number
}

/** Rows as the stream tells them, and what was asked of it. */
export interface ToldRows {
  readonly held: HeldRows
  /** behind which row they stand; undefined: they are the first */
  readonly cursor?: string | undefined
  /** how many were asked for */
  readonly limit: number
  /** so many rows stood in front of them when they were asked for */
  readonly at: number
}

type RowName = Pick<FleetRowView, 'cluster' | 'id'>

/** The hub's clock, as it is known here, is no further off. */
const clockFaultMs = 1000

/**
 * Rows that were read page by page, as the stream tells them now. Pages know where values lead to and reach as far as somebody
 * scrolls; the stream knows the rows where somebody looks, and their order, as of this moment.
 */
export class RowOverlay {
  readonly #idOf: (row: RowName) => string
  readonly #made = new WeakMap<FleetRowView, { readonly list: RowList; readonly row: ShownRow }>()

  /** @param idOf names the row in its list */
  constructor(idOf: (row: RowName) => string) {
    this.#idOf = idOf
  }

  /** @param now by the hub's clock, ms */
  over(paged: Here, { held, cursor, limit, at }: ToldRows, now: number): Overlaid {
    if (!held.isWhole) return { paged, isBehind: false, reaches: false, beyond: beyondRead(paged), from: 0, to: 0 }
    const { rows: known, page } = paged
    const told = [...held.rows.values()].map((row) => this.#shown(row, known))
    const isNew = told.some(({ id }) => !known.has(id))
    const isFirst = cursor === undefined
    const isAll = isFirst && held.rows.size >= held.total
    const reaches = isAll || (isFirst && known.size <= held.rows.size)
    const place = isFirst ? 0 : (known.placeOf(told.map(({ id }) => id)) ?? Math.min(at, known.size))
    const isEnd = !isFirst && held.rows.size < limit
    const newer = this.#left(paged, held, now)
    const rows = (reaches ? RowList.empty : known).withBand(told, {
      ...{ place, isEnd, newer: newer.values() },
      gone: this.#gone(paged, held, now),
    })
    const isWhole = reaches ? isAll : paged.isWhole
    const isMoved = rows.order !== known.order
    const isBehind = isNew || (!reaches && (isMoved || known.size > held.total))
    return {
      paged: {
        ...paged,
        rows,
        page: { ...page, total: held.total, on: page.on.map((one) => aged(one, held.ages.get(one.cluster), now)) },
        isWhole,
      },
      isBehind,
      reaches,
      beyond: isAll ? nothingBeyond : this.#beyond(held, known, isWhole),
      from: rows.bandFrom,
      to: rows.bandFrom + told.length,
    }
  }

  #beyond({ gone, left }: HeldRows, known: RowList, isWhole: boolean): Beyond<ShownRow> {
    const nowhere = new Set([...gone.values()].map((row) => this.#idOf(row)))
    const elsewhere = new Map([...left.values()].map(({ row }) => [this.#idOf(row), row]))
    return {
      get: (id) => {
        const row = elsewhere.get(id)
        return row && this.#shown(row, known)
      },
      isGone: (id) => nowhere.has(id) || (isWhole && !elsewhere.has(id)),
    }
  }

  /** Rows that left, as they were told, after the pages were read, or about then; by id. */
  #left({ readAt, rows }: Here, { left }: HeldRows, now: number): ReadonlyMap<string, ShownRow> {
    const readMs = performance.now() - readAt
    const newer = [...left.values()].filter(({ at }) => now - at <= readMs + clockFaultMs)
    return new Map(newer.map(({ row }) => this.#shown(row, rows)).map((row) => [row.id, row]))
  }

  /** Ids of rows that left after the pages were read, or about then. */
  #gone({ readAt }: Here, { gone }: HeldRows, now: number): string[] {
    const readMs = performance.now() - readAt
    return [...gone.values()].filter(({ at }) => now - at <= readMs + clockFaultMs).map((row) => this.#idOf(row))
  }

  /** What is known of a row besides: looked up once for each list, as most of it is packed. */
  #shown(row: FleetRowView, list: RowList): ShownRow {
    const made = this.#made.get(row)
    if (made?.list === list) return made.row
    const id = made?.row.id ?? this.#idOf(row)
    const known = list.get(id)
    const links = known?.links?.filter((link) => leadsThere(link, known, row))
    const shown: ShownRow = {
      ...row,
      id,
      rowId: row.id,
      ...(known?.reference !== undefined && { reference: known.reference }),
      ...(links && { links }),
    }
    this.#made.set(row, { list, row: shown })
    return shown
  }
}

/** What is known of rows where nothing is told. */
export const beyondRead = ({ isWhole }: Here): Beyond<never> => (isWhole ? nothingBeyond : anythingBeyond)

/** The link of a value that is still the same. */
const leadsThere = ({ column }: RowLinkView, known: ShownRow, row: FleetRowView): boolean =>
  column === null || known.values[column] === row.values[column]

function aged(on: TypeOnClusterView, age: RowsAgeView | undefined, now: number): TypeOnClusterView {
  if (!age) return on
  const { cluster: _, filtered, staleAt, measured, ...part } = age
  const stale = staleAt !== null && staleAt <= now
  return { ...on, filtered, stale, part: { ...on.part, ...part }, ...(measured && { measured }) }
}
