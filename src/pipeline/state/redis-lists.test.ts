import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { minutes, type ResourceListSettings, type RowsPart, Table } from '#model'
import { RedisStateStore } from './redis-store.ts'
import { connected, east, partial, removed, seen, T0, unseen, west } from './test/fleet-words.ts'
import { redisMissing, startRedis, type TestRedis } from './test/redis-server.ts'
import type { StateRecord } from './types.ts'

const LISTS = ['pods', 'deployments', 'services', 'statefulsets', 'daemonsets'] as const
const keyOf = (list: string, cluster = 'west') => `cluster:${cluster}:${list}`
const METADATA = keyOf('resource_metadata')

const pods = (...names: string[]): Table =>
  Table.of(
    ['phase', 'node', 'restarts'],
    names.map((name) => ({
      namespace: 'shop',
      name,
      labels: {},
      values: { phase: 'Running', node: 'n1', restarts: 0 },
    })),
  )
const workloads = (...names: string[]): Table =>
  Table.of(
    ['kind', 'ready', 'desired', 'current'],
    names.map((name) => ({
      namespace: 'shop',
      name,
      labels: {},
      values: { kind: name.split(':')[1] ?? '', ready: 1, desired: 2, current: 3 },
    })),
  )
const services = Table.of(
  ['type', 'clusterIp'],
  [{ namespace: 'shop', name: 'web', labels: {}, values: { type: 'ClusterIP', clusterIp: '10.0.0.7' } }],
)
const of = (source: string, rows: Table, durationMs = 7): RowsPart =>
  seen(rows, { source, durationMs, aggregations: {} })

