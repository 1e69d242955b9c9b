import { describe, expect, it, vi } from 'vitest'
import { silentLogger } from '#runtime'
import { redisMissing, startRedis } from '../../pipeline/state/test/redis-server.ts'
import { hearJudged, sayJudged } from './judged-members.ts'
import type { HubLogger } from './run.ts'

const logger = silentLogger as HubLogger
/** Redis tells whole milliseconds, of a moment that ends when its answer comes. */
const ROUNDED_MS = 20

describe.skipIf(redisMissing !== undefined)(
  `members that a manager judges${redisMissing ? ` (${redisMissing})` : ''}`,
  () => {
    it('are known to be, and since when they are not any more, as when it ends, or Redis is away', async () => {
      const redis = await startRedis()
      const connection = { host: '127.0.0.1', port: redis.port }
      const times = { everyMs: 20, heldMs: 60_000, patienceMs: 400 }
      const stop = new AbortController()
      const { part, judgement } = hearJudged(connection, logger, times)
      const manager = () => {
        const end = new AbortController()
        return { end, ended: sayJudged(connection, logger, end.signal, times) }
      }
      try {
        await part.start(stop.signal)
        // Nobody does: it is not known at once.
        expect(judgement.absentSince()).toBeUndefined()
        await expect.poll(() => judgement.absentSince()).toBeDefined()
        const first = manager()
        await expect.poll(() => judgement.absentSince()).toBeUndefined()
        first.end.abort()
        await first.ended
        const endedAt = Date.now()
        await expect.poll(() => judgement.absentSince()).toBeDefined()
        // As of when it was said last, and not of when that was missed.
        expect(judgement.absentSince()).toBeLessThanOrEqual(endedAt + ROUNDED_MS)
        expect(judgement.absentSince()).toBeGreaterThan(endedAt - 5000)
        // Also to a process that starts when nobody has judged for a while: not as of its own start.
        const late = hearJudged(connection, logger, times)
        await late.part.start(stop.signal)
        await expect.poll(() => late.judgement.isKnown(), { interval: 1 }).toBe(true)
        expect(late.judgement.absentSince()).toBeLessThanOrEqual(endedAt + ROUNDED_MS)
        await late.part.stop()
        // A clock that is set back hides nothing.
        vi.useFakeTimers({ toFake: ['Date'] })
        vi.setSystemTime(Date.now() - 3_600_000)
        const second = manager()
        await expect.poll(() => judgement.absentSince()).toBeUndefined()
        await redis[Symbol.asyncDispose]()
        await expect.poll(() => judgement.absentSince()).toBeDefined()
        second.end.abort()
        await second.ended
      } finally {
        vi.useRealTimers()
        await part.stop()
        await redis[Symbol.asyncDispose]()
      }
    })
  },
)
