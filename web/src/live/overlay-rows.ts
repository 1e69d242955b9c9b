import type { FleetRowView, HeldRows, RowLinkView, RowsAgeView, TypeOnClusterView } from '../contract.ts'
import { RowList } from './row-list.ts'
import type { Paged, ShownRow } from './row-pages.ts'

type Here = Extract<Paged, { state: 'here' }>

export interface Overlaid {
  readonly paged: Here
  /** the first rows are others by now, or stand in another order, than those of the pages: read the pages anew */
  readonly isBehind: boolean
  /** the stream tells every row that is loaded: nothing has to be read to stay true */
  readonly reaches: boolean
}

/**
 * Rows that were read page by page, as the stream tells them now. Pages know where values lead to and reach as far as somebody
 * scrolls; the stream knows the first rows, and their order, as of this moment.
 */
export class RowOverlay {
  readonly #idOf: (row: FleetRowView) => string
  readonly #made = new WeakMap<FleetRowView, { readonly known: ShownRow | undefined; readonly row: ShownRow }>()

  /** @param idOf names the row in its list */
  constructor(idOf: (row: FleetRowView) => string) {
    this.#idOf = idOf
  }

  /** @param now by the hub's clock, ms */
  over(paged: Here, held: HeldRows, now: number): Overlaid {
    if (!held.isWhole) return { paged, isBehind: false, reaches: false }
    const { rows: known, page } = paged
    const told: ShownRow[] = []
    let isNew = false
    for (const row of held.rows.values()) {
      const id = this.#made.get(row)?.row.id ?? this.#idOf(row)
      const before = known.get(id)
      isNew ||= before === undefined
      told.push(this.#shown(id, row, before))
    }
    const isAll = held.rows.size >= held.total
    const reaches = isAll || known.size <= held.rows.size
    const rows = (reaches ? RowList.empty : known).ledBy(told)
    const isMoved = rows.order !== known.order
    const isBehind = isNew || (!reaches && (isMoved || known.size > held.total))
    return {
      paged: {
        ...paged,
        rows,
        page: { ...page, total: held.total, on: page.on.map((one) => aged(one, held.ages.get(one.cluster), now)) },
        isWhole: reaches ? isAll : paged.isWhole,
      },
      isBehind,
      reaches,
    }
  }

  #shown(id: string, row: FleetRowView, known: ShownRow | undefined): ShownRow {
    const made = this.#made.get(row)
    if (made && made.known === known) return made.row
    const links = known?.links?.filter((link) => leadsThere(link, known, row))
    const shown: ShownRow = {
      ...row,
      id,
      rowId: row.id,
      ...(known?.reference !== undefined && { reference: known.reference }),
      ...(links && { links }),
    }
    this.#made.set(row, { known, row: shown })
    return shown
  }
}

/** The link of a value that is still the same. */
const leadsThere = ({ column }: RowLinkView, known: ShownRow, row: FleetRowView): boolean =>
  column === null || known.values[column] === row.values[column]

function aged(on: TypeOnClusterView, age: RowsAgeView | undefined, now: number): TypeOnClusterView {
  if (!age) return on
  const { cluster: _, filtered, staleAt, measured, ...part } = age
  const stale = staleAt !== null && staleAt <= now
  return { ...on, filtered, stale, part: { ...on.part, ...part }, ...(measured && { measured }) }
}
