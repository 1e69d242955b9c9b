import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seconds } from '#model'
import { RedisMirror } from './mirror.ts'
import { OwnerPulses } from './redis-pulse.ts'
import { RedisStateStore } from './redis-store.ts'
import { connected, T0, west } from './test/fleet-words.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from './test/redis-server.ts'

describe('pulses of owners', () => {
  let now = T0
  const clock = { now: () => now, sleep: () => Promise.resolve() }
  const silentAfter = (pulses: OwnerPulses, seconds: number, count = 1) => {
    now += seconds * 1000
    return pulses.silent(count)
  }

  it('that stay the same say that nobody is heard, since when they were another', () => {
    const pulses = new OwnerPulses(clock)
    const began = now
    const heard = (after: number, hash: Record<string, string>) => {
      now += after * 1000
      pulses.take(hash)
      return pulses.silent(1)
    }
    expect(silentAfter(pulses, 60)).toBeUndefined()
    expect(heard(0, { 1: 'a 1' })).toBeUndefined()
    expect(heard(11, { 1: 'a 2' })).toBeUndefined()
    expect(heard(11, { 1: 'a 2' })).toBeUndefined()
    expect(heard(1, { 1: 'a 2' })).toEqual({ since: began + seconds(71), reason: 'the manager is not heard' })
    expect(heard(1, {})).toBeDefined()
    expect(heard(1, { 1: 'b 1' })).toBeUndefined()
  })

  it('are of nobody while who follows them does not listen itself, nor of what was asked for before', () => {
    const pulses = new OwnerPulses(clock)
    pulses.take({ 1: 'a 1' })
    const askedAt = now + seconds(3)
    expect(silentAfter(pulses, 40)).toBeUndefined()
    pulses.take({ 1: 'a 1' }, askedAt)
    expect(pulses.silent(1)).toBeUndefined()
    pulses.take({ 1: 'a 7' })
    expect(silentAfter(pulses, 3)).toBeUndefined()
  })

  it('do not count against who writes, nor where a version without them took over', () => {
    const pulses = new OwnerPulses(clock)
    pulses.take({ 1: 'a 1', 2: 'c 1', 3: 'd 1' })
    now += seconds(11)
    for (const owner of [1, 2]) pulses.wrote(owner, 'ac'.charAt(owner - 1))
    // The third is of a former division.
    expect(silentAfter(pulses, 2, 2)).toBeUndefined()
    pulses.wrote(1, 'older')
    now += seconds(30)
    pulses.take({})
    expect(silentAfter(pulses, 0, 1)).toBeUndefined()
    expect(silentAfter(pulses, 0, 2)?.reason).toContain('share 2 of 2')
    pulses.forget()
    expect(silentAfter(pulses, 30, 2)).toBeUndefined()
  })
})

describe.skipIf(redisMissing)(`a manager that stops${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    redis.disconnect()
    await server[Symbol.asyncDispose]()
  })

  it('is told by who follows it, until it is heard again', async () => {
    let now = T0
    const clock = {
      now: () => now,
      sleep: (ms: number) => new Promise<void>((done) => setTimeout(done, Math.min(ms, 20))),
    }
    const open = () => RedisStateStore.open({ connection: server, clock })
    await using mirror = new RedisMirror({ connection: server, clock, waitMs: 20 })
    const silent = () => {
      const seen = mirror.availability()
      return seen.state === 'available' ? (seen.silent?.reason ?? 'heard') : seen.state
    }
    {
      await using store = await open()
      await store.apply([connected(west)], 1)
      await store.flush()
      await eventually('it pulses', async () => (await redis.hlen('clusterpulse:pulses')) === 1)
      await eventually('it is followed', () => silent() === 'heard')
    }
    await eventually('the pulse is read', async () => {
      now += seconds(1)
      return silent() === 'the manager is not heard'
    })
    await using _again = await open()
    await eventually('it is heard again', () => silent() === 'heard')
  })
})
