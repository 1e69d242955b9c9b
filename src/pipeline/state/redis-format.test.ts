import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Logger, silentLogger } from '#runtime'
import { RedisMirror } from './mirror.ts'
import { beginDivision } from './redis-division.ts'
import { checkRedisFormat, claimRedisFormat } from './redis-format.ts'
import { own } from './redis-keys.ts'
import { RedisStateStore } from './redis-store.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from './test/redis-server.ts'

const LATER = JSON.stringify({ format: 99, readableFrom: 99, program: '9.0.0+b' })

describe.skipIf(redisMissing)(`the form of Redis${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let redis: Redis
  let said: string[] = []
  const note = (_: object, sentence: string) => void said.push(sentence)
  const logger: Logger = { ...silentLogger, info: note, warn: note }
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    redis.disconnect()
    await server[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    said = []
    await redis.flushall()
  })
  const claim = () => claimRedisFormat(server, '1.0.0+a', logger)

  it('is written into an empty one without a word, and found the same again', async () => {
    await claim()
    await claim()
    expect(said).toEqual([])
    expect(JSON.parse((await redis.get(own.format)) ?? '')).toMatchObject({ format: 4, program: '1.0.0+a' })
  })

  it('of one from before there was a number is an upgrade, logged, and followers read again', async () => {
    await beginDivision(server, 1)
    const before = await redis.xlen(own.changes)
    await claim()
    expect(said).toEqual([expect.stringMatching(/upgraded from format 0 .* to 4 \(1\.0\.0\+a\)/)])
    expect(await redis.xlen(own.changes)).toBe(before + 1)
  })

  it.each([LATER, 'garbage'])('that we cannot read is refused before anything is written (%s)', async (text) => {
    await redis.set(own.format, text)
    await expect(checkRedisFormat(server, '1.0.0+a')).rejects.toMatchObject({ code: 'format_not_readable' })
    await expect(claim()).rejects.toMatchObject({ code: 'format_not_readable', retryable: false })
    expect(await redis.get(own.format)).toBe(text)
  })

  it('is there again after Redis lost its memory', async () => {
    await claim()
    await beginDivision(server, 1)
    await using _store = await RedisStateStore.open({ connection: server, program: '1.0.0+a', checkEveryMs: 50 })
    await redis.flushall()
    await eventually('the form is back', async () => (await redis.get(own.format)) !== null)
  })

  it('of a later manager is told by a follower, also one that had read all, until it can read again', async () => {
    await using _store = await RedisStateStore.open({ connection: server, checkEveryMs: 50 })
    await using mirror = new RedisMirror({ connection: server, program: '1.0.0+a', waitMs: 100 })
    await eventually('it is read', () => mirror.availability().state === 'available')
    await redis.set(own.format, LATER)
    await redis.xadd(own.changes, '*', 'op', 'reload', 'o', '0', 'n', '1')
    await eventually('it is not served any longer', () => mirror.availability().state === 'unavailable')
    expect(mirror.availability()).toMatchObject({ reason: expect.stringMatching(/9\.0\.0\+b; this is 1\.0\.0\+a/) })
    await using late = new RedisMirror({ connection: server, program: '1.0.0+a', waitMs: 100 })
    await eventually('a new one says why', () => JSON.stringify(late.availability()).includes('9.0.0+b'))
    await redis.del(own.format)
    await eventually('both read', () => [mirror, late].every((one) => one.availability().state === 'available'))
  })
})
