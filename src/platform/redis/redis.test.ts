import { describe, expect, it } from 'vitest'
import { SilentProxy } from '../../../test/silent-proxy.ts'
import { redisMissing, startRedis } from '../../pipeline/state/test/redis-server.ts'
import {
  closeRedis,
  NO_CONNECTION,
  pipelined,
  type Redis,
  redisClient,
  redisUnavailable,
  transaction,
} from './index.ts'

const noRedis = redisMissing === undefined ? '' : ` (not run: ${redisMissing})`

describe('why Redis is not available', () => {
  it.each([
    [
      'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
      NO_CONNECTION,
    ],
    ["Stream isn't writeable and enableOfflineQueue options is false", NO_CONNECTION],
    ['', NO_CONNECTION],
    ['Command timed out', 'it does not answer; look whether it runs and is not stopped'],
    [
      "Socket timeout. Expecting data, but didn't receive any in 8000ms.",
      'it does not answer; look whether it runs and is not stopped',
    ],
    [
      'WRONGPASS invalid username-password pair or user is disabled.',
      'it refuses this password (WRONGPASS); check REDIS_USERNAME and REDIS_PASSWORD',
    ],
    [
      'Ready check failed: NOAUTH Authentication required.',
      'it asks for a password (NOAUTH); check REDIS_USERNAME and REDIS_PASSWORD',
    ],
    [
      "NOPERM User hub has no permissions to run the 'xrevrange' command",
      'its user may not do this (NOPERM); check its ACL and REDIS_USERNAME',
    ],
    ['connect ECONNREFUSED 10.0.0.7:6379', 'it refuses connections; look whether it runs (ECONNREFUSED)'],
    ['getaddrinfo ENOTFOUND redis.internal', 'its name is not known; check REDIS_HOST (ENOTFOUND)'],
    ['connect EHOSTUNREACH 10.0.0.7:6379', 'there is no way to it (EHOSTUNREACH)'],
  ])('is said in words of ours, and never where it is: %j', (said, reason) =>
    expect(redisUnavailable(new Error(said)).reason).toBe(reason),
  )
})

describe.skipIf(noRedis !== '')(`a connection to Redis${noRedis}`, () => {
  const clientOf = async (port: number): Promise<Redis> => {
    const redis = redisClient({ host: '127.0.0.1', port, commandTimeoutMs: 400, heartbeatMs: 150 }, () => undefined)
    await redis.connect()
    return redis
  }

  it('that goes silent is given up, and another one opened', async () => {
    await using server = await startRedis()
    await using proxy = await SilentProxy.before(server.port)
    const redis = await clientOf(proxy.port)
    try {
      expect(proxy.silence()).toBe(1)
      await expect(redis.get('x')).rejects.toThrow()
      await expect.poll(() => redis.get('x').catch(() => 'away')).toBeNull()
    } finally {
      await closeRedis(redis)
    }
  })

  it('stays where this process stood still for longer than a silence may last, and what was asked is answered', async () => {
    await using server = await startRedis()
    const redis = await clientOf(server.port)
    try {
      const id = await redis.client('ID')
      const asked = redis.set('x', 'y')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500)
      expect(await asked).toBe('OK')
      expect(await redis.client('ID')).toBe(id)
    } finally {
      await closeRedis(redis)
    }
  })

  it('that only listens notices the silence too, and hears again what is published', async () => {
    await using server = await startRedis()
    await using proxy = await SilentProxy.before(server.port)
    const listener = await clientOf(proxy.port)
    const speaker = await clientOf(server.port)
    try {
      const heard: string[] = []
      listener.on('message', (_, text) => heard.push(text))
      listener.on('ready', () => void listener.subscribe('news'))
      await listener.subscribe('news')
      await speaker.publish('news', 'before')
      await expect.poll(() => heard).toEqual(['before'])
      proxy.silence()
      await expect.poll(() => speaker.publish('news', 'after').then(() => heard.at(-1))).toBe('after')
    } finally {
      await closeRedis(listener)
      await closeRedis(speaker)
    }
  })

  it.each([
    ['a wrong password', 'wrong', /refuses this password \(WRONGPASS\); check REDIS_USERNAME and REDIS_PASSWORD/],
    ['no password', undefined, /asks for a password \(NOAUTH\); check REDIS_USERNAME and REDIS_PASSWORD/],
  ])('that shows %s tells every command so, and not that there is none', async (_, password, words) => {
    await using server = await startRedis('--requirepass', 'right')
    const { host, port } = server
    const redis = redisClient({ host, port, ...(password !== undefined && { password }) }, () => undefined)
    try {
      await redis.connect().catch(() => undefined)
      for (let turn = 0; turn < 3; turn++) await expect(pipelined(redis, [['GET', 'x']])).rejects.toThrow(words)
      await expect(transaction(redis, [['GET', 'x']])).rejects.toThrow(words)
    } finally {
      await closeRedis(redis)
    }
  })

  it('tells after a refusal that was mended why it is away later', async () => {
    await using server = await startRedis('--requirepass', 'right')
    const admin = redisClient({ host: server.host, port: server.port, password: 'right' }, () => undefined)
    const redis = redisClient({ host: server.host, port: server.port, password: 'new' }, () => undefined)
    try {
      await admin.connect()
      await redis.connect().catch(() => undefined)
      await admin.config('SET', 'requirepass', 'new')
      await expect.poll(() => redis.status).toBe('ready')
      await server.kill()
      await expect.poll(() => redis.status).not.toBe('ready')
      await expect(pipelined(redis, [['GET', 'x']])).rejects.not.toThrow(/WRONGPASS/)
    } finally {
      await closeRedis(admin)
      await closeRedis(redis)
    }
  })

  it('that is idle for long stays as it is', async () => {
    await using server = await startRedis()
    await using proxy = await SilentProxy.before(server.port)
    const redis = await clientOf(proxy.port)
    const listener = await clientOf(proxy.port)
    try {
      await listener.subscribe('news')
      await new Promise((resolve) => setTimeout(resolve, 1_500))
      expect(proxy.taken).toBe(2)
      expect([redis.status, listener.status]).toEqual(['ready', 'ready'])
    } finally {
      await closeRedis(redis)
      await closeRedis(listener)
    }
  })
})
