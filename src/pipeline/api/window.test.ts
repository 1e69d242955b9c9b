import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { maxHistoryPoints } from '#http'
import { minutes, seconds } from '#model'
import { RefusedError } from './problem.ts'
import { days, durationText, friendlyStep, parseDuration, parseStep, parseTime, windowOf } from './window.ts'

const now = Date.UTC(2026, 0, 31, 12, 0, 7)
const refusal = (run: () => unknown): string => {
  try {
    run()
  } catch (thrown) {
    if (thrown instanceof RefusedError) return `${thrown.code}: ${thrown.message}`
    throw thrown
  }
  return 'taken'
}

describe('parseDuration', () => {
  it.each([
    ['90m', 5_400_000],
    ['1h30m', 5_400_000],
    ['1.5h', 5_400_000],
    ['7d', 604_800_000],
    ['500ms', 500],
    ['1m30s500ms', 90_500],
  ])('reads %s', (text, ms) => expect(parseDuration(text)).toBe(ms))
  it.each(['', '5', 'm', '-5m', '1h 30m', '5M', '1e3s', '5m;', `${'1'.repeat(13)}s`])('refuses %j', (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  )
  it('reads back what durationText wrote', () =>
    fc.assert(fc.property(fc.nat(), (ms) => void expect(parseDuration(durationText(ms))).toBe(ms))))
  it('lets a step be plain seconds', () =>
    expect([parseStep('15'), parseStep('0.5'), parseStep('1m')]).toEqual([15_000, 500, 60_000]))
})

describe('parseTime', () => {
  it.each([
    ['1700000000', 1_700_000_000_000],
    ['1700000000.25', 1_700_000_000_250],
    ['2026-01-31T12:00:00Z', Date.UTC(2026, 0, 31, 12)],
    ['2026-01-31t12:00:00.5z', Date.UTC(2026, 0, 31, 12, 0, 0, 500)],
    ['2026-01-31T13:00:00+01:00', Date.UTC(2026, 0, 31, 12)],
    ['2026-01-31T13:00:00 01:00', Date.UTC(2026, 0, 31, 12)],
  ])('reads %s', (text, at) => expect(parseTime(text)).toBe(at))
  it.each([
    '',
    'now',
    '-1h',
    '-5',
    '1e9',
    '2026-01-31',
    '2026-13-01T00:00:00Z',
    '1970-01-01T00:00:00+02:00',
    'NaN',
    '12:00',
  ])('refuses %j', (text) => expect(parseTime(text)).toBeUndefined())
})

describe('a window', () => {
  it.each([
    [{}, '1h', 30],
    [{ range: '15m' }, '15m', 30],
    [{ range: '6h' }, '6h', 120],
    [{ range: '24h' }, '24h', 300],
    [{ range: '7d' }, '7d', 3600],
    [{ range: '30d' }, '30d', 10_800],
  ])('of %j chooses a friendly step', (query, range, step) => {
    const window = windowOf(query, now, seconds(30))
    expect(window.stepMs).toBe(seconds(step))
    expect(window.to).toBe(Math.floor(now / window.stepMs) * window.stepMs)
    expect(window.to - window.from).toBeGreaterThanOrEqual((parseDuration(range) ?? 0) - window.stepMs)
  })

  it('is never finer than the cluster is collected, unless asked', () => {
    expect(windowOf({ range: '5m' }, now, minutes(2)).stepMs).toBe(minutes(2))
    expect(windowOf({ range: '5m', step: '1' }, now, minutes(2)).stepMs).toBe(1000)
  })

  it('takes any two of start, end and range', () => {
    const at = (text: string) => Date.parse(text)
    const twoTimes = windowOf({ start: '2026-01-31T10:00:00Z', end: '2026-01-31T11:00:00Z' }, now, 30_000)
    expect(twoTimes).toEqual({ from: at('2026-01-31T10:00:00Z'), to: at('2026-01-31T11:00:00Z'), stepMs: 30_000 })
    expect(windowOf({ start: '2026-01-31T10:00:00Z', range: '1h' }, now, 30_000)).toEqual(twoTimes)
    expect(windowOf({ end: '2026-01-31T11:00:00Z', range: '1h' }, now, 30_000)).toEqual(twoTimes)
    expect(windowOf({ end: '2026-01-31T11:00:00Z' }, now, 30_000)).toEqual(twoTimes)
    expect(windowOf({ start: '2026-01-31T10:00:00Z' }, now, 30_000).to).toBe(now - 7000)
  })

  it('ends now, whatever end says', () => {
    expect(windowOf({ start: String(now / 1000 - 600), end: String(now / 1000 + 999) }, now, 30_000).to).toBe(
      now - 7000,
    )
  })

  it.each([
    [{ range: '4m' }, 'from 5m to 30d'],
    [{ range: '31d' }, 'from 5m to 30d'],
    [{ range: 'soon' }, 'is no duration'],
    [{ start: 'yesterday' }, 'is no time'],
    [{ range: '1h', start: '1', end: '2' }, 'leave one out'],
    [{ start: '1700000100', end: '1700000000' }, 'start is not before end'],
    [{ start: '1700000000', end: '1703000000' }, 'more than 30d'],
    [{ start: '1', end: '1700000000' }, 'more than 30d'],
    [{ step: '0' }, 'at least one second'],
    [{ step: '1500ms' }, 'whole seconds'],
    [{ step: 'fine' }, 'is no step'],
  ])('of %j is refused', (query, why) => {
    expect(refusal(() => windowOf(query, now, 30_000))).toMatch(new RegExp(`^invalid_range: .*${why}`))
  })

  it('of too many points is refused with a step that would do, and it does', () => {
    const query = { range: '30d', step: '30s' }
    const message = refusal(() => windowOf(query, now, 30_000))
    expect(message).toMatch(/^too_many_points: 86401 points per series are more than 2000: step=30m would do$/)
    const { from, to, stepMs } = windowOf({ ...query, step: '30m' }, now, 30_000)
    expect((to - from) / stepMs + 1).toBeLessThanOrEqual(maxHistoryPoints)
  })

  it('without a step always has at most 302 points, at whole multiples of the step', () =>
    fc.assert(
      fc.property(
        fc.integer({ min: 1000, max: days(30) }),
        fc.integer({ min: 1000, max: minutes(10) }),
        (range, every) => {
          const { from, to, stepMs } = windowOf({ start: String((now - range) / 1000) }, now, every)
          expect((to - from) / stepMs + 1).toBeLessThanOrEqual(302)
          expect([from % stepMs, to % stepMs]).toEqual([0, 0])
          expect(stepMs).toBe(friendlyStep(stepMs))
          expect(stepMs).toBeGreaterThanOrEqual(every)
        },
      ),
    ))
})
