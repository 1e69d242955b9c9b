import type { PageStart } from './row-pages.ts'

/** Places of rows: from the first on, up to the one behind the last. */
export interface RowsLook {
  readonly from: number
  readonly to: number
}

/** Rows that the stream is asked for: so many behind one that was read. */
export interface RowsWindow extends PageStart {
  readonly limit: number
}

/** As many as are read ahead of a first look. */
const usualLimit = 1000
/** What is in sight at the end of a page reaches into the next. */
const mostLimit = 2000
/** Rows beside those in sight: who scrolls by a few lines is told these at once. */
const margin = 32

export const topWindow: RowsWindow = { at: 0, cursor: undefined, limit: usualLimit }

/** What somebody looks at is told. @param size of all that is loaded */
export const isWithin = ({ from, to }: RowsLook, { at, limit }: RowsWindow, size: number): boolean =>
  at <= from && Math.min(to, size) <= at + limit

/** The window that shows what somebody looks at, and some rows around it. @param starts of pages, rising, the first at 0 */
export function windowAt({ from, to }: RowsLook, starts: readonly PageStart[]): RowsWindow {
  const start = starts.findLast(({ at }) => at <= Math.max(0, from - margin)) ?? topWindow
  return { ...start, limit: to + margin - start.at > usualLimit ? mostLimit : usualLimit }
}
