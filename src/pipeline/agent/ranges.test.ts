import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Ranges } from './ranges.ts'

const run = fc.tuple(fc.integer({ min: 1, max: 60 }), fc.nat(8)).map(([first, more]) => [first, first + more] as const)

describe('Ranges', () => {
  it('are a set, whatever the order of additions', () =>
    fc.assert(
      fc.property(fc.array(run), (runs) => {
        const ranges = new Ranges(runs)
        const set = new Set(runs.flatMap(([a, b]) => Array.from({ length: b - a + 1 }, (_, i) => a + i)))
        expect(ranges.count).toBe(set.size)
        for (let n = 1; n < 75; n++) expect(ranges.has(n)).toBe(set.has(n))
        for (const [i, [first]] of ranges.runs.entries()) {
          const before = ranges.runs[i - 1]
          if (before) expect(first).toBeGreaterThan(before[1] + 1)
        }
      }),
    ))

  it('say what is missing from a span, exactly', () =>
    fc.assert(
      fc.property(fc.array(run), run, (runs, [from, to]) => {
        const ranges = new Ranges(runs)
        const missing = new Ranges(ranges.missing(from, to))
        for (let n = from; n <= to; n++) expect(missing.has(n)).toBe(!ranges.has(n))
      }),
    ))
})
