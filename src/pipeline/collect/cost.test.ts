import { describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '#model'
import { costOf } from './cost.ts'

/** A clock by which so much time passes in each piece of work. */
function passing(ms: number): Clock {
  let now = 0
  return {
    ...systemClock,
    now: () => {
      now += ms
      return now
    },
  }
}

function busy(cpuMs: number): string {
  const begun = process.cpuUsage()
  for (;;) {
    const { user, system } = process.cpuUsage(begun)
    if ((user + system) / 1000 >= cpuMs) return 'done'
  }
}

describe('the cost of a piece of work', () => {
  it('is the time it had the processor, however long others kept it from that', () => {
    const { result, costMs } = costOf(passing(60_000), () => busy(20))
    expect(result).toBe('done')
    expect(costMs).toBeGreaterThanOrEqual(20)
    expect(costMs).toBeLessThan(10_000)
  })

  it('is no more than the time that passed, and never below nothing', () => {
    expect(costOf(passing(1), () => busy(20)).costMs).toBe(1)
    expect(costOf(passing(-5), () => busy(1)).costMs).toBe(0)
  })
})
