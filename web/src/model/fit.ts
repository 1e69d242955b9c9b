export interface Fitting {
  /** px, as its content has it; undefined: it takes what is left */
  readonly width: number | undefined
  /** px, below which it says too little; what is not to give way has its width here */
  readonly least: number
}

/** A column that takes what is left is no narrower. */
export const LEAST_NAME = 220
/** Room of a table in a window of 1440 px: no usual table is wider. */
export const USUAL_ROOM = 1350

/**
 * Widths of columns that are together no wider than the room: the widest give way first, down to one common width. Where even
 * the least widths do not fit, they are as in a window of 1440 px, and the table scrolls.
 */
export function fitWidths(columns: readonly Fitting[], room: number): readonly (number | undefined)[] {
  const total = (cap: number) => columns.reduce((sum, column) => sum + capped(column, cap), 0)
  const target = total(0) <= room ? room : Math.max(room, USUAL_ROOM)
  let [low, high] = [0, Math.max(0, ...columns.map(({ width = 0 }) => width))]
  if (total(high) <= target) return columns.map(({ width }) => width)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (total(middle) <= target) low = middle
    else high = middle
  }
  return columns.map((column) => (column.width === undefined ? undefined : capped(column, low)))
}

const capped = ({ width, least }: Fitting, cap: number): number =>
  width === undefined ? LEAST_NAME : Math.min(width, Math.max(least, cap))
