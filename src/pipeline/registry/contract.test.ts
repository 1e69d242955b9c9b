import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { minutes, seconds, systemClock } from '#model'
import { pipelined, redisClient } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { eventually, redisMissing, startRedis, type TestRedis } from '../state/test/redis-server.ts'
import { staleAt } from './board.ts'
import { MemoryRegistries } from './memory-registries.ts'
import { RedisRegistries } from './redis-registries.ts'
import type { ProbeResult, RegistryFacts, RegistryStore } from './types.ts'

const start = Date.UTC(2026, 0, 1)

const clock = { now: () => start + minutes(10), sleep: systemClock.sleep }

const facts = (name: string, changes: Partial<RegistryFacts> = {}): RegistryFacts => ({
  name,
  displayName: `The ${name}`,
  endpoint: `https://${name}.example`,
  type: 'harbor',
  labels: { tier: 'gold' },
  insecure: false,
  skipTlsVerify: true,
  caPem: undefined,
  allowPrivateRedirects: false,
  credentialsRef: { name: 'the-secret', namespace: 'clusterpulse' },
  intervalMs: 60_000,
  timeoutMs: 10_000,
  checkCatalog: true,
  catalogPageSize: 100,
  healthCheckPaths: ['/health'],
  ...changes,
})

const result = (at: number, changes: Partial<ProbeResult> = {}): ProbeResult => ({
  at,
  available: true,
  responseMs: 12,
  version: 'registry/2.0',
  features: { docker_v2_api: true },
  repositoryCount: 2,
  isCatalogTruncated: false,
  repositories: ['a', 'b/c'],
  health: 'healthy',
  message: 'Registry is healthy (response time: 12ms), 2 repositories',
  code: '',
  error: '',
  warnings: [],
  ...changes,
})

const away = (at: number): ProbeResult =>
  result(at, {
    ...{ available: false, responseMs: null, health: 'unhealthy', code: 'unreachable', error: 'no', features: {} },
    ...{ repositoryCount: null, repositories: null, version: '', message: 'Registry unavailable: no' },
  })

interface Driver {
  /** a place of its own; every `open` is one more process at it */
  place(): Promise<{ open(): Promise<RegistryStore & AsyncDisposable>; isShared: boolean } & AsyncDisposable>
}

let redis: TestRedis | undefined
let db = 0
beforeAll(async () => {
  if (!redisMissing) redis = await startRedis('--databases', '64')
})
afterAll(async () => redis?.[Symbol.asyncDispose]())

const connectionOf = (given: TestRedis, number: number) => ({ host: given.host, port: given.port, db: number })

