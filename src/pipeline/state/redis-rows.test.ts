import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { minutes, type RowsPart, Table } from '#model'
import { RedisStateStore } from './redis-store.ts'
import { connected, partial, removed, seen, sizes, T0, unseen, west } from './test/fleet-words.ts'
import { redisMissing, startRedis, type TestRedis } from './test/redis-server.ts'
import type { StateRecord } from './types.ts'

const key = (what: 'resources' | 'aggregations' | 'meta', source = 'team/sizes') =>
  `cluster:west:custom:${source}:${what}`

describe.skipIf(redisMissing)(`keys of MetricSources${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let redis: Redis
  let now = T0
  let position = 0
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port, server.host)
  })
  afterAll(async () => {
    redis.disconnect()
    await server[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    await redis.flushall()
    now = T0
    position = 0
  })

  const clock = { now: () => now, sleep: (ms: number, signal?: AbortSignal) => realSleep(ms, signal) }
  const open = () => RedisStateStore.open({ connection: server, clock, checkEveryMs: 60_000 })
  const write = async (store: RedisStateStore, ...records: StateRecord[]) => {
    await store.apply(records, ++position)
    await store.flush()
  }
  const between = (sequence: number, ...parts: RowsPart[]): StateRecord => ({
    kind: 'batch',
    batch: partial(west, sequence, parts, { collectedAt: now }),
    receivedAt: now,
  })
  const text = async (name: string) => JSON.parse((await redis.get(name)) ?? 'null') as Record<string, unknown> | null

  it('have their documented form', async () => {
    await using store = await open()
    now = T0 + 123
    const rows = Table.of(
      ['z', 'a<'],
      [
        { namespace: 'team', name: 'one', labels: { b: '2', a: '1' }, values: { z: 1.5, 'a<': 'x' } },
        { namespace: '', name: 'wide', labels: {}, values: { z: null, 'a<': true } },
      ],
    )
    const aggregations = { total: 2, ratio: null, by: { y: 1, x: null } }
    await write(store, connected(west), between(1, seen(rows, { aggregations })))
    const head = { sourceId: 'team/sizes', clusterName: 'west', resourceCount: 2, truncated: false, durationMs: 7 }
    expect(await text(key('resources'))).toEqual({
      ...head,
      collectedAt: '2026-01-01T00:00:00.123Z',
      resources: [
        { _id: 'wide', _name: 'wide', values: { z: null, 'a<': true } },
        {
          _id: 'team/one',
          _namespace: 'team',
          _name: 'one',
          _labels: { a: '1', b: '2' },
          values: { z: 1.5, 'a<': 'x' },
        },
      ],
    })
    expect(await redis.get(key('resources'))).toContain('"_labels":{"a":"1","b":"2"},"values":{"a\\u003c":"x","z":1.5}')
    expect(await text(key('aggregations'))).toEqual({
      computedAt: '2026-01-01T00:00:00.123Z',
      sourceId: 'team/sizes',
      durationMs: 7,
      values: aggregations,
    })
    expect(await text(key('meta'))).toEqual({
      ...head,
      lastCollectionTime: '2026-01-01T00:00:00.123Z',
      errorCount: 0,
    })
    expect(await redis.ttl(key('resources'))).toBe(600)
  })

  it('are there at once when a source is read for the first time', async () => {
    await using store = await open()
    await write(store, connected(west), between(1, unseen()))
    await store.apply([between(2, seen(sizes({ x: 1 })))], ++position)
    while ((await redis.exists(key('resources'))) === 0) await realSleep(5) // the clock of documents stands still
    expect((await text(key('resources')))?.resourceCount).toBe(1)
  })

  it('hold a list where nothing was found, and no aggregations where there are none', async () => {
    await using store = await open()
    await write(store, connected(west), between(1, seen(sizes({}), { aggregations: {} })))
    expect(await redis.get(key('resources'))).toContain('"resources":[]}')
    expect(await redis.exists(key('aggregations'))).toBe(0)
  })

  it('live three times as long as it is between two collections, so that slow sources do not vanish', async () => {
    await using store = await open()
    await write(store, connected(west), between(1, seen(sizes({ x: 1 }))))
    now += minutes(60)
    await write(store, between(2, seen(sizes({ x: 1 }))))
    expect(await redis.ttl(key('resources'))).toBe(3 * 3600)
    expect(await redis.ttl(key('meta'))).toBe(3 * 3600)
    now += minutes(1)
    await write(store, between(3, seen(sizes({ o: 1 }), { source: 'team/other' })))
    expect(await redis.ttl(key('resources'))).toBe(3 * 3600)
  })

  it('are written when rows moved, else once a minute; a collection that failed lets them run out', async () => {
    await using store = await open()
    await write(store, connected(west), between(1, seen(sizes({ x: 1 }))))
    const told = async () => (await text(key('resources')))?.collectedAt
    const first = await told()
    now += 5_000
    await write(store, between(2, seen(sizes({ x: 1 }))))
    expect(await told()).toBe(first)
    expect((await text(key('meta')))?.lastCollectionTime).toBe('2026-01-01T00:00:05.000Z')
    now += 5_000
    await write(store, between(3, seen(sizes({ x: 2 }))))
    expect(await told()).toBe('2026-01-01T00:00:10.000Z')
    now += 60_000
    await write(store, between(4, seen(sizes({ x: 2 }))))
    expect(await told()).toBe('2026-01-01T00:01:10.000Z')
    await redis.expire(key('resources'), 5)
    now += 5_000
    await write(store, between(5, unseen()))
    expect(await redis.ttl(key('resources'))).toBeLessThanOrEqual(5)
  })

  it('go with their source, and with their cluster', async () => {
    await using store = await open()
    const other = seen(sizes({ o: 1 }), { source: 'team/other' })
    await write(store, connected(west), between(1, seen(sizes({ x: 1 })), other))
    await write(store, { kind: 'source-removed', cluster: west, source: 'team/sizes', at: now })
    expect((await redis.keys('cluster:west:custom:*')).sort()).toEqual(
      (['resources', 'aggregations', 'meta'] as const).map((what) => key(what, 'team/other')).sort(),
    )
    expect((await redis.hkeys('clusterpulse:cluster:west')).filter((field) => field.includes('team/')).sort()).toEqual([
      'custom:team/other',
      'rows:team/other',
      expect.stringMatching(/^rows:team\/other:/),
    ])
    await write(store, removed(west))
    expect(await redis.keys('cluster:west:*')).toEqual([])
  })

  it('are filled again in a Redis that lost its memory, with the lifetime they had', async () => {
    await using store = await open()
    await write(store, connected(west), between(1, seen(sizes({ x: 1 }))))
    now += minutes(20)
    await write(store, between(2, seen(sizes({ x: 1 }))))
    await redis.flushall()
    now += minutes(15)
    await write(store, between(3, seen(sizes({ o: 1 }), { source: 'team/other' })))
    expect(await redis.ttl(key('resources'))).toBe(3600)
    expect((await text(key('resources')))?.resourceCount).toBe(1)
  })

  it('are no round: nothing is published but what there is to tell', async () => {
    await using store = await open()
    await write(store, connected(west))
    const heard: string[] = []
    const subscriber = redis.duplicate()
    await subscriber.subscribe('cluster-events')
    subscriber.on('message', (_, message) => heard.push(message))
    await write(store, between(1, seen(sizes({ x: 1 }))))
    await redis.publish('cluster-events', 'end')
    await new Promise<void>((resolve) => {
      const look = () => (heard.includes('end') ? resolve() : setImmediate(look))
      look()
    })
    expect(heard).toEqual(['end'])
    subscriber.disconnect()
  })
})

const realSleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
