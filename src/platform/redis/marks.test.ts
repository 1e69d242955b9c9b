import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { redisMissing, startRedis } from '../../pipeline/state/test/redis-server.ts'
import { RedisMarks } from './index.ts'

const noRedis = redisMissing === undefined ? '' : ` (not run: ${redisMissing})`

describe.skipIf(noRedis !== '')(`marks in Redis${noRedis}`, () => {
  /** Marks whose connection stands. */
  const marksOf = async (port: number) => {
    const marks = new RedisMarks({
      connection: { host: '127.0.0.1', port },
      prefix: 'session:',
      channel: 'session-ends',
      newsOf: (key) => key.replace('revoked:', ''),
    })
    await expect.poll(() => marks.has('x').catch(() => 'away')).toBe(false)
    return marks
  }

  it('are seen by every process, told to all, and forgotten in time', async () => {
    await using redis = await startRedis()
    await using one = await marksOf(redis.port)
    await using other = await marksOf(redis.port)
    const told: string[] = []
    other.subscribe((text) => told.push(text))
    await one.set('revoked:x', 60_000)
    await one.set('revoked:y', 50)
    await expect
      .poll(async () => {
        await one.publish('x')
        return told
      })
      .toContain('x')
    expect(await other.has('revoked:x')).toBe(true)
    await expect.poll(() => other.has('revoked:y')).toBe(false)
  })

  it('are taken away by one process, however many ask for it at once', async () => {
    await using redis = await startRedis()
    await using one = await marksOf(redis.port)
    await using other = await marksOf(redis.port)
    await one.set('x', 60_000)
    const taken = await Promise.all([one, other, one, other].map((marks) => marks.take('x')))
    expect(taken.filter(Boolean)).toEqual([true])
    expect(await one.has('x')).toBe(false)
  })

  it('whose news nobody heard are told when the connection is back; while Redis is away nobody guesses', async () => {
    await using redis = await startRedis()
    await using marks = await marksOf(redis.port)
    const told: string[] = []
    marks.subscribe((text) => told.push(text))
    await redis.kill()
    await expect.poll(() => marks.has('x').catch(() => 'away')).toBe('away')
    await redis.start()
    await expect.poll(() => marks.has('x').catch(() => 'away')).toBe(false)
    // A mark whose news nobody heard: the listening connection breaks after it was set, and comes back.
    const other = new Redis({ host: '127.0.0.1', port: redis.port })
    await other.set('session:revoked:late', '1', 'PX', 60_000)
    await expect
      .poll(async () => {
        await other.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
        return told
      })
      .toContain('late')
    other.disconnect()
  })
})
