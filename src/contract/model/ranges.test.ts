import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SequenceRange } from './agent.ts'
import { countInRanges, inRanges, missingFrom, nearRanges, type Ranges, rangesOf, withRange } from './ranges.ts'

const runs = fc.array(
  fc.tuple(fc.integer({ min: 1, max: 60 }), fc.nat(8)).map(([first, more]): SequenceRange => [first, first + more]),
  { maxLength: 25 },
)
const numbersOf = ([first, last]: SequenceRange) => Array.from({ length: last - first + 1 }, (_, i) => first + i)

describe('ranges', () => {
  it('hold what a plain set of numbers holds, in any order and with repeats', () =>
    fc.assert(
      fc.property(runs, fc.tuple(fc.integer({ min: 1, max: 70 }), fc.nat(20)), (all, [from, more]) => {
        const naive = new Set<number>()
        let ranges: Ranges = []
        for (const run of all) {
          ranges = withRange(ranges, run)
          for (const number of numbersOf(run)) naive.add(number)
        }
        for (let number = 0; number <= 80; number++) expect(inRanges(ranges, number)).toBe(naive.has(number))
        expect(countInRanges(ranges)).toBe(naive.size)
        expect(withRange(ranges, [from, from - 1])).toBe(ranges)
        expect(rangesOf(all)).toEqual(ranges)
        expect(rangesOf([...all].reverse())).toEqual(ranges)
        // Ascending, and none touches the next: as few as can be.
        for (const [i, [first, last]] of ranges.entries()) {
          expect(first).toBeLessThanOrEqual(last)
          if (i > 0) expect(first).toBeGreaterThan((ranges[i - 1] as SequenceRange)[1] + 1)
        }
        const missing = missingFrom(ranges, [from, from + more]).flatMap(numbersOf)
        expect(missing).toEqual(numbersOf([from, from + more]).filter((number) => !naive.has(number)))
      }),
    ))

  it('know how near the next one is, as a look at every one tells', () =>
    fc.assert(
      fc.property(runs, fc.nat(90), fc.integer({ min: 1, max: 10 }), (all, number, reach) => {
        const ranges = all.reduce<Ranges>((known, run) => withRange(known, run, 3), [])
        const nearest = Math.min(
          ...ranges.map(([first, last]) => Math.max(0, first - number, number - last)),
          Number.POSITIVE_INFINITY,
        )
        expect(nearRanges(ranges, number, reach)).toBe(nearest < reach)
      }),
    ))
})
