import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ClockOffset } from './clock-offset.ts'
import { correctTime } from './times.ts'

const T0 = Date.UTC(2026, 10, 1)
const INTERVAL = 30_000

/** An agent that collects on aligned ticks: what the hub makes of its times, each `[true time, time by the hub]`. */
function collected(rounds: number, clockAt: (at: number) => number, delay: (round: number) => number) {
  const offset = new ClockOffset()
  return Array.from({ length: rounds }, (_, round) => {
    const at = T0 + round * INTERVAL
    const now = at + 200 + delay(round)
    if (round === 0) {
      offset.compare(clockAt(at - 1_000), at - 1_000)
      offset.greeted(at - 1_000)
      offset.compare(clockAt(at - 950), at - 900)
    }
    // The report that comes between two rounds.
    else offset.compare(clockAt(at - 15_000), at - 15_000 + delay(round + rounds))
    const collectedAt = clockAt(at)
    offset.compare(clockAt(at + 200), now)
    return [at, correctTime({ collectedAt, ageMs: 200, offsetMs: offset.ms ?? 0, now }).at] as const
  })
}

describe('the difference of two clocks', () => {
  it('is unknown before the first comparison, and then that of the fastest message', () => {
    const offset = new ClockOffset()
    expect(offset.ms).toBeUndefined()
    for (const lateMs of [300, 20, 900, 4_000]) offset.compare(T0 + 84_000 - lateMs, T0)
    expect(offset.ms).toBe(83_980)
  })

  it('is none where all messages waited for a busy hub', () => {
    const offset = new ClockOffset()
    offset.compare(T0 - 1_600, T0)
    offset.greeted(T0)
    expect(offset.ms).toBe(0)
    // Sent at once when the welcome was there, read late.
    for (const sentAt of [20, 30, 130]) offset.compare(T0 + sentAt, T0 + 2_400 + sentAt)
    expect(offset.ms).toBe(0)
    offset.compare(T0 + 3_000, T0 + 3_010)
    expect(offset.ms).toBe(0)
  })

  it('is seen from the first answer on, however little it is', () => {
    const offset = new ClockOffset()
    offset.compare(T0 - 1_500, T0)
    offset.greeted(T0)
    offset.compare(T0 + 10 - 1_490, T0 + 20)
    expect(offset.ms).toBe(-1_500)
  })

  it.each([
    [3_000, 120_000],
    [30_000, 15_000],
  ])('is seen in the end where it is %d ms and no answer bounds it', (behindMs, withinMs) => {
    const offset = new ClockOffset()
    offset.compare(T0 - behindMs, T0)
    offset.greeted(T0)
    const seenAt = (at: number) => {
      offset.compare(T0 + at - behindMs, T0 + at)
      return offset.ms
    }
    expect(seenAt(withinMs - 1)).toBe(withinMs - 1 > behindMs ? 0 : -behindMs)
    expect(seenAt(withinMs)).toBe(-behindMs)
  })

  it('leaves samples where they belong, in their order and distances, whatever the clock is off and however late messages are', () =>
    fc.assert(
      fc.property(
        fc.integer({ min: -10_000_000, max: 10_000_000 }),
        fc.array(fc.oneof({ weight: 9, arbitrary: fc.nat(300) }, { weight: 1, arbitrary: fc.nat(9_000) }), {
          minLength: 80,
          maxLength: 80,
        }),
        (offMs, delays) => {
          const found = collected(
            40,
            (at) => at + offMs,
            (round) => delays[round] ?? 0,
          )
          for (const [at, shown] of found) {
            const error = Math.abs(shown - at)
            expect(error).toBeLessThanOrEqual(1_000)
          }
          const distances = found.slice(1).map(([, shown], i) => shown - (found[i]?.[1] ?? 0))
          for (const distance of distances) expect(Math.abs(distance - INTERVAL)).toBeLessThanOrEqual(1_000)
        },
      ),
    ))

  it.each([84_000, -84_000, 3_600_000, -3_600_000, 30_000, -30_000])(
    'leaves samples where they belong when the clock is set by %d ms while it runs',
    (byMs) => {
      const setAt = T0 + 10 * INTERVAL + 5_000
      for (const [at, shown] of collected(
        40,
        (at) => at + 84_000 + (at < setAt ? 0 : byMs),
        () => 50,
      ))
        expect(Math.abs(shown - at)).toBeLessThanOrEqual(1_000)
    },
  )
})
