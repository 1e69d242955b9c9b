import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HistorySpan } from '#history'
import { askedStep, wholeSteps } from './steps.ts'

const start = 1_700_000_010_000

/** What a store answers: the mean of the samples of each piece, and null where there is none. */
function means(times: readonly number[], stepMs: number, points: number) {
  const values = Array.from({ length: points }, (_, index) => {
    const [from, end] = [start + index * stepMs, start + (index + 1) * stepMs]
    const within = times.flatMap((at, n) => (at >= from && at < end ? [n + 1] : []))
    return within.length === 0 ? null : within.reduce((sum, value) => sum + value, 0) / within.length
  })
  return { start, stepMs, points, series: [{ metric: 'm', key: '', values }] }
}

function shown(times: readonly number[], stepMs: number, intervalMs: number, lost: readonly HistorySpan[] = []) {
  const asked = askedStep(stepMs, intervalMs)
  return wholeSteps(means(times, asked, (20 * stepMs) / asked), intervalMs, lost).series[0]?.values ?? []
}

describe('steps of a chart', () => {
  it('asks in halves only where a step is hardly longer than the interval', () => {
    expect(askedStep(30_000, 30_000)).toBe(15_000)
    expect(askedStep(50_000, 30_000)).toBe(25_000)
    expect(askedStep(60_000, 30_000)).toBe(60_000)
    expect(askedStep(10_000, 30_000)).toBe(10_000)
    expect(askedStep(1, 1)).toBe(1)
  })

  it('shows no hole where a round began some milliseconds late', () => {
    const times = [start + 29_990, start + 60_010, start + 90_020]
    expect(shown(times, 30_000, 30_000).slice(0, 5)).toEqual([1, 1, 2, 3, null])
  })

  it('shows the hole where something is said to be lost', () => {
    const times = [start + 29_990, start + 60_010]
    const lost = { kind: 'lost' as const, from: start + 30_000, to: start + 31_000, cause: 'dropped', count: 1 }
    expect(shown(times, 30_000, 30_000, [lost]).slice(0, 3)).toEqual([1, null, 2])
  })

  it('carries a value where no round is missing, never where two are', () => {
    const worlds = fc.record({
      intervalMs: fc.integer({ min: 1, max: 60 }).map((n) => n * 1000),
      ratio: fc.double({ min: 1, max: 1.99, noNaN: true }),
      first: fc.double({ min: 0, max: 3, noNaN: true }),
      gaps: fc.array(fc.double({ min: 0.5, max: 4.5, noNaN: true }), { minLength: 1, maxLength: 20 }),
    })
    fc.assert(
      fc.property(worlds, ({ intervalMs, ratio, first, gaps }) => {
        const stepMs = Math.floor((intervalMs * ratio) / 2) * 2
        fc.pre(askedStep(stepMs, intervalMs) !== stepMs)
        const times = [start + Math.floor(first * intervalMs)]
        for (const gap of gaps) times.push((times.at(-1) ?? 0) + Math.floor(gap * intervalMs))
        const values = shown(times, stepMs, intervalMs)
        for (const [index, value] of values.entries()) {
          const [from, end] = [start + index * stepMs, start + (index + 1) * stepMs]
          const [before, after] = [times.findLast((at) => at < from), times.find((at) => at >= end)]
          if (times.some((at) => at >= from && at < end)) expect(value).not.toBeNull()
          else if (before === undefined || after === undefined) expect(value).toBeNull()
          else if (after - before < 2 * intervalMs && after < start + 20 * stepMs)
            expect(value).toBeCloseTo(valueBefore(times, before, stepMs / 2))
          else if (after - before > 2 * intervalMs + stepMs) expect(value).toBeNull()
        }
      }),
      { numRuns: 2000 },
    )
  })
})

/** The mean of the half that holds the last sample before. */
function valueBefore(times: readonly number[], before: number, halfMs: number): number {
  const half = Math.floor((before - start) / halfMs)
  const within = times.flatMap((at, n) => (Math.floor((at - start) / halfMs) === half ? [n + 1] : []))
  return within.reduce((sum, value) => sum + value, 0) / within.length
}