describe.skipIf(redisMissing)(`documented lists${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let redis: Redis
  let now = T0
  let position = 0
  let sequence = 0
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
  })

  const clock = { now: () => now, sleep: (ms: number, signal?: AbortSignal) => realSleep(ms, signal) }
  const bounds: ResourceListSettings = {
    podsPerNamespace: 100,
    pods: 1000,
    deployments: 500,
    services: 500,
    labels: false,
  }
  const open = (lists: ResourceListSettings | undefined = bounds, more = {}) =>
    RedisStateStore.open({ connection: server, clock, checkEveryMs: 60_000, ...(lists && { lists }), ...more })
  const write = async (store: RedisStateStore, ...records: StateRecord[]) => {
    await store.apply(records, ++position)
    await store.flush()
  }
  const told = (...parts: RowsPart[]): StateRecord => ({
    kind: 'batch',
    batch: partial(west, ++sequence, parts, { collectedAt: now }),
    receivedAt: now,
  })
  const there = async () =>
    (await redis.keys('cluster:west:*'))
      .filter((key) => [...LISTS.map((list) => keyOf(list)), METADATA].includes(key))
      .sort()
  const names = async (list = 'pods') =>
    (JSON.parse((await redis.get(keyOf(list))) ?? 'null') as { name: string }[] | null)?.map(({ name }) => name)
  const metadata = async () => JSON.parse((await redis.get(METADATA)) ?? 'null') as Record<string, unknown> | null
  it('have their documented form', async () => {
    await using store = await open()
    now = T0 + 250
    await write(
      store,
      connected(west),
      told(
        of('pods', pods('web-0', 'web-1')),
        of('services', services),
        of('workloads', workloads('web:Deployment', 'db:StatefulSet', 'log:DaemonSet', 'once:Job'), 31),
      ),
    )
    expect(await redis.get(keyOf('pods'))).toBe(
      '[{"name":"web-0","namespace":"shop","status":"Running","node":"n1"},{"name":"web-1","namespace":"shop","status":"Running","node":"n1"}]',
    )
    expect(await redis.get(keyOf('deployments'))).toBe('[{"name":"web","namespace":"shop","replicas":2,"ready":1}]')
    expect(await redis.get(keyOf('statefulsets'))).toBe('[{"name":"db","namespace":"shop","replicas":2,"ready":1}]')
    expect(await redis.get(keyOf('daemonsets'))).toBe(
      '[{"name":"log","namespace":"shop","desired":2,"current":3,"ready":1}]',
    )
    expect(await redis.get(keyOf('services'))).toBe(
      '[{"name":"web","namespace":"shop","type":"ClusterIP","cluster_ip":"10.0.0.7"}]',
    )
    expect(await redis.get(METADATA)).toBe(
      '{"timestamp":"2026-01-01T00:00:00Z","collection_time_ms":31,"truncated":false,"total_resources":6,' +
        '"pods_count":2,"deployments_count":1,"services_count":1,"statefulsets_count":1,"daemonsets_count":1}',
    )
    for (const key of await there()) expect(await redis.ttl(key)).toBe(600)
  })

  it('are cut at their bounds, and rows are not', async () => {
    await using store = await open({ ...bounds, pods: 50 })
    await write(store, connected(west), told(of('pods', pods(...Array.from({ length: 60 }, (_, i) => `p${i}`)))))
    expect(await names()).toHaveLength(50)
    expect(await metadata()).toMatchObject({ truncated: true, pods_count: 50, total_resources: 50 })
    expect(store.cluster('west')?.tables.get('pods')?.rows.size).toBe(60)
  })

  it('are not there where they are empty, and go when they become empty', async () => {
    await using store = await open()
    await write(store, connected(west), told(of('pods', pods('a')), of('workloads', workloads())))
    expect(await there()).toEqual([keyOf('pods'), METADATA])
    now += 60_000
    await write(store, told(of('pods', pods())))
    expect(await there()).toEqual([METADATA])
    expect(await metadata()).toMatchObject({ pods_count: 0, deployments_count: 0, total_resources: 0 })
  })

  it('are not written where they are not wanted', async () => {
    await using store = await RedisStateStore.open({ connection: server, clock, checkEveryMs: 60_000 })
    await write(store, connected(west), told(of('pods', pods('a'))))
    expect(await there()).toEqual([])
  })

  it('are looked at once a minute, and miss nothing of what came in between', async () => {
    await using store = await open()
    await write(store, connected(west), told(of('pods', pods('a'))))
    now += 30_000
    await write(store, told(of('pods', pods('a', 'b'))))
    expect(await names()).toEqual(['a'])
    // Whatever is next written of the cluster brings it, also where its pods say nothing new.
    now += 30_000
    await write(store, told(of('services', services)))
    expect(await names()).toEqual(['a', 'b'])
  })

  it('are not written again where nothing that they tell changed', async () => {
    await using store = await open()
    await write(store, connected(west), told(of('pods', pods('a'))))
    now += 90_000
    const restarted = Table.of(
      ['phase', 'node', 'restarts'],
      [{ ...pods('a').row(0), values: { phase: 'Running', node: 'n1', restarts: 9 } }],
    )
    await redis.set(keyOf('pods'), 'untouched')
    await write(store, told(of('pods', restarted)))
    expect(await redis.get(keyOf('pods'))).toBe('untouched')
    expect(await metadata()).toMatchObject({ timestamp: '2026-01-01T00:01:30Z' })
  })

  it('live on as long as their rows are read, and run out when they are not', async () => {
    await using store = await open(bounds, { ttlMs: minutes(10) })
    await write(store, connected(west), told(of('pods', pods('a')), of('services', services)))
    await redis.expire(keyOf('pods'), 100)
    await redis.expire(keyOf('services'), 100)
    now += minutes(4)
    await write(store, told(of('pods', pods('a')), unseen('no', 'services')))
    expect(await redis.ttl(keyOf('pods'))).toBe(600)
    expect(await redis.ttl(keyOf('services'))).toBe(100)
    expect(await metadata()).not.toHaveProperty('services_count')
  })

  it('come back with the first look after they ran out', async () => {
    await using store = await open()
    await write(store, connected(west), told(of('pods', pods('a'))))
    await redis.del(keyOf('pods'))
    now += minutes(11)
    await write(store, told(of('pods', pods('a'))))
    expect(await names()).toEqual(['a'])
  })

  it('come back after a failure, although the same is read as before', async () => {
    await using store = await open()
    await write(store, connected(west), told(of('pods', pods('a'))))
    now += 30_000
    await write(store, told(unseen('no', 'pods')))
    await redis.del(keyOf('pods'))
    now += 30_000
    await write(store, told(of('pods', pods('a'))))
    expect(await names()).toEqual(['a'])
  })

  it('are written by a manager that starts anew, without what is no longer there', async () => {
    {
      await using store = await open()
      await write(store, connected(west), told(of('workloads', workloads('web:Deployment'))))
    }
    await using store = await open()
    now += 60_000
    await write(store, told(of('workloads', workloads('db:StatefulSet'))))
    expect(await there()).toEqual([METADATA, keyOf('statefulsets')])
  })

  it('are written again where Redis lost them', async () => {
    await using store = await open()
    await write(store, connected(west), told(of('pods', pods('a'))))
    await redis.flushall()
    now += 1_000
    await write(store, told(of('services', services)))
    expect(await names()).toEqual(['a'])
  })

  it('go with their cluster, and with it alone', async () => {
    await using store = await open()
    const eastern: StateRecord = {
      kind: 'batch',
      batch: partial(east, 1, [of('pods', pods('a'))], { collectedAt: now }),
      receivedAt: now,
    }
    await write(store, connected(west), connected(east), told(of('pods', pods('a')), of('services', services)), eastern)
    await write(store, removed(west))
    expect(await there()).toEqual([])
    expect(await redis.exists(keyOf('pods', 'east'))).toBe(1)
  })

  it('go with the kind that is no longer collected', async () => {
    await using store = await open()
    await write(store, connected(west), told(of('pods', pods('a')), of('services', services)))
    await write(store, { kind: 'source-removed', cluster: west, source: 'pods', at: now })
    expect(await there()).toEqual([METADATA, keyOf('services')])
    expect(await metadata()).not.toHaveProperty('pods_count')
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
