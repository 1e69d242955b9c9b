import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AgentFacts, type Clock, parseClusterName, StoreUnavailableError, systemClock } from '#model'
import { silentLogger } from '#runtime'
import { T0, west } from '../../state/test/fleet-words.ts'
import { eventually } from '../../state/test/redis-server.ts'
import { FactsReport } from './facts-report.ts'
import { Bucket, StreamRate } from './rate.ts'
import { Refusals } from './refusals.ts'
import { correctOriginalTime, correctTime } from './times.ts'

const aClock = (): Clock & { at: number } => ({
  at: T0,
  now() {
    return this.at
  },
  sleep: systemClock.sleep,
})

describe('the time of a batch', () => {
  it.each([
    ['a right clock is believed', { collectedAt: T0 - 5_000, ageMs: 4_900, offsetMs: 300 }, T0 - 5_000],
    ['a clock a minute ahead is shifted', { collectedAt: T0 + 55_000, ageMs: 5_000, offsetMs: 60_000 }, T0 - 5_000],
    ['a clock days off counts for nothing', { collectedAt: 1_000, ageMs: 7_000, offsetMs: -9e8 }, T0 - 7_000],
    ['of such a clock an old time is shifted', { collectedAt: T0 - 9e8 - 3_000, offsetMs: -9e8 }, T0 - 3_000],
    [
      'a clock less than two minutes off is shifted, too',
      { collectedAt: T0 - 89_000, ageMs: 4_900, offsetMs: -84_000 },
      T0 - 5_000,
    ],
    ['a clock a second off is shifted', { collectedAt: T0 - 4_000, ageMs: 4_990, offsetMs: 1_000 }, T0 - 5_000],
    ['one a little less off is believed', { collectedAt: T0 - 4_000, ageMs: 4_900, offsetMs: 999 }, T0 - 4_000],
    ['a message that took long is no clock', { collectedAt: T0 - 12_000, ageMs: 10, offsetMs: 0 }, T0 - 12_000],
    ['a clock set by 84 s since is noticed', { collectedAt: T0 - 86_000, ageMs: 2_000, offsetMs: 0 }, T0 - 2_000],
    ['one set forward by 84 s since, too', { collectedAt: T0 + 82_000, ageMs: 2_000, offsetMs: 0 }, T0 - 2_000],
    ['a clock that jumped since is noticed', { collectedAt: T0 - 8.64e7, ageMs: 2_000, offsetMs: 0 }, T0 - 2_000],
    ['nothing is in the future', { collectedAt: T0 + 900, ageMs: 0, offsetMs: 0 }, T0],
    ['what is no number is now', { collectedAt: Number.NaN, offsetMs: 0 }, T0],
  ])('%s', (_, times, expected) => {
    expect(correctTime({ ...times, now: T0 }).at).toBe(expected)
  })

  it('is a whole number between the beginning and now, whatever is said', () => {
    const any = fc.oneof(fc.double(), fc.constant(Number.NaN))
    fc.assert(
      fc.property(any, fc.option(any, { nil: undefined }), any, (collectedAt, ageMs, offsetMs) => {
        for (const { at } of [
          correctTime({ collectedAt, ageMs, offsetMs, now: T0 }),
          correctOriginalTime({ collectedAt, offsetMs, now: T0 }),
        ]) {
          expect(Number.isSafeInteger(at)).toBe(true)
          expect(at).toBeGreaterThan(0)
          expect(at).toBeLessThanOrEqual(T0)
        }
      }),
    )
  })
})

describe('a rate', () => {
  it('lets through no more than its burst and its rate, however the clock runs', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(5_000), fc.nat(20))), (steps) => {
        const bucket = new Bucket(10, 50, T0)
        let [now, taken] = [T0, 0]
        for (const [passed, wanted] of steps) {
          now += passed
          if (bucket.debtMs(now) > 0) continue
          bucket.take(wanted, now)
          taken += wanted
        }
        expect(taken).toBeLessThanOrEqual(50 + ((now - T0) / 1000) * 10 + 20)
      }),
    )
  })

  it('forgives a burst after a pause, and a clock that was set back', () => {
    const rate = new StreamRate(
      { messagesPerSecond: 10, bytesPerSecond: 1e6, inflatedBytesPerSecond: 1e6, overRateMs: 1_000 },
      T0,
    )
    for (let i = 0; i < 30; i++) rate.take(1, T0)
    expect(rate.waitMs(T0)).toBe(1_000)
    rate.take(1, T0 - 86_400_000)
    expect(rate.waitMs(T0 - 86_400_000)).toBeLessThan(2_000)
    const later = T0 + 5_000
    rate.take(1, later)
    expect([rate.waitMs(later), rate.isFarOver(later)]).toEqual([0, false])
  })
})

