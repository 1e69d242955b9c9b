import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatValue, timeLabel, timeTicks, type Unit, valueAxis } from './units.ts'

const GiB = 2 ** 30
const units: readonly Unit[] = ['cores', 'bytes', 'percent', 'count', 'flag']

describe('values', () => {
  it.each([
    ['cores', 12.345, '12.3 cores'],
    ['cores', 0.0025, '<0.01 cores'],
    ['bytes', 0.2, '<1 B'],
    ['percent', 0.02, '<0.1 %'],
    ['count', 0.02, '<0.1'],
    ['milliseconds', 0.02, '<0.1 ms'],
    ['flag', 0.0001, '<0.1 % of the time'],
    ['bytes', 1.5 * GiB, '1.5 Gi'],
    ['percent', 41.26, '41.3 %'],
    ['count', 42, '42'],
    ['count', 41.5, '41.5'],
    ['flag', 1, 'yes'],
    ['flag', 0, 'no'],
    ['flag', 0.25, '25 % of the time'],
  ] as const)('say their unit: %s %d', (unit, value, text) => expect(formatValue(unit, value)).toBe(text))
})

describe('the axis of values', () => {
  it.each([
    ['cores', 144, ['0', '50', '100', '150']],
    ['cores', 0.37, ['0', '0.1', '0.2', '0.3', '0.4']],
    ['percent', 43, ['0', '25 %', '50 %', '75 %', '100 %', '125 %'].slice(0, 5)],
    ['count', 1, ['0', '1', '2', '3', '4']],
    ['bytes', 500 * GiB, ['0', '128 Gi', '256 Gi', '384 Gi', '512 Gi']],
    ['amount', 9.5, ['0', '2.5', '5', '7.5', '10']],
    ['cores', 9.5, ['0', '2.5', '5', '7.5', '10']],
    ['cores', 95, ['0', '25', '50', '75', '100']],
    ['cores', 0.95, ['0', '0.25', '0.5', '0.75', '1']],
    ['amount', 12_500, ['0', '5,000', '10,000', '15,000']],
    ['seconds', 9.5, ['0', '2.5 s', '5 s', '7.5 s', '10 s']],
    ['seconds', 95, ['0', '30 s', '60 s', '90 s', '120 s']],
    ['seconds', 5000, ['0', '30 min', '60 min', '90 min']],
    ['seconds', 300_000, ['0', '1 d', '2 d', '3 d', '4 d']],
    ['bytes', 3 * GiB, ['0', '1 Gi', '2 Gi', '3 Gi', '4 Gi']],
  ] as const)('%s up to %d', (unit, largest, labels) => expect(valueAxis(unit, largest).labels).toEqual(labels))

  it('begins at 0, ends above the largest value, and has few even steps', () => {
    fc.assert(
      fc.property(fc.constantFrom(...units), fc.double({ min: 0, max: 1e15, noNaN: true }), (unit, size) => {
        const largest = unit === 'flag' ? Math.min(size, 1) : size
        const { max, ticks, labels } = valueAxis(unit, largest)
        expect(ticks[0]).toBe(0)
        expect(max).toBeGreaterThanOrEqual(largest)
        expect(ticks.length).toBe(labels.length)
        expect(ticks.length).toBeLessThanOrEqual(6)
        const step = ticks[1] ?? 0
        for (const [index, tick] of ticks.entries()) expect(tick / (index * step || 1)).toBeCloseTo(index === 0 ? 0 : 1)
      }),
    )
  })

  it('survives what is no number', () => expect(valueAxis('cores', Number.NaN).max).toBeGreaterThan(0))
})

describe('the axis of time', () => {
  it('has round moments of the local clock within the range, no more than there is room for', () => {
    const start = fc.integer({ min: 1_600_000_000, max: 1_900_000_000 })
    const span = fc.integer({ min: 300, max: 30 * 86_400 })
    fc.assert(
      fc.property(start, span, fc.integer({ min: 2, max: 20 }), (from, length, most) => {
        const [begin, end] = [from * 1000, (from + length) * 1000]
        const ticks = timeTicks(begin, end, most)
        expect(ticks.length).toBeLessThanOrEqual(most + 2)
        expect(ticks).toEqual([...ticks].sort((a, b) => a - b))
        for (const tick of ticks) {
          expect(tick).toBeGreaterThanOrEqual(begin)
          expect(tick).toBeLessThanOrEqual(end)
          expect(new Date(tick).getSeconds()).toBe(0)
        }
      }),
      { numRuns: 60 },
    )
  })

  it('tells midnight by its date', () => {
    expect(timeLabel(new Date(2026, 10, 21).getTime())).toMatch(/21/)
    expect(timeLabel(new Date(2026, 10, 21, 7, 5).getTime())).toBe('07:05')
  })
})