const memory: Driver = {
  async place() {
    const directory = await mkdtemp(join(tmpdir(), 'registries-'))
    return {
      open: () => MemoryRegistries.open({ directory, clock, writeEveryMs: 20 }),
      isShared: false,
      [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
    }
  },
}
const inRedis: Driver = {
  async place() {
    const connection = connectionOf(redis as TestRedis, db++)
    {
      await using manager = await RedisRegistries.open({ connection })
      await manager.resync([])
    }
    return {
      open: () => RedisRegistries.open({ connection, clock, checkEveryMs: 200 }),
      isShared: true,
      [Symbol.asyncDispose]: () => Promise.resolve(),
    }
  },
}

describe.each([
  ['memory', memory, undefined],
  ['Redis', inRedis, redisMissing],
] as const)('registries in %s', (_, driver, missing) => {
  const skip = missing !== undefined
  it.skipIf(skip)(`are told by name, with what was found last${skip ? ` (${missing})` : ''}`, async () => {
    await using place = await driver.place()
    await using store = await place.open()
    await store.declare(facts('quay'))
    await store.declare(facts('harbor'))
    await store.record('quay', result(start))
    expect(store.registries().map(({ facts }) => facts.name)).toEqual(['harbor', 'quay'])
    expect(store.registry('harbor')).toMatchObject({ last: null, since: null })
    expect(store.registry('quay')).toMatchObject({ facts: facts('quay'), last: result(start), since: start })
    expect(store.registry('other')).toBeUndefined()
    expect(store.unavailable()).toBeUndefined()
  })

  it.skipIf(skip)('keep facts, result, since and measurements over a restart', async () => {
    await using place = await driver.place()
    const everything = [
      facts('full', { caPem: '-----BEGIN CERTIFICATE-----', catalogPageSize: undefined, insecure: true }),
      facts('bare', { credentialsRef: undefined, labels: {}, healthCheckPaths: [], checkCatalog: false }),
    ]
    {
      await using store = await place.open()
      for (const one of everything) await store.declare(one)
      await store.record('full', result(start))
      await store.record('full', result(start + minutes(1), { warnings: [{ code: 'a', message: 'b' }] }))
      await store.record('bare', away(start))
    }
    await using store = await place.open()
    expect(store.registries().map(({ facts }) => facts)).toEqual([...everything].reverse())
    expect(store.registry('full')).toMatchObject({
      last: result(start + minutes(1), { warnings: [{ code: 'a', message: 'b' }] }),
      since: start,
    })
    expect(store.registry('bare')).toMatchObject({ last: away(start), since: start })
    expect(store.measurements('full')).toEqual([
      { at: start, available: true, responseMs: 12 },
      { at: start + minutes(1), available: true, responseMs: 12 },
    ])
    expect(store.measurements('bare')).toEqual([{ at: start, available: false, responseMs: null }])
  })

  it.skipIf(skip)('say since when a registry is as it is', async () => {
    await using place = await driver.place()
    await using store = await place.open()
    await store.declare(facts('harbor'))
    await store.record('harbor', result(start))
    await store.record('harbor', result(start + seconds(60)))
    expect(store.registry('harbor')?.since).toBe(start)
    await store.record('harbor', away(start + seconds(120)))
    await store.record('harbor', away(start + seconds(180)))
    expect(store.registry('harbor')?.since).toBe(start + seconds(120))
  })

  it.skipIf(skip)('keep one measurement a minute, the worst, of 24 hours', async () => {
    await using place = await driver.place()
    await using store = await place.open()
    await store.declare(facts('harbor'))
    await store.record('harbor', result(clock.now() - minutes(24 * 60) - 1000))
    await store.record('harbor', result(start, { responseMs: 5 }))
    await store.record('harbor', result(start + seconds(30), { responseMs: 9 }))
    await store.record('harbor', result(start + seconds(60), { responseMs: 7 }))
    await store.record('harbor', away(start + seconds(90)))
    await store.record('harbor', result(start + seconds(100)))
    expect(store.measurements('harbor')).toEqual([
      { at: start + seconds(30), available: true, responseMs: 9 },
      { at: start + seconds(90), available: false, responseMs: null },
    ])
    expect(store.measurements('other')).toEqual([])
  })

  it.skipIf(skip)('tell every change, and nothing where nothing changed', async () => {
    await using place = await driver.place()
    await using store = await place.open()
    const told: string[] = []
    store.onChange((name) => told.push(name))
    await store.declare(facts('harbor'))
    const version = store.version()
    await store.declare(facts('harbor'))
    expect(told).toEqual(['harbor'])
    expect(store.version()).toBe(version)
    await store.record('harbor', result(start))
    await store.remove('harbor')
    expect(told).toEqual(['harbor', 'harbor', 'harbor'])
    expect(store.version()).toBeGreaterThan(version)
    await store.remove('harbor')
  })

  it.skipIf(skip)('forget what was found at another address', async () => {
    await using place = await driver.place()
    await using store = await place.open()
    await store.declare(facts('harbor'))
    await store.record('harbor', result(start))
    await store.declare(facts('harbor', { displayName: 'Renamed' }))
    expect(store.registry('harbor')?.last).not.toBeNull()
    await store.declare(facts('harbor', { endpoint: 'https://new.example' }))
    expect(store.registry('harbor')).toMatchObject({ last: null, since: null })
  })

  it.skipIf(skip)('do not come back by a probe that ends after the removal', async () => {
    await using place = await driver.place()
    await using store = await place.open()
    await store.declare(facts('harbor'))
    await store.remove('harbor')
    await store.record('harbor', result(start))
    expect(store.registries()).toEqual([])
    expect(store.registry('harbor')).toBeUndefined()
  })

  it.skipIf(skip)('leave nothing behind when removed', async () => {
    await using place = await driver.place()
    {
      await using store = await place.open()
      await store.declare(facts('harbor'))
      await store.record('harbor', result(start))
      await store.remove('harbor')
    }
    await using again = await place.open()
    expect(again.registries()).toEqual([])
  })
})

describe('the file of registries', () => {
  it.each([
    ['cut', (text: string) => text.slice(0, text.length / 2)],
    ['of another version', (text: string) => text.replace('"version":1', '"version":7')],
    ['with a result of another form', (text: string) => text.replace('"available":true', '"available":"yes"')],
    ['empty', () => ''],
    ['of zeros', (text: string) => '\0'.repeat(text.length)],
  ])('that is %s is left, with a warning, and written anew', async (_, damage) => {
    const directory = await mkdtemp(join(tmpdir(), 'registries-'))
    const file = join(directory, 'registries.json')
    {
      await using store = await MemoryRegistries.open({ directory, clock })
      await store.declare(facts('harbor'))
      await store.record('harbor', result(start))
    }
    await writeFile(file, damage(await readFile(file, 'utf8')))
    const lines: string[] = []
    const logger: Logger = { ...silentLogger, warn: (_, sentence) => void lines.push(sentence) }
    {
      await using store = await MemoryRegistries.open({ directory, clock, logger })
      expect(store.registries()).toEqual([])
      expect(lines).toHaveLength(1)
      await store.declare(facts('quay'))
    }
    await using store = await MemoryRegistries.open({ directory, clock })
    expect(store.registries()).toHaveLength(1)
    expect(await readdir(directory)).toEqual(['registries.json'])
    await rm(directory, { recursive: true })
  })

  it('is written now and then, not with every probe, and holds no credential', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'registries-'))
    await using store = await MemoryRegistries.open({ directory, clock, writeEveryMs: 30 })
    const target = { ...facts('harbor'), credentials: { username: 'robot', password: 'the-password' } }
    await store.declare(target)
    expect(await readdir(directory)).toEqual([])
    const file = join(directory, 'registries.json')
    await eventually('the file is there', async () => (await readdir(directory)).includes('registries.json'))
    expect(await readFile(file, 'utf8')).toContain('harbor')
    expect(await readFile(file, 'utf8')).not.toContain('the-password')
    await rm(directory, { recursive: true })
  })
})

