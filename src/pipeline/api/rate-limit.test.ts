import { describe, expect, it } from 'vitest'
import { type Clock, systemClock } from '#model'
import { RefusedError } from './problem.ts'
import { limitFor, RateLimiter } from './rate-limit.ts'
import { get } from './test/ask.ts'
import { aWorld, proxy } from './test/world.ts'

const aClock = (): Clock & { at: number } => {
  const clock = { at: 0, now: (): number => clock.at, sleep: systemClock.sleep }
  return clock
}

function refusal(limiter: RateLimiter, caller: string): RefusedError | undefined {
  try {
    limiter.take(caller)
    return undefined
  } catch (error) {
    return error as RefusedError
  }
}

describe('how much one caller may ask', () => {
  it.each([
    [0, 400],
    [10, 400],
    [1000, 8000],
  ])('is sized to the fleet: of %i clusters %i at once', (clusters, burst) => {
    const limiter = new RateLimiter(() => limitFor(clusters), aClock())
    for (let times = 0; times < burst; times++) limiter.take('ann')
    expect(refusal(limiter, 'ann')).toBeInstanceOf(RefusedError)
  })

  it('is a burst, then what time gives back', () => {
    const clock = aClock()
    const limiter = new RateLimiter({ perSecond: 2, burst: 3 }, clock)
    for (let times = 0; times < 3; times++) limiter.take('ann')
    expect(refusal(limiter, 'ann')).toMatchObject({ code: 'too_many_requests', retryAfterSeconds: 1 })
    clock.at = 499
    expect(refusal(limiter, 'ann')).toBeInstanceOf(RefusedError)
    clock.at = 1000
    limiter.take('ann')
    limiter.take('ann')
    expect(refusal(limiter, 'ann')).toBeInstanceOf(RefusedError)
  })

  it("is nobody else's affair", () => {
    const limiter = new RateLimiter({ perSecond: 1, burst: 1 }, aClock())
    limiter.take('ann')
    limiter.take('bob')
    expect(refusal(limiter, 'ann')).toBeInstanceOf(RefusedError)
  })

  it('says how long a slow bucket takes, and does not gain from a clock that jumps back', () => {
    const clock = aClock()
    clock.at = 10_000
    const limiter = new RateLimiter({ perSecond: 0.1, burst: 1 }, clock)
    limiter.take('ann')
    expect(refusal(limiter, 'ann')?.retryAfterSeconds).toBe(10)
    clock.at = 0
    expect(refusal(limiter, 'ann')).toBeInstanceOf(RefusedError)
    clock.at = 9999
    expect(refusal(limiter, 'ann')).toBeInstanceOf(RefusedError)
    clock.at = 10_000
    limiter.take('ann')
  })

  it('remembers a bounded number of callers, and of those the latest', () => {
    const limiter = new RateLimiter({ perSecond: 1, burst: 1 }, aClock())
    limiter.take('first')
    for (let at = 0; at < 9_999; at++) limiter.take(`caller ${at}`)
    expect(refusal(limiter, 'first')).toBeInstanceOf(RefusedError)
    for (let at = 0; at < 20_000; at++) limiter.take(`other ${at}`)
    expect(limiter.size).toBe(10_000)
  })
})

describe('too many requests', () => {
  const rateLimit = { perSecond: 1, burst: 2 }

  it('are 429 with the time to wait, for the one who sent them', async () => {
    await using world = await aWorld({ identity: proxy, rateLimit })
    const ask = (as: string) => get(world, '/api/v2/clusters', { as })
    expect([(await ask('ann')).status, (await ask('ann')).status]).toEqual([200, 200])
    const { status, body, headers } = await ask('ann')
    expect([status, body.code, headers['retry-after']]).toEqual([429, 'too_many_requests', '1'])
    expect((await ask('bob')).status).toBe(200)
    world.clock.at += 1000
    expect((await ask('ann')).status).toBe(200)
  })

  it('are as many as the fleet allows that there is, without a setting', async () => {
    await using world = await aWorld({ identity: proxy })
    for (let n = 0; n < 55; n++) await world.connect(`c-${n}`)
    const answers: number[] = []
    for (let n = 0; n < 441; n++) answers.push((await get(world, '/api/v1/auth/me', { as: 'ann' })).status)
    expect(answers.filter((status) => status === 200)).toHaveLength(440)
    expect(answers.at(-1)).toBe(429)
  })

  it('of people we do not know count by address, however they call themselves', async () => {
    await using world = await aWorld({ identity: { proxy: { trustedPeers: ['10.0.0.1'] } }, rateLimit })
    const ask = (as: string) => get(world, '/api/v1/auth/me', { as })
    expect([(await ask('a')).status, (await ask('b')).status, (await ask('c')).status]).toEqual([401, 401, 429])
  })

  it('are no matter to probes and to the local administrator', async () => {
    await using local = await aWorld({ rateLimit })
    const headers = { host: 'localhost' }
    for (let times = 0; times < 5; times++) {
      expect((await get(local, '/healthz', { headers })).status).toBe(200)
      expect((await get(local, '/api/v2/clusters', { headers })).status).toBe(200)
    }
  })
})
