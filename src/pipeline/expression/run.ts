import type { Value } from './types.ts'

/** The longest text an evaluation may make, UTF-16 units. */
export const LONGEST_TEXT = 2 ** 20
/** What an evaluation may spend on texts: a point is about a nanosecond, a UTF-16 unit costs one to six of them. */
export const BUDGET = 4 * 2 ** 20

/** One evaluation under way. */
export interface Run {
  readonly slots: readonly Value[]
  readonly now: number
  /** of the budget; below zero the evaluation is lost, whatever it still computes */
  left: number
}

export const newRun = (slots: readonly Value[], now: number): Run => ({ slots, now, left: BUDGET })

/** @returns false when the budget is used up: then do nothing costly, the result is not looked at */
export function spend(run: Run, cost: number): boolean {
  run.left -= cost
  return run.left >= 0
}

/** Ends the evaluation without a result. */
export function exceed(run: Run): void {
  run.left = Number.NEGATIVE_INFINITY
}

/** Two texts as one, where that is not too long. */
export function joined(a: string, b: string, run: Run): string {
  if (a.length + b.length <= LONGEST_TEXT) return a + b
  exceed(run)
  return ''
}