describe.skipIf(redisMissing !== undefined)(
  `registries in a shared Redis${redisMissing ? ` (${redisMissing})` : ''}`,
  () => {
    const shared = async () => {
      const connection = connectionOf(redis as TestRedis, db++)
      const raw = redisClient(connection, () => undefined)
      await raw.connect()
      {
        await using manager = await RedisRegistries.open({ connection, clock })
        await manager.resync([])
      }
      return {
        connection,
        raw,
        open: (checkEveryMs = 60_000) => RedisRegistries.open({ connection, clock, checkEveryMs }),
        [Symbol.asyncDispose]: async () => raw.disconnect(),
      }
    }

    it('are followed by other processes as they are announced', async () => {
      await using place = await shared()
      await using writer = await place.open()
      await using reader = await place.open()
      await writer.declare(facts('harbor'))
      await writer.record('harbor', result(start))
      await eventually(
        'the other sees it',
        () => reader.registry('harbor')?.last !== null && reader.registries().length > 0,
      )
      expect(reader.registry('harbor')).toMatchObject({ last: result(start), since: start })
      expect(reader.measurements('harbor')).toHaveLength(1)
      await writer.remove('harbor')
      await eventually('the other forgets it', () => reader.registries().length === 0)
    })

    it('are found by comparing where nobody announced them', async () => {
      await using place = await shared()
      const { raw, connection } = place
      await raw.flushdb()
      await using reader = await RedisRegistries.open({ connection, clock, checkEveryMs: 50, takesUnsealed: true })
      await pipelined(raw, [
        ['SET', 'registry:old:spec', JSON.stringify({ display_name: 'Old', endpoint: 'https://old', labels: null })],
        [
          'SET',
          'registry:old:status',
          JSON.stringify({
            ...{ available: true, response_time: 33, version: 'registry/2.0', repository_count: 3 },
            ...{ features: { catalog_accessible: true }, repositories: ['x'], last_check: '2026-01-01T00:00:00Z' },
          }),
        ],
        [
          'ZADD',
          'registry:old:metrics',
          start / 1000,
          `{"timestamp":${start / 1000},"response_time":33,"available":true}`,
        ],
        ['SADD', 'registries:all', 'old', 'broken'],
      ])
      await eventually('it is seen', () => reader.registries().length === 1)
      expect(reader.registry('old')).toMatchObject({
        facts: { displayName: 'Old', labels: {}, intervalMs: 60_000 },
        last: { at: start, health: 'healthy', responseMs: 33, repositoryCount: 3, repositories: ['x'] },
      })
      expect(reader.measurements('old')).toEqual([{ at: start, available: true, responseMs: 33 }])
    })

    it('are written under the documented keys, apart from those of clusters', async () => {
      await using place = await shared()
      await using writer = await place.open()
      const { raw } = place
      const heard: string[] = []
      const listener = redisClient(place.connection, () => undefined)
      await listener.connect()
      listener.on('message', (_, text) => void heard.push(text))
      await listener.subscribe('registry-events')
      await writer.declare(facts('harbor', { intervalMs: minutes(30) }))
      await writer.record('harbor', result(start))
      await writer.record('harbor', result(start + seconds(60)))
      expect((await raw.keys('*')).sort()).toEqual([
        'registries:all',
        'registries:digest',
        'registries:generation',
        'registry-events:harbor',
        'registry:harbor:meta',
        'registry:harbor:metrics',
        'registry:harbor:metrics:latest',
        'registry:harbor:spec',
        'registry:harbor:status',
      ])
      expect(JSON.parse((await raw.get('registry:harbor:spec')) ?? '')).toMatchObject({
        ...{ display_name: 'The harbor', endpoint: 'https://harbor.example', type: 'harbor', skip_tls: true },
        monitoring: { interval: 1800, timeout: 10, check_catalog: true, max_catalog_entries: 100 },
        credentials_ref: { name: 'the-secret', namespace: 'clusterpulse' },
      })
      const status = JSON.parse((await raw.get('registry:harbor:status')) ?? '')
      expect(status).toMatchObject({
        ...{ available: true, response_time: 12, repository_count: 2, last_check: '2026-01-01T00:01:00Z' },
        ...{ health: 'healthy', phase: 'Connected', message: result(start).message },
      })
      expect(status).not.toHaveProperty('error')
      expect(await raw.hgetall('registry:harbor:meta')).toEqual({
        last_update: '2026-01-01T00:01:00Z',
        available: 'true',
      })
      expect(await raw.zcard('registry:harbor:metrics')).toBe(2)
      expect(await raw.ttl('registry:harbor:status')).toBeGreaterThanOrEqual((minutes(30) * 3) / 1000)
      expect(await raw.ttl('registry:harbor:spec')).toBe(-1)
      expect(await raw.lrange('registry-events:harbor', 0, -1)).toHaveLength(1)
      await eventually('all three are announced', () => heard.length === 3)
      expect(JSON.parse(heard[1] ?? '')).toMatchObject({
        ...{ type: 'registry.reconciled', registry: 'harbor' },
        data: { health: 'healthy', available: true, response_time: 12, display_name: 'The harbor', type: 'harbor' },
      })
      await writer.remove('harbor')
      expect((await raw.keys('*')).sort()).toEqual(['registries:digest', 'registries:generation'])
      await eventually('the removal is announced', () => heard.length === 4)
      expect(JSON.parse(heard[3] ?? '')).toMatchObject({ type: 'registry.deleted', data: null })
      listener.disconnect()
    })

    it('keep no measurement older than a day in Redis', async () => {
      await using place = await shared()
      await using writer = await place.open()
      await writer.declare(facts('harbor'))
      await writer.record('harbor', result(clock.now() - minutes(24 * 60) - 60_000))
      await writer.record('harbor', result(start))
      expect(await place.raw.zcard('registry:harbor:metrics')).toBe(1)
    })

    it('touch no registry whose name begins alike when one is removed', async () => {
      await using place = await shared()
      await using writer = await place.open()
      for (const name of ['quay', 'quay-2']) {
        await writer.declare(facts(name))
        await writer.record(name, result(start))
      }
      await writer.remove('quay')
      expect(await place.raw.smembers('registries:all')).toEqual(['quay-2'])
      expect(await place.raw.exists('registry:quay-2:status', 'registry:quay-2:metrics')).toBe(2)
    })

    it('are shown as read last while Redis is away, say so, refuse writes, and come back whole', async () => {
      await using own = await startRedis()
      const connection = { host: own.host, port: own.port, commandTimeoutMs: 500 }
      await using store = await RedisRegistries.open({ connection, clock, checkEveryMs: 50 })
      await store.resync([facts('harbor')])
      await store.record('harbor', result(start))
      await own.kill()
      await eventually('it is missed', () => store.unavailable() !== undefined)
      expect(store.registries()).toHaveLength(1)
      await expect(store.record('harbor', result(start + seconds(60)))).rejects.toMatchObject({
        code: 'store_unavailable',
      })
      let lost = 0
      store.onLost(() => lost++)
      await own.start() // and it is empty
      await eventually('the loss is noticed', () => lost > 0)
      expect(store.registries()).toHaveLength(1)
      // What writes has a connection of its own, which comes back by itself.
      await eventually('it can be written', () =>
        store.resync([facts('harbor')]).then(
          () => true,
          () => false,
        ),
      )
      await eventually('it is back', () => store.unavailable() === undefined)
      await store.record('harbor', result(start + seconds(120)))
      expect(store.registry('harbor')?.last?.at).toBe(start + seconds(120))
    })

    it('are unavailable from the start where Redis is away, and come by themselves', async () => {
      await using own = await startRedis()
      await own.kill()
      const connection = { host: own.host, port: own.port, connectTimeoutMs: 300, commandTimeoutMs: 300 }
      await using store = await RedisRegistries.open({ connection, clock, checkEveryMs: 50 })
      expect(store.unavailable()).toMatchObject({ since: clock.now() })
      await own.start()
      await eventually('it can be written', () =>
        store.resync([]).then(
          () => true,
          () => false,
        ),
      )
      await eventually('it is there', () => store.unavailable() === undefined)
    })
  },
)

describe('silence about a registry', () => {
  it('is worth a mark after three intervals, and later where probes are spread by failures', () => {
    const state = { facts: facts('harbor'), since: start, version: 1 }
    expect(staleAt({ ...state, last: result(start) })).toBe(start + minutes(3))
    expect(staleAt({ ...state, last: away(start) })).toBe(start + minutes(7))
    expect(staleAt({ ...state, last: null })).toBe(Number.POSITIVE_INFINITY)
  })
})
