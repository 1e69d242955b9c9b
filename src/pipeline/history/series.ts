import { InvalidRangeError, TooManySeriesError } from './errors.ts'
import type { RangeAnswer, RangeQuery, Series } from './types.ts'

/** Points of one series in any answer. */
const MAX_POINTS = 11_000

/** The steps of an answer: whole multiples of the step, from the one that holds `from` to the one that holds `to`. */
export interface Grid {
  /** ms */
  readonly start: number
  readonly stepMs: number
  readonly points: number
  /** first time after the last step, ms */
  readonly end: number
}

/** @throws InvalidRangeError */
export function gridOf({ from, to, stepMs, metrics }: RangeQuery): Grid {
  const isTime = (at: number): boolean => Number.isFinite(at) && Math.abs(at) <= 8.64e15
  if (!isTime(from) || !isTime(to) || to < from) throw new InvalidRangeError('the range ends before it begins')
  if (!Number.isSafeInteger(stepMs) || stepMs < 1) throw new InvalidRangeError('the step is at least one millisecond')
  if (metrics.length === 0) throw new InvalidRangeError('at least one metric is needed')
  const start = Math.floor(from / stepMs) * stepMs
  const points = Math.floor((to - start) / stepMs) + 1
  if (points > MAX_POINTS) throw new InvalidRangeError(`${points} points are more than ${MAX_POINTS}`)
  return { start, stepMs, points, end: start + points * stepMs }
}

/** Puts points of an answer together. A series without a point is none. */
export class SeriesTable {
  readonly #grid: Grid
  readonly #maxSeries: number
  readonly #values = new Map<string, Map<string, (number | null)[]>>()
  #count = 0

  constructor(grid: Grid, maxSeries: number) {
    this.#grid = grid
    this.#maxSeries = maxSeries
  }

  /** @throws TooManySeriesError */
  set(metric: string, key: string, point: number, value: number | null): void {
    if (value === null || !Number.isFinite(value) || point < 0 || point >= this.#grid.points) return
    const ofMetric = this.#values.get(metric) ?? new Map<string, (number | null)[]>()
    if (ofMetric.size === 0) this.#values.set(metric, ofMetric)
    let values = ofMetric.get(key)
    if (!values) {
      if (++this.#count > this.#maxSeries) throw new TooManySeriesError(this.#maxSeries)
      values = new Array<number | null>(this.#grid.points).fill(null)
      ofMetric.set(key, values)
    }
    values[point] = value
  }

  /** in the order of the metrics as asked, then by key */
  answer(metrics: readonly string[]): RangeAnswer {
    const { start, stepMs, points } = this.#grid
    const series = [...new Set(metrics)].flatMap((metric): Series[] =>
      [...(this.#values.get(metric) ?? [])]
        .sort(([left], [right]) => (left < right ? -1 : 1))
        .map(([key, values]) => ({ metric, key, values })),
    )
    return { start, stepMs, points, series }
  }
}

/** A metric's name as both stores take it: letters, digits and `_`, not beginning with a digit. */
export function cleanMetric(name: string): string {
  const clean = name.slice(0, 250).replace(/[^a-zA-Z0-9_]/g, '_')
  return /^[a-zA-Z_]/.test(clean) ? clean : `_${clean}`
}

/** Whole ms since the Unix epoch, or undefined: no store keeps what is before 1970 or beyond what a date can say. */
export function cleanTime(at: number): number | undefined {
  const time = Math.floor(at)
  return time >= 0 && time <= 8.64e15 ? time : undefined
}
