import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { elapsedMs, steadyClock, systemClock } from './clock.ts'

describe('a wait', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('that is longer than any timer takes does not end at once', async () => {
    const days = 86_400_000
    let isOver = false
    void systemClock.sleep(60 * days).then(() => {
      isOver = true
    })
    await vi.advanceTimersByTimeAsync(59 * days)
    expect(isOver).toBe(false)
    await vi.advanceTimersByTimeAsync(days)
    expect(isOver).toBe(true)
  })

  it('of that length ends with its signal', async () => {
    const end = new AbortController()
    const wait = systemClock.sleep(Number.POSITIVE_INFINITY, end.signal)
    end.abort()
    await wait
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('time that passes', () => {
  it('goes on as it was when the clock is set, and a clock that was set back says that none passed', async () => {
    const before = steadyClock.now()
    const real = Date.now
    try {
      Date.now = () => real() - 7_200_000
      expect(steadyClock.now() - before).toBeGreaterThanOrEqual(0)
      expect(steadyClock.now() - before).toBeLessThan(60_000)
      expect(elapsedMs(systemClock, real())).toBe(0)
    } finally {
      Date.now = real
    }
  })
})
