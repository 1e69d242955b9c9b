import type { SequenceRange } from '#model'

/** Ascending runs with one more sequence in them. */
export function addSequence(ranges: readonly SequenceRange[], sequence: number): SequenceRange[] {
  const result: SequenceRange[] = []
  let [first, last] = [sequence, sequence]
  let placed = false
  for (const range of ranges) {
    if (range[1] < first - 1) result.push(range)
    else if (range[0] > last + 1) {
      if (!placed) result.push([first, last])
      placed = true
      result.push(range)
    } else {
      first = Math.min(first, range[0])
      last = Math.max(last, range[1])
    }
  }
  if (!placed) result.push([first, last])
  return result
}

export function hasSequence(ranges: readonly SequenceRange[], sequence: number): boolean {
  return ranges.some(([first, last]) => first <= sequence && sequence <= last)
}
