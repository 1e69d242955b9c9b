import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  clampBounds,
  formatIso,
  narrowestMs,
  pan,
  parseRange,
  presets,
  rangeQuery,
  refreshMs,
  stepFor,
  widestMs,
  zoom,
} from './range.ts'

const now = Date.UTC(2026, 10, 21, 8, 0, 0)
const hour = 3_600_000
const queryText = (words: Readonly<Record<string, string | null>>) =>
  new URLSearchParams(
    Object.entries(words).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
  ).toString()

describe('a range in the address', () => {
  it('is the last hour where nothing is said', () => {
    expect(parseRange('q=1')).toMatchObject({ range: { kind: 'live', preset: { id: '1h' } }, fault: null })
  })

  it.each(presets.map(({ id }) => id))('takes %s', (id) => {
    expect(parseRange(`range=${id}`)).toMatchObject({ range: { kind: 'live', preset: { id } }, fault: null })
  })

  it.each([
    ['range=3y', 'no range "3y"'],
    ['from=yesterday&to=2026-11-21T08:00:00Z', 'its start is no date'],
    ['from=2026-11-21T08:00:00Z', 'its end is no date'],
    ['from=2026-11-21T08:00:00Z&to=2026-11-21T07:00:00Z', 'not after its start'],
    ['from=2026-11-21T08:00:00Z&to=2026-11-21T08:01:00Z', 'shorter than 5 minutes'],
    ['from=2026-01-01T00:00:00Z&to=2026-11-21T08:00:00Z', 'longer than 30 days'],
    ['from=99999999999999&to=1', 'not after its start'],
  ])('says what is wrong with %s, and shows the usual one', (query, words) => {
    const { range, fault } = parseRange(query)
    expect(range.kind).toBe('live')
    expect(fault).toContain(words)
  })

  it('means the same when it is read back', () => {
    const seconds = fc.integer({ min: 1_500_000_000, max: 1_900_000_000 })
    const span = fc.integer({ min: narrowestMs / 1000, max: widestMs / 1000 })
    const preset = fc.constantFrom(...presets)
    fc.assert(
      fc.property(seconds, span, preset, fc.boolean(), (start, length, preset, live) => {
        const range = live
          ? ({ kind: 'live', preset } as const)
          : ({ kind: 'fixed', preset, from: start * 1000, to: (start + length) * 1000 } as const)
        expect(parseRange(queryText(rangeQuery(range)))).toEqual({ range, fault: null })
      }),
    )
  })

  it('never throws, whatever a link says', () => {
    fc.assert(fc.property(fc.string(), fc.string(), (from, to) => void parseRange(queryText({ from, to }))))
  })

  it('writes moments by UTC to the second', () => expect(formatIso(now + 123)).toBe('2026-11-21T08:00:00Z'))
})

describe('moving', () => {
  const bounds = fc
    .tuple(fc.integer({ min: 0, max: 40 * 24 * hour }), fc.integer({ min: 1000, max: 40 * 24 * hour }))
    .map(([ago, span]) => ({ from: now - ago - span, to: now - ago }))

  it('stays within what can be shown, and out of the future', () => {
    fc.assert(
      fc.property(
        bounds,
        fc.double({ min: 0.05, max: 20, noNaN: true }),
        fc.constantFrom(-1 as const, 1 as const),
        (at, factor, way) => {
          for (const next of [clampBounds(at, now), zoom(at, factor, at.to, now), pan(at, way, now)]) {
            expect(next.to - next.from).toBeGreaterThanOrEqual(narrowestMs)
            expect(next.to - next.from).toBeLessThanOrEqual(widestMs)
            expect(next.to).toBeLessThanOrEqual(now)
            expect(parseRange(queryText(rangeQuery({ kind: 'fixed', preset: presets[0]!, ...next }))).fault).toBeNull()
          }
        },
      ),
    )
  })

  it('keeps the moment under the crosshair where it is', () => {
    const from = now - 10 * hour
    const next = zoom({ from, to: now - 2 * hour }, 0.5, now - 8 * hour, now)
    expect(next).toEqual({ from: now - 9 * hour, to: now - 5 * hour })
  })

  it('goes aside by half', () => {
    expect(pan({ from: now - 4 * hour, to: now - 2 * hour }, -1, now)).toEqual({
      from: now - 5 * hour,
      to: now - 3 * hour,
    })
  })
})

describe('one point per step', () => {
  it.each([
    ['15 minutes at 30 s', hour / 4, 30_000, 360, 45_000],
    ['an hour at 30 s', hour, 30_000, 360, 45_000],
    ['an hour at 5 s', hour, 5000, 360, 10_000],
    ['a day', 24 * hour, 30_000, 360, 5 * 60_000],
    ['30 days', 720 * hour, 30_000, 360, 2 * hour],
    ['30 days on a small screen', 720 * hour, 30_000, 180, 4 * hour],
  ])('%s', (_name, span, interval, points, step) => expect(stepFor(span, interval, points)).toBe(step))

  it('is never more points than asked for, and never a step that a late round can miss', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: narrowestMs, max: widestMs }),
        fc.integer({ min: 1000, max: hour }),
        fc.integer({ min: 60, max: 2000 }),
        (span, interval, points) => {
          const step = stepFor(span, interval, points)
          expect(span / step).toBeLessThanOrEqual(points)
          expect(step).toBeGreaterThanOrEqual(1.5 * interval)
        },
      ),
    )
  })

  it('is looked at again with each round, and at least every two minutes', () => {
    expect(refreshMs(45_000, 30_000)).toBe(30_000)
    expect(refreshMs(2 * hour, 30_000)).toBe(120_000)
    expect(refreshMs(2 * hour, 300_000)).toBe(300_000)
  })
})