describe('refusals', () => {
  it('are answered at once ten times, then later and later, and close the door to who insists', async () => {
    const held: number[] = []
    const clock: Clock = { now: () => T0, sleep: (ms) => new Promise(() => void held.push(ms)) }
    const refusals = new Refusals(clock)
    const { signal } = new AbortController()
    for (let i = 0; i < 10; i++) await refusals.hold('10.0.0.1', signal)
    expect(held).toEqual([])
    for (let i = 0; i < 8; i++) void refusals.hold('10.0.0.1', signal)
    expect(held).toEqual([2_000, 4_000, 5_000, 5_000, 5_000, 5_000, 5_000, 5_000])
    expect(refusals.isClosedTo('10.0.0.1')).toBe(true)
    expect(refusals.isClosedTo('10.0.0.2')).toBe(false)
  })
})

describe('the facts of agents', () => {
  const resumedAt = () => Number.NEGATIVE_INFINITY
  const facts = (changes: Partial<AgentFacts> = {}): AgentFacts => ({
    connected: true,
    since: T0,
    reason: '',
    version: '1',
    protocol: 1,
    heartbeatAt: T0,
    bufferedBatches: 0,
    bufferedBytes: 0,
    oldestBufferedAt: null,
    lostBatches: 0,
    clockOffsetMs: 3,
    tls: true,
    method: 'token',
    plan: '',
    epoch: 1,
    ...changes,
  })

  it('move state when one comes or goes, else seldom, and not when only its heart beats', async () => {
    const told: AgentFacts[] = []
    const clock = aClock()
    const ingester = { knows: () => true, agent: (_: unknown, one: AgentFacts) => Promise.resolve(void told.push(one)) }
    await using report = new FactsReport({ ingester, clock, logger: silentLogger, everyMs: 30_000, resumedAt })
    const tell = async (changes: Partial<AgentFacts>, now = false) => {
      report.tell(west, facts(changes), { now, process: 'one' })
      await new Promise((resolve) => setImmediate(resolve))
    }
    await tell({}, true)
    await tell({ bufferedBatches: 5 })
    expect(told).toHaveLength(1)
    clock.at += 30_000
    await tell({ heartbeatAt: clock.at, clockOffsetMs: 40 })
    expect(told).toHaveLength(1)
    await tell({ bufferedBatches: 5 })
    expect(told).toHaveLength(2)
    await tell({ connected: false, bufferedBatches: 5 }, true)
    expect(told.at(-1)).toMatchObject({ connected: false })
  })

  it('are told again, the newest only, when the log did not take them', async () => {
    const told: AgentFacts[] = []
    let failures = 1
    const ingester = {
      knows: () => true,
      agent: (_: unknown, one: AgentFacts) => {
        if (failures-- > 0) return Promise.reject(new StoreUnavailableError('log', 'full'))
        return Promise.resolve(void told.push(one))
      },
    }
    const clock: Clock = { now: () => T0, sleep: () => new Promise((resolve) => setImmediate(resolve)) }
    await using report = new FactsReport({ ingester, clock, logger: silentLogger, everyMs: 30_000, resumedAt })
    report.tell(west, facts(), { now: true, process: 'one' })
    report.tell(west, facts({ connected: false }), { now: true, process: 'one' })
    await eventually('the newest is told', () => told.at(-1)?.connected === false)
    expect(told).toHaveLength(1)
  })

  it('of many agents wait for a log that takes nothing without a warning of the process', async () => {
    await expectNoWarning(async () => {
      const ingester = { knows: () => true, agent: () => Promise.reject(new StoreUnavailableError('log', 'full')) }
      await using report = new FactsReport({
        ingester,
        clock: patient,
        logger: silentLogger,
        everyMs: 30_000,
        resumedAt,
      })
      for (let i = 0; i < 50; i++) report.tell(parseClusterName(`c${i}`), facts(), { now: true, process: 'one' })
    })
  })
})

/** Whoever sleeps by it listens to the signal, as with the real clock. */
const patient: Clock = {
  now: () => T0,
  sleep: (_, signal) =>
    new Promise((resolve) => {
      if (!signal || signal.aborted) resolve()
      else signal.addEventListener('abort', () => resolve(), { once: true })
      setImmediate(() => setImmediate(resolve))
    }),
}

async function expectNoWarning(work: () => Promise<void>): Promise<void> {
  const warnings: string[] = []
  const hear = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`)
  process.on('warning', hear)
  try {
    await work()
    // Warnings are told in a later turn.
    await new Promise((resolve) => setImmediate(resolve))
    expect(warnings).toEqual([])
  } finally {
    process.off('warning', hear)
  }
}
