import type { SequenceRange } from './agent.ts'

/** Runs of numbers, ascending, each apart from the next. Used for sequences and for spans of time. */
export type Ranges = readonly SequenceRange[]

/** The index of the first range that ends at this number or after it. */
function lowest(ranges: Ranges, number: number): number {
  let low = 0
  let high = ranges.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ranges[middle] as SequenceRange)[1] < number) low = middle + 1
    else high = middle
  }
  return low
}

/** Whether a range holds the number. */
export function inRanges(ranges: Ranges, number: number): boolean {
  const range = ranges[lowest(ranges, number)]
  return range !== undefined && range[0] <= number
}

/** Whether a range comes closer to the number than `reach`. */
export function nearRanges(ranges: Ranges, number: number, reach: number): boolean {
  const after = lowest(ranges, number)
  const [before, next] = [ranges[after - 1], ranges[after]]
  return (before !== undefined && number - before[1] < reach) || (next !== undefined && next[0] - number < reach)
}

/** The ranges with one more; those that are at most `reach` apart become one. A range that ends before it begins adds nothing. */
export function withRange(ranges: Ranges, [first, last]: SequenceRange, reach = 1): Ranges {
  if (!(last >= first)) return ranges
  const from = lowest(ranges, first - reach)
  let to = from
  let merged: SequenceRange = [first, last]
  for (let next = ranges[to]; next && next[0] <= last + reach; next = ranges[++to]) {
    merged = [Math.min(merged[0], next[0]), Math.max(merged[1], next[1])]
  }
  return [...ranges.slice(0, from), merged, ...ranges.slice(to)]
}

/** As few ranges as hold the same numbers. */
export const rangesOf = (runs: Iterable<SequenceRange>): Ranges =>
  [...runs].reduce<Ranges>((ranges, run) => withRange(ranges, run), [])

/** The pieces of a run of whole numbers that no range holds. */
export function missingFrom(ranges: Ranges, [first, last]: SequenceRange): SequenceRange[] {
  const missing: SequenceRange[] = []
  let next = first
  for (let i = lowest(ranges, first); next <= last; i++) {
    const range = ranges[i]
    if (!range || range[0] > last) {
      missing.push([next, last])
      break
    }
    if (range[0] > next) missing.push([next, range[0] - 1])
    next = Math.max(next, range[1] + 1)
  }
  return missing
}

/** How many whole numbers the ranges hold. */
export const countInRanges = (ranges: Ranges): number =>
  ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0)
