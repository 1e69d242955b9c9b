import { describe, expect, it } from 'vitest'
import { minutes, seconds } from '#model'
import { silentLogger } from '#runtime'
import { ManualClock, settle } from '../../platform/controller/testing/manual-clock.ts'
import { Presence } from './presence.ts'

/** Watches by clocks that may jump: as they do where the process stands still, the machine sleeps, or somebody sets one. */
function aWatch() {
  const clock = new ManualClock()
  const ahead = { steady: 0, wall: 0 }
  const presence = new Presence({
    clock: { now: () => clock.now() + ahead.wall, sleep: () => Promise.reject(new Error('nothing waits by it')) },
    steady: { now: () => clock.now() + ahead.steady, sleep: (ms, signal) => clock.sleep(ms, signal) },
    logger: silentLogger,
  })
  const end = new AbortController()
  const ended = presence.watch(end.signal)
  return {
    ...{ clock, ahead, presence },
    end: () => {
      end.abort()
      return ended
    },
  }
}

describe('the presence of the hub', () => {
  it('is as long as it runs, while it is busy for a moment as well', async () => {
    const { clock, ahead, presence, end } = aWatch()
    await clock.advance(seconds(30))
    ahead.steady = ahead.wall = seconds(3)
    await clock.advance(seconds(30))
    expect(presence.forMs()).toBe(seconds(63))
    await end()
  })

  it.each([
    ['its process stood still', { steady: minutes(3), wall: minutes(3) }],
    ['its machine slept, and its steady clock with it', { steady: 0, wall: minutes(3) }],
  ])('begins anew where %s', async (_, jump) => {
    const { clock, ahead, presence, end } = aWatch()
    await clock.advance(seconds(30))
    Object.assign(ahead, jump)
    expect(presence.forMs()).toBe(0)
    await clock.advance(seconds(30))
    expect(presence.forMs()).toBe(seconds(30))
    await end()
  })

  it('is not broken by a clock that is set back', async () => {
    const { clock, ahead, presence, end } = aWatch()
    await clock.advance(seconds(30))
    ahead.wall = -minutes(60)
    await clock.advance(seconds(30))
    expect(presence.forMs()).toBe(seconds(60))
    await end()
    await settle()
    expect(clock.sleepers).toBe(0)
  })
})
