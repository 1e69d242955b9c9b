import { isDeepStrictEqual } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Change, type NodeDocument, type ResourceListSettings, StoreUnavailableError, Table } from '#model'
import { silentLogger } from '#runtime'
import { entriesOf } from '../../platform/redis/testing/entries.ts'
import { RedisMirror } from './mirror.ts'
import { namesText } from './redis-names.ts'
import { RedisStateStore } from './redis-store.ts'
import {
  aBatch,
  aCluster,
  aClusterOperator,
  aDeployment,
  aNamespace,
  aNode,
  anOperator,
  aPodSummary,
  batchRecord,
  complete,
  connected,
  east,
  failed,
  partial,
  removed,
  seen,
  T0,
  west,
} from './test/fleet-words.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from './test/redis-server.ts'
import type { StateReader } from './types.ts'

/** Applies the records and waits until Redis has them. */
async function written(store: RedisStateStore, ...given: Parameters<RedisStateStore['apply']>): Promise<Change[]> {
  const changes = await store.apply(...given)
  await store.flush()
  return changes
}

const full = (sequence: number, more: Parameters<typeof aBatch>[3] = {}) =>
  batchRecord(
    aBatch(
      west,
      sequence,
      [
        complete('cluster', aCluster({ consoleUrl: 'https://console.west.example' })),
        complete(
          'node',
          aNode('n1', { roles: ['control-plane', 'worker'] }),
          aNode('n2', { unschedulable: true }),
          aNode('n3', { ready: 'notReady', unschedulable: true, used: { cpuCores: 0.7, memoryBytes: 3 * 2 ** 30 } }),
        ),
        complete('namespace', aNamespace('kube-system'), aNamespace('default')),
        complete('podSummary', aPodSummary(12)),
        complete('deployment', aDeployment('web')),
        complete('operator', anOperator('logging.v1'), anOperator('broken.v2', { status: '', clusterWide: false })),
        complete(
          'clusterOperator',
          aClusterOperator('dns'),
          aClusterOperator('ingress', { available: false, message: 'no <router>' }),
        ),
      ],
      more,
    ),
  )

const documentedLists: ResourceListSettings = {
  podsPerNamespace: 100,
  pods: 1000,
  deployments: 500,
  services: 500,
  labels: false,
}

/** Rows of pods, and of a declared source. */
const rowsOf = (): Parameters<RedisStateStore['apply']>[0][number] => {
  const of = (source: string, values: Readonly<Record<string, string>>) =>
    seen(Table.of(Object.keys(values), [{ namespace: 'shop', name: 'web', labels: {}, values }]), { source })
  const parts = [of('pods', { phase: 'Running', node: 'n1' }), of('prod/queues', { size: '3' })]
  return { kind: 'batch', batch: partial(west, 2, parts, { collectedAt: T0 + 60_000 }), receivedAt: T0 + 60_000 }
}

describe.skipIf(redisMissing)(`RedisStateStore${redisMissing ? ` (skipped: ${redisMissing})` : ''}`, () => {
  let server: TestRedis
  let redis: Redis
  beforeAll(async () => {
    server = await startRedis()
    redis = new Redis(server.port, server.host)
    redis.on('error', () => {})
  })
  afterAll(async () => {
    redis.disconnect()
    await server[Symbol.asyncDispose]()
  })
  beforeEach(async () => {
    await eventually('Redis answers the test', () =>
      redis.ping().then(
        (pong) => pong === 'PONG',
        () => false,
      ),
    )
    await redis.config('SET', 'maxmemory', '0')
    await redis.flushall()
    now = T0 + 60_000
  })

  // Documents are left alone by a store that sees them as too old: the test's clock stands beside its batches.
  let now = T0 + 60_000
  const clock = { now: () => now, sleep: (ms: number, signal?: AbortSignal) => realSleep(ms, signal) }
  const open = (more: Partial<Parameters<typeof RedisStateStore.open>[0]> = {}) =>
    RedisStateStore.open({ connection: server, clock, checkEveryMs: 50, ...more })
  const text = async (key: string) => JSON.parse((await redis.get(key)) ?? 'null') as unknown

  describe('the documented keys, as an existing reader finds them', () => {
    it('has every document of a cluster in its form', async () => {
      await using store = await open()
      await written(store, [connected(west), full(1)], 1)
      const reader = await readAsBefore(redis, 'west')
      expect(reader.registered).toEqual(['west'])
      expect(reader.spec).toEqual({
        displayName: 'West',
        endpoint: 'https://west.example:6443',
        credentialsRef: { name: 'west-token', namespace: '' },
        labels: { env: 'test' },
        monitoring: { interval: 30, timeout: 10 },
      })
      expect(reader.labels).toEqual({ env: 'test' })
      expect(reader.status).toEqual({
        health: 'degraded',
        message: '1 of 3 nodes not ready: n3; Cluster operators not available: ingress',
        last_check: '2026-01-01T00:00:30Z',
      })
      expect(reader.meta).toEqual({ last_update: '2026-01-01T00:01:00Z' })
      expect(reader.info).toEqual({
        api_url: 'https://west.example:6443',
        console_url: 'https://console.west.example',
        platform: 'linux/amd64',
        version: 'v1.31.0',
      })
      expect(reader.metrics).toEqual({
        timestamp: '2026-01-01T00:00:30Z',
        nodes: 3,
        nodes_ready: 1,
        namespaces: 2,
        pods: 12,
        pods_running: 12,
        cpu_capacity: 12,
        memory_capacity: 48 * 2 ** 30,
        deployments: 1,
      })
      expect(reader.namespaces).toEqual({
        namespaces: ['default', 'kube-system'],
        count: 2,
        timestamp: '2026-01-01T00:00:30Z',
      })
      expect(reader.namespacesSet).toEqual(['default', 'kube-system'])
      expect(Object.keys(reader.nodes)).toEqual(['n1', 'n2', 'n3'])
      expect(reader.nodes.n1).toMatchObject({
        status: 'Ready',
        roles: ['control-plane', 'worker'],
        cpu_allocatable: 3.5,
        cpu_usage_percent: 50,
        memory_usage_percent: 20,
        labels: { a: '<1>', b: '2' },
        timestamp: '2026-01-01T00:00:30Z',
        usage_source: 'requested',
      })
      expect(reader.nodes.n2).toMatchObject({ status: 'SchedulingDisabled' })
      expect(reader.nodes.n3).toMatchObject({ status: 'NotReady', cpu_usage_percent: 20, usage_source: 'measured' })
      expect(reader.nodeHash).toEqual({
        current: expect.any(String),
        last_update: '2026-01-01T00:01:00Z',
        status: 'Ready',
        cpu_usage: '50.00',
        memory_usage: '20.00',
        pods_total: '5',
      })
      expect(reader.nodeHash.current).toContain('"a":"\\u003c1\\u003e","b":"2"')
      expect(reader.series).toEqual([
        {
          timestamp: '2026-01-01T00:01:00Z',
          cpu_usage: 50,
          memory_usage: 20,
          cpu_requested: 1.75,
          memory_requested: 3 * 2 ** 30,
          pods_running: 3,
          pods_pending: 1,
          pods_total: 5,
        },
      ])
      expect(reader.summary).toEqual({
        total: 3,
        ready: 1,
        not_ready: 1,
        scheduling_disabled: 1,
        by_role: { 'control-plane': 1, worker: 3 },
        total_cpu_capacity: 12,
        total_memory_capacity: 48 * 2 ** 30,
        avg_cpu_usage: 40,
        avg_memory_usage: 20,
        timestamp: '2026-01-01T00:00:30Z',
      })
      expect(reader.operators).toMatchObject([
        {
          name: 'logging.v1',
          is_cluster_wide: true,
          available_namespaces_detail: 'All namespaces',
          available_count: 1,
        },
        { name: 'broken.v2', created_at: '2026-01-01T00:00:00Z' },
      ])
      expect(reader.operatorsSummary).toEqual({
        total: 2,
        by_status: { Succeeded: 1, Unknown: 1 },
        by_namespace: { operators: 1 },
        by_install_mode: { cluster_wide: 1, namespace_scoped: 1 },
      })
      expect(reader.clusterOperators).toMatchObject([
        { name: 'dns', available: true },
        { name: 'ingress', available: false },
      ])
      expect(reader.clusterOperatorsSummary).toMatchObject({
        total: 2,
        available: 1,
        has_issues: true,
        all_healthy: false,
        issues: ['ingress: not available - no <router>'],
      })
      expect(await text('cluster:west:cluster_operator:dns')).toMatchObject({ available: true, version: '4.16.3' })
      expect(reader.events.map(({ type }) => type)).toEqual(['cluster.reconciled', 'cluster.health', 'cluster.added'])
      expect(reader.events[0]).toEqual({
        type: 'cluster.reconciled',
        cluster: 'west',
        timestamp: '2026-01-01T00:00:30Z',
        data: { display_name: 'West', health: 'degraded' },
      })
    })

    it('gives documents the documented lifetimes, and longer ones to slow clusters', async () => {
      await using store = await open()
      await written(store, [connected(west), full(1)], 1)
      const ttls = async () => ({
        status: await redis.ttl('cluster:west:status'),
        node: await redis.ttl('cluster:west:node:n1'),
        operators: await redis.ttl('cluster:west:operators'),
        series: await redis.ttl('cluster:west:node:n1:metrics'),
        metrics: await redis.ttl('cluster:west:metrics'),
        info: await redis.ttl('cluster:west:info'),
        events: await redis.ttl('events:west'),
        own: await redis.ttl('clusterpulse:cluster:west'),
      })
      expect(await ttls()).toEqual({
        status: -1,
        node: 600,
        operators: 600,
        series: 3600,
        metrics: 600,
        info: 3600,
        events: 86_400,
        own: -1,
      })
      await written(store, [connected(west, { intervalMs: 1_800_000 }), full(2)], 2)
      expect(await ttls()).toMatchObject({ node: 5400, operators: 5400, info: 5400, metrics: 5400 })
    })

    it('lets documents live on while rounds go on, and run out when they fail', async () => {
      await using store = await open()
      const n1 = (sequence: number) => batchRecord(aBatch(west, sequence, [complete('node', aNode('n1'))]))
      await written(store, [connected(west), full(1)], 1)
      for (const key of ['cluster:west:operators', 'cluster:west:node:n1']) await redis.expire(key, 400)
      now += 199_000
      await written(store, [n1(2)], 2)
      expect(await redis.ttl('cluster:west:operators')).toBeLessThanOrEqual(400) // only a third was used
      now += 1_000
      await written(store, [n1(3)], 3)
      expect(await redis.ttl('cluster:west:operators')).toBe(600)
      expect(await redis.ttl('cluster:west:node:n1')).toBe(600)
      await redis.expire('cluster:west:operators', 7)
      await redis.expire('cluster:west:node:n1', 7)
      now += 200_000
      const failure = { code: 'unreachable', message: 'no route' }
      await written(store, [batchRecord(aBatch(west, 4, [failed('node', 'unreachable')], { failure }))], 4)
      expect(await redis.ttl('cluster:west:operators')).toBeLessThanOrEqual(7)
      expect(await redis.ttl('cluster:west:node:n1')).toBeLessThanOrEqual(7)
      expect(await text('cluster:west:status')).toMatchObject({ health: 'unhealthy', message: 'no route' })
    })

    it('tells a node that stays the same at least once a minute, one that moved at once', async () => {
      await using store = await open()
      const round = (sequence: number, total: number) => {
        const moved = aNode('n2', { pods: { total, running: total, pending: 0, failed: 0, succeeded: 0, unknown: 0 } })
        return batchRecord(aBatch(west, sequence, [complete('node', aNode('n1'), moved)]))
      }
      const timeOf = async (node: string) =>
        (JSON.parse((await redis.hget(`cluster:west:node:${node}`, 'current')) ?? 'null') as NodeDocument).timestamp
      await written(store, [connected(west), round(1, 1)], 1)
      const first = await timeOf('n1')
      now += 30_000
      await written(store, [round(2, 2)], 2)
      expect(await timeOf('n1')).toBe(first)
      expect(await timeOf('n2')).not.toBe(first)
      expect(await redis.zcard('cluster:west:node:n1:metrics')).toBe(2)
      now += 30_000
      await written(store, [round(3, 2)], 3)
      expect(await timeOf('n1')).not.toBe(first)
      expect(await timeOf('n1')).toBe(await timeOf('n2'))
    })

    it('writes of each cluster the newest state, once, when many rounds came meanwhile', async () => {
      await using store = await open({ checkEveryMs: 60_000 })
      await written(store, [connected(west)], 0)
      const before = await redis.xlen('clusterpulse:changes')
      for (let n = 1; n <= 20; n++) await store.apply([full(n), connected(east)], n)
      await store.flush()
      expect((await redis.xlen('clusterpulse:changes')) - before).toBeLessThanOrEqual(4)
      expect(store.position()).toBe(20)
      await using again = await open()
      expect(again.clusters()).toEqual(store.clusters())
      expect(again.position()).toBe(20)
    })

    it('writes by itself what was applied', async () => {
      await using store = await open({ checkEveryMs: 60_000 })
      for (let n = 1; n <= 3; n++) {
        await store.apply([connected(west), full(n)], n)
        await eventually('Redis has it', async () => (await redis.hget('clusterpulse:positions', 'hub')) === String(n))
      }
    })

    it('writes what moved between rounds some seconds later, with the next round, or where something happened', async () => {
      await using store = await open()
      await written(store, [connected(west), full(1)], 1)
      await eventually('it is written', () => store.position() === 1)
      const summary = async () => (await text('cluster:west:metrics')) as { timestamp: string; pods: number }
      const between = (sequence: number, pods: number) =>
        batchRecord(
          aBatch(west, sequence, [complete('podSummary', aPodSummary(pods))], {
            partial: true,
            collectedAt: T0 + 60_000,
          }),
        )
      const held = async () =>
        JSON.parse((await redis.hget('clusterpulse:cluster:west', 'meta')) ?? '{}') as { sequence: number }
      for (const [i, pods] of [40, 41].entries()) {
        await store.apply([between(i + 2, pods)], i + 2)
        await eventually('our own keys have it', async () => (await held()).sequence === i + 2)
      }
      expect((await summary()).pods).toBe(12)
      expect(await redis.smembers('clusterpulse:late')).toEqual(['west'])
      now += 5_000
      await eventually('documents have it', async () => (await summary()).pods === 41)
      expect(await redis.exists('clusterpulse:late')).toBe(0)
      await store.apply([between(4, 42)], 4)
      await eventually('our own keys have it', async () => (await held()).sequence === 4)
      await store.apply([full(5, { collectedAt: T0 + 66_000 })], 5)
      await eventually('the round is shown at once', async () => (await summary()).pods === 12)
    })

    it('shows what a manager that was killed had not yet shown', async () => {
      {
        await using store = await open()
        await written(store, [connected(west), full(1)], 1)
      }
      await redis.sadd('clusterpulse:late', 'west', 'gone')
      await redis.set('cluster:west:metrics', '{"pods":1}')
      const listener = redis.duplicate()
      const heard: string[] = []
      await listener.subscribe('cluster-events')
      listener.on('message', (_, message) => heard.push(message))
      await using _again = await open()
      await eventually(
        'it is shown',
        async () => ((await text('cluster:west:metrics')) as { pods: number }).pods === 12,
      )
      listener.disconnect()
      expect(heard).toEqual([])
      await eventually('it is late no more', async () => (await redis.sismember('clusterpulse:late', 'west')) === 0)
    })

    it('leaves nothing of a cluster that was removed and came back in one step', async () => {
      await using store = await open()
      await written(store, [connected(west), full(1)], 1)
      await store.apply(
        [removed(west), connected(west), batchRecord(aBatch(west, 2, [complete('node', aNode('n9'))]))],
        4,
      )
      expect(await redis.smembers('cluster:west:nodes')).toEqual(['n9'])
      expect(await redis.exists('cluster:west:node:n1', 'cluster:west:operators')).toBe(0)
    })

    it('takes away what is no longer there: nodes, labels, operators', async () => {
      await using store = await open()
      await written(store, [connected(west), full(1)], 1)
      const rest = aBatch(west, 2, [complete('node', aNode('n1')), complete('operator'), complete('clusterOperator')])
      await written(store, [connected(west, { labels: {} }), batchRecord(rest)], 3)
      expect(await redis.smembers('cluster:west:nodes')).toEqual(['n1'])
      expect(
        await redis.exists('cluster:west:node:n2', 'cluster:west:labels', 'cluster:west:cluster_operator:dns'),
      ).toBe(0)
      expect(await text('cluster:west:operators')).toEqual([])
      expect(await text('cluster:west:cluster_operators')).toEqual([])
    })

    it('cuts the series of a node at the retention', async () => {
      await using store = await open()
      await redis.zadd(
        'cluster:west:node:n1:metrics',
        String(T0 / 1000 - 4000),
        'old',
        String(T0 / 1000 - 100),
        'young',
      )
      await written(store, [connected(west), full(1)], 1)
      expect(await redis.zrange('cluster:west:node:n1:metrics', '0', '-1')).toEqual([
        'young',
        expect.stringContaining('cpu_usage'),
      ])
    })

    it('lists real changes only, newest first, and no entry twice when a write is repeated', async () => {
      await using store = await open()
      await written(store, [connected(west), full(1)], 1)
      for (let n = 2; n < 6; n++) await written(store, [full(n)], n)
      expect(await redis.llen('events:west')).toBe(3)
    })

    it('removes every key of a removed cluster, its events too, and of no other', async () => {
      await using store = await open()
      await written(store, [connected(west), connected(east), full(1)], 2)
      await redis.set('cluster:west:custom:ns/source:resources', '{}')
      await redis.set('cluster:west2:status', '{}')
      await written(store, [removed(west)], 3)
      expect(await redis.keys('cluster:west:*')).toEqual([])
      expect(await redis.exists('events:west', 'clusterpulse:cluster:west')).toBe(0)
      expect(await redis.smembers('clusters:all')).toEqual(['east'])
      expect(await redis.exists('cluster:west2:status', 'cluster:east:status')).toBe(2)
    })

    it('publishes the documented messages', async () => {
      await using store = await open()
      const listener = redis.duplicate()
      const heard: { type: string; cluster: string; data: unknown }[] = []
      await listener.subscribe('cluster-events')
      listener.on('message', (_, message) => heard.push(JSON.parse(message)))
      await written(store, [connected(west), batchRecord(aBatch(west, 1, [complete('node', aNode('n1'))]))], 1)
      await written(store, [batchRecord(aBatch(west, 2, [complete('node', aNode('n1'))]))], 2)
      await written(store, [removed(west)], 3)
      await eventually('the last message came', () => heard.at(-1)?.type === 'cluster.deleted')
      listener.disconnect()
      expect(heard.map(({ type }) => type)).toEqual([
        'cluster.added',
        'cluster.health',
        'cluster.reconciled',
        'cluster.reconciled',
        'cluster.deleted',
      ])
      expect(heard[3]).toMatchObject({ cluster: 'west', data: { health: 'healthy', display_name: 'West' } })
      expect(heard[4]).toMatchObject({ cluster: 'west', data: null })
    })
  })

  describe('bad luck', () => {
    it('fills a flushed Redis again from memory, by itself', async () => {
      await using store = await open()
      await written(store, [connected(west), connected(east), full(1)], 2)
      const before = await redis.get('cluster:west:operators')
      await redis.flushall()
      await eventually('it is all there again', async () => (await redis.exists('clusterpulse:generation')) === 1)
      expect(await redis.get('cluster:west:operators')).toBe(before)
      expect((await redis.smembers('clusters:all')).sort()).toEqual(['east', 'west'])
      expect(await redis.llen('events:west')).toBe(3)
      await store[Symbol.asyncDispose]()
      await using again = await open()
      expect(again.clusters()).toEqual(store.clusters())
      expect(again.position()).toBe(2)
    })

    it('fills it with the next write, before the next look', async () => {
      await using store = await open({ checkEveryMs: 60_000 })
      await written(store, [connected(west), connected(east), full(1)], 2)
      await redis.flushall()
      await written(store, [full(2)], 3)
      expect((await redis.smembers('clusters:all')).sort()).toEqual(['east', 'west'])
      expect(await redis.hget('clusterpulse:positions', 'hub')).toBe('3')
    })

    it('survives kill and empty restart of Redis: says so, writes nothing half, converges', async () => {
      await using store = await open()
      await written(store, [connected(west), full(1)], 1)
      await server.kill()
      const heardAt = now
      now += 12_000
      await store.apply([full(2)], 2)
      await expect(store.flush()).rejects.toBeInstanceOf(StoreUnavailableError)
      expect(store.availability()).toMatchObject({ state: 'unavailable', since: heardAt })
      expect(store.sequence(west)).toBe(2)
      expect(store.position()).toBe(1)
      await expect(store.apply([removed(west)], 3)).rejects.toBeInstanceOf(StoreUnavailableError)
      expect(store.cluster('west')?.parts.node?.items.size).toBe(3)
      await server.start()
      await eventually('it has written by itself', () => store.position() === 2)
      expect(store.availability()).toEqual({ state: 'available' })
      await eventually(
        'Redis has the state',
        async () => (await redis.exists('clusterpulse:generation').catch(() => 0)) === 1,
      )
      expect(await redis.smembers('cluster:west:nodes')).toHaveLength(3)
    })

    it('warns of what Redis has lost, and not of a first start, where there was nothing to lose', async () => {
      const warned: string[] = []
      const logger = { ...silentLogger, warn: (_: object, text?: string) => void warned.push(text ?? '') }
      await using store = await open({ logger })
      await written(store, [connected(west), full(1)], 1)
      expect(warned).toEqual([])
      await redis.flushall()
      await eventually('it is all there again', async () => (await redis.exists('cluster:west:spec')) === 1)
      expect(warned).toContain('Redis does not hold our data: all of it is written again')
    })

    it('writes again whatever key or entry alone is lost, each within a look', async () => {
      await using store = await open({ checkEveryMs: 50, lists: documentedLists })
      await written(store, [connected(west), connected(east), full(1), rowsOf()], 2)
      const isOfThePast = (key: string) => /:node:[^:]+:metrics$/.test(key)
      // What tells of changes is not what they changed; who leads takes its turn by itself.
      const moving = ['clusterpulse:changes', 'clusterpulse:writers', 'clusterpulse:turn']
      const keys = (await redis.keys('*')).filter((key) => !isOfThePast(key) && !moving.includes(key)).sort()
      for (const key of [
        'clusters:all',
        'cluster:west:pods',
        'cluster:west:spec',
        'cluster:west:node:n1',
        'events:west',
      ])
        expect(keys).toContain(key)
      const before = new Map<string, unknown>()
      for (const key of keys) before.set(key, await contentOf(redis, key))
      for (const key of keys) {
        expect(await redis.del(key)).toBe(1)
        await eventually(`${key} is there again`, async () => (await redis.exists(key)) === 1)
        if (!['clusterpulse:owners', 'clusterpulse:generation'].includes(key))
          expect(await contentOf(redis, key), key).toEqual(before.get(key))
      }
      const taken: string[] = []
      for (const key of keys) {
        const whole = await contentOf(redis, key)
        // Marks of a share are drawn anew.
        const form = (content: unknown) =>
          key === 'clusterpulse:owners' ? Object.keys(content as object).sort() : content
        for (const { what, take } of await entriesOf(redis, key)) {
          expect(await take(), what).toBe(1)
          await eventually(`${what} is there again`, async () =>
            isDeepStrictEqual(form(await contentOf(redis, key)), form(whole)),
          )
          taken.push(what)
        }
      }
      for (const what of [
        'n2 of cluster:west:nodes',
        'default of cluster:west:namespaces:set',
        'status of cluster:west:node:n1',
        'part:node of clusterpulse:cluster:west',
      ])
        expect(taken).toContain(what)
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it is read', () => mirror.availability().state === 'available')
      expect(mirror.clusters().map(({ name }) => name)).toEqual(['east', 'west'])
    })

    it('keeps its position when Redis refuses to write, and writes everything when it no longer does', async () => {
      await using store = await open({ checkEveryMs: 60_000 })
      await written(store, [connected(west)], 0)
      await redis.config('SET', 'maxmemory', '1')
      expect(await store.apply([full(1)], 1)).not.toEqual([])
      const error = await store.flush().catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(StoreUnavailableError)
      expect((error as Error).message).toMatch(/maxmemory/)
      expect(store.position()).toBe(0)
      await redis.config('SET', 'maxmemory', '0')
      await store.apply([connected(east)], 2)
      await store.flush()
      expect(store.position()).toBe(2)
      await using again = await open()
      expect(again.clusters()).toEqual(store.clusters())
    })

    it('says so as long as Redis answers and refuses to write, and no longer', async () => {
      await using store = await open({ checkEveryMs: 10 })
      await written(store, [connected(west)], 0)
      await redis.config('SET', 'maxmemory', '1')
      await store.apply([full(1)], 1)
      await store.flush().catch(() => undefined)
      const trouble = store.availability()
      expect(trouble).toMatchObject({ state: 'unavailable', reason: expect.stringMatching(/maxmemory/) as string })
      // Several looks at a Redis that answers every read.
      const reads = async () => Number(/cmdstat_get:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0)
      const before = await reads()
      await eventually('it was looked at', async () => (await reads()) > before + 3)
      expect(store.availability()).toEqual(trouble)
      await redis.config('SET', 'maxmemory', '0')
      await eventually('it writes again', () => store.availability().state === 'available')
    })

    it('names a wrong password or a missing server at the start', async () => {
      await using locked = await startRedis('--requirepass', 'secret')
      await expect(open({ connection: { ...locked, password: 'wrong' } })).rejects.toThrow(/WRONGPASS/)
      await using _store = await open({ connection: { host: locked.host, port: locked.port, password: 'secret' } })
      await expect(open({ connection: { host: '127.0.0.1', port: 1 } })).rejects.toBeInstanceOf(StoreUnavailableError)
    })

    it('skips what it cannot read, and has it again after the next round', async () => {
      {
        await using store = await open()
        await written(store, [connected(west), connected(east), full(1)], 2)
      }
      await redis.hset('clusterpulse:cluster:west', 'meta', '{"name":"we')
      await using store = await open()
      expect(store.clusters().map(({ name }) => name)).toEqual(['east'])
      await written(store, [connected(west), full(2)], 4)
      expect(store.cluster('west')?.parts.node?.items.size).toBe(3)
    })

    it('closes while Redis is away', async () => {
      await using own = await startRedis()
      const store = await open({ connection: own })
      await own.kill()
      await eventually('it noticed', () => store.availability().state === 'unavailable')
      await store[Symbol.asyncDispose]()
    })
  })

  describe('RedisMirror', () => {
    const same = (a: StateReader, b: StateReader) =>
      a
        .clusters()
        .map(({ name, version }) => `${name} ${version}`)
        .join() ===
      b
        .clusters()
        .map(({ name, version }) => `${name} ${version}`)
        .join()

    it('is loading until a manager has written', async () => {
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      expect(mirror.availability()).toEqual({ state: 'loading' })
      const missing = () => JSON.stringify(mirror.availability())
      await eventually('it says what is missing', () => missing().includes('clusterpulse:owners'))
      expect(missing()).not.toContain('original')
      const original = new Redis(server.port)
      await original.sadd('clusters:all', 'west')
      original.disconnect()
      await eventually('it says who wrote', () => missing().includes('what an original manager writes'))
      expect(missing()).toContain('docs/guide/migrate.md')
      await using store = await open()
      await written(store, [connected(west)], 0)
      await eventually('it has loaded', () => mirror.availability().state === 'available')
      expect(mirror.cluster('west')?.connection?.displayName).toBe('West')
    })

    it('tells a change only after it can be read', async () => {
      await using store = await open()
      await written(store, [connected(west)], 0)
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it has loaded', () => mirror.availability().state === 'available')
      const seen: (number | undefined)[] = []
      mirror.onSteps((steps) => {
        if (steps.some(({ changes, isPast }) => !isPast && changes.some(({ kind }) => kind === 'snapshot')))
          seen.push(mirror.cluster('west')?.parts.node?.items.size)
      })
      await written(store, [full(1)], 1)
      await eventually('it was told', () => seen.length > 0)
      expect(seen).toEqual([3])
    })

    it('keeps its picture while Redis is away, says so, and follows again', async () => {
      await using store = await open()
      await written(store, [connected(west), full(1)], 1)
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it has loaded', () => mirror.availability().state === 'available')
      await server.kill()
      await eventually('it noticed', () => mirror.availability().state === 'unavailable')
      expect(mirror.cluster('west')?.parts.node?.items.size).toBe(3)
      await server.start()
      const told: Change[] = []
      mirror.onSteps((steps) => told.push(...steps.flatMap(({ changes, isPast }) => (isPast ? [] : changes))))
      await eventually('the store writes again', async () =>
        store.apply([batchRecord(aBatch(west, 2, [complete('node', aNode('n1'))]))], 2).then(
          () => true,
          () => false,
        ),
      )
      await eventually('it follows again', () => same(mirror, store) && mirror.availability().state === 'available')
      const names = told.flatMap((change) => (change.kind === 'snapshot' ? [`${change.op} ${change.name}`] : []))
      expect(names.sort()).toEqual(['put n1', 'remove n2', 'remove n3'])
    })

    it('never shows an emptied Redis as an empty fleet', async () => {
      const store = await open({ checkEveryMs: 60_000 })
      await written(store, [connected(west), full(1)], 1)
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it has loaded', () => mirror.availability().state === 'available')
      await redis.flushall()
      await eventually('it noticed', () => mirror.availability().state === 'unavailable')
      expect(mirror.clusters()).toHaveLength(1)
      await written(store, [full(2)], 2)
      await eventually('it follows again', () => same(mirror, store) && mirror.availability().state === 'available')
      await store[Symbol.asyncDispose]()
    })

    it('shows nothing of an emptied Redis before a manager that starts says that it knows the fleet', async () => {
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      const steps: number[] = []
      mirror.onSteps(() => steps.push(mirror.clusters().length))
      await using store = await open({ waits: true, checkEveryMs: 20 })
      await realSleep(200)
      await store.apply([connected(west), connected(east), full(1)], 1)
      await store.apply([{ kind: 'removed', cluster: east, at: now }, full(2)], 2)
      await realSleep(200)
      expect(await redis.exists('clusterpulse:positions', 'clusters:all')).toBe(0)
      expect(mirror.availability().state).not.toBe('available')
      store.begin()
      await eventually('it has loaded', () => mirror.availability().state === 'available')
      expect(mirror.clusters().map(({ name }) => name)).toEqual(['west'])
      expect(mirror.cluster('west')?.sequence).toBe(2)
      expect(steps.filter((count) => count !== 1)).toEqual([])
      // One that finds all of it there waits for nothing.
      await store[Symbol.asyncDispose]()
      await using again = await open({ waits: true })
      await again.apply([full(3)], 3)
      await eventually('it is written', async () => (await redis.hget('clusterpulse:positions', 'hub')) === '3')
    })

    it('reads everything again when pieces of the stream are missing', async () => {
      await using store = await open()
      await written(store, [connected(west), connected(east)], 1)
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it has loaded', () => mirror.availability().state === 'available')
      // As if the entry that told of a removal had been cut away before the mirror saw it.
      const [last] = await redis.xrevrange('clusterpulse:changes', '+', '-', 'COUNT', '1')
      const fields = last?.[1] ?? []
      await redis.srem('clusterpulse:clusters', 'east')
      await redis.del('clusterpulse:cluster:east')
      await redis.hset('clusterpulse:owners', 'names:1', namesText(['west']))
      await redis.xadd('clusterpulse:changes', '*', ...fields.with(-1, String(Number(fields.at(-1)) + 2)))
      await eventually('it has read all of it', () => mirror.cluster('east') === undefined)
      expect(mirror.clusters().map(({ name }) => name)).toEqual(['west'])
    })

    it('takes no state that is older than what it was told, and has it written again', async () => {
      await using store = await open({ checkEveryMs: 60_000 })
      await written(store, [connected(west), full(1)], 1)
      const old = await redis.hgetall('clusterpulse:cluster:west')
      await written(store, [full(2)], 2)
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it has loaded', () => mirror.cluster('west')?.sequence === 2)
      const version = store.cluster('west')!.version
      // As if Redis came back with a former memory, and then told of a change without saying what changed.
      const [last] = await redis.xrevrange('clusterpulse:changes', '+', '-', 'COUNT', '1')
      const of = (field: string) => last![1][last![1].indexOf(field) + 1]!
      const next = ['op', 'put', 'c', 'west', 'v', String(version + 1), 'o', '1', 'g', of('g'), 's', of('s')]
      await redis.hset('clusterpulse:cluster:west', old)
      await redis.xadd('clusterpulse:changes', '*', ...next, 'n', String(Number(of('n')) + 1))
      await eventually('it says so', () => JSON.stringify(mirror.availability()).includes('older state'))
      expect(JSON.stringify(mirror.availability())).not.toContain('west')
      expect(mirror.cluster('west')?.sequence).toBe(2)
      expect(await redis.smembers('clusterpulse:damaged')).toEqual(['west'])
    })

    it('follows a manager that was started anew', async () => {
      const first = await open()
      await first.apply([connected(west), full(1)], 1)
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it has loaded', () => mirror.availability().state === 'available')
      await first[Symbol.asyncDispose]()
      await using second = await open()
      await second.apply([batchRecord(aBatch(west, 2, [complete('node', aNode('only'))]))], 2)
      await eventually('it has caught up', () => same(mirror, second))
      expect([...(mirror.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['only'])
    })

    it.each<[what: string, key: string, harm: (redis: Redis) => Promise<unknown>]>([
      ['the list of clusters is lost', 'clusterpulse:clusters', (by) => by.del('clusterpulse:clusters')],
      ['one is not listed', 'clusterpulse:clusters', (by) => by.srem('clusterpulse:clusters', 'east')],
      ['another is listed', 'clusterpulse:clusters', (by) => by.sadd('clusterpulse:clusters', 'ghost')],
      ['one is lost', 'clusterpulse:cluster:<name>', (by) => by.del('clusterpulse:cluster:east')],
      [
        'one is damaged',
        'clusterpulse:cluster:<name>',
        (by) => by.hset('clusterpulse:cluster:west', 'part:node', '[{'),
      ],
      [
        'a part of one is lost',
        'clusterpulse:cluster:<name>',
        (by) => by.hdel('clusterpulse:cluster:west', 'part:node'),
      ],
    ])('takes no part of a fleet for all of it, whoever lives: %s', async (_, key, harm) => {
      const first = await open({ checkEveryMs: 60_000 })
      await written(first, [connected(west), connected(east), full(1)], 2)
      await using knows = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it has loaded', () => knows.availability().state === 'available')
      await first[Symbol.asyncDispose]()
      await harm(redis)
      // No manager lives. One that starts, and one that reads all again.
      await using starts = new RedisMirror({ connection: server, waitMs: 50 })
      await redis.xadd(
        'clusterpulse:changes',
        '*',
        'op',
        'reload',
        'c',
        '',
        'v',
        '0',
        'o',
        '0',
        'g',
        'x',
        's',
        'x',
        'n',
        '1',
      )
      for (const mirror of [starts, knows])
        await eventually('it says what is missing', () => JSON.stringify(mirror.availability()).includes(key))
      expect(starts.availability()).toMatchObject({ state: 'loading' })
      expect(starts.clusters()).toEqual([])
      expect(JSON.stringify(starts.availability())).not.toMatch(/east|west|ghost/)
      expect(knows.availability()).toMatchObject({ state: 'unavailable' })
      expect(knows.clusters()).toHaveLength(2)
      // The next manager does not know how far the log is in there, and writes all that it has.
      await using second = await open()
      expect(second.position()).toBe(-1)
      await written(second, [connected(west), connected(east), full(2)], 3)
      for (const mirror of [starts, knows])
        await eventually('it is read again', () => mirror.availability().state === 'available' && same(mirror, second))
    })

    it('has a manager that lives write again what it cannot read', async () => {
      await using store = await open()
      await written(store, [connected(west), connected(east), full(1)], 2)
      await redis.hset('clusterpulse:cluster:west', 'part:node', '[{"name":')
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it is read', () => mirror.availability().state === 'available' && same(mirror, store))
      expect(mirror.cluster('west')?.parts.node?.items.size).toBe(3)
      expect(await redis.exists('clusterpulse:damaged')).toBe(0)
    })

    it('believes a manager of a version that did not say which clusters there are', async () => {
      {
        await using store = await open()
        await written(store, [connected(west), connected(east)], 1)
      }
      await redis.hdel('clusterpulse:owners', 'names:1')
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it is read', () => mirror.availability().state === 'available')
      await using _ = await open()
      await eventually('it is said', async () => (await redis.hexists('clusterpulse:owners', 'names:1')) === 1)
    })

    it('reads the alerts of each cluster', async () => {
      await redis.hset('alerts:west:a1', { id: 'a1', severity: 'critical' })
      await redis.hset('alerts:west:a0', { id: 'a0', severity: 'warning' })
      await using store = await open()
      await written(store, [connected(west), connected(east)], 1)
      await using mirror = new RedisMirror({ connection: server, waitMs: 50 })
      await eventually('it has read them', () => mirror.alerts('west').length > 0)
      expect(mirror.alerts('west')).toEqual([
        { id: 'a0', severity: 'warning' },
        { id: 'a1', severity: 'critical' },
      ])
      expect(mirror.alerts('east')).toEqual([])
    })
  })
})

/** What lies under a key, whatever it is. */
async function contentOf(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key)
  if (type === 'string') return redis.get(key)
  if (type === 'hash') return redis.hgetall(key)
  if (type === 'set') return (await redis.smembers(key)).sort()
  return type === 'list' ? redis.lrange(key, 0, -1) : redis.zrange(key, '0', '-1')
}

/** Reads one cluster the way readers of the documented keys do. */
async function readAsBefore(redis: Redis, name: string) {
  const json = async (key: string) => JSON.parse((await redis.get(`cluster:${name}:${key}`)) ?? 'null') as unknown
  const nodes: Record<string, NodeDocument> = {}
  const names = (await redis.smembers(`cluster:${name}:nodes`)).sort()
  for (const node of names)
    nodes[node] = JSON.parse((await redis.hget(`cluster:${name}:node:${node}`, 'current')) ?? 'null')
  return {
    registered: await redis.smembers('clusters:all'),
    spec: await json('spec'),
    labels: await json('labels'),
    status: await json('status'),
    meta: await redis.hgetall(`cluster:${name}:meta`),
    info: await json('info'),
    metrics: await json('metrics'),
    namespaces: await json('namespaces'),
    namespacesSet: (await redis.smembers(`cluster:${name}:namespaces:set`)).sort(),
    nodes,
    nodeHash: await redis.hgetall(`cluster:${name}:node:${names[0]}`),
    series: (await redis.zrange(`cluster:${name}:node:${names[0]}:metrics`, '0', '-1')).map((text) => JSON.parse(text)),
    summary: JSON.parse((await redis.hget(`cluster:${name}:nodes:summary`, 'data')) ?? 'null') as unknown,
    operators: await json('operators'),
    operatorsSummary: await json('operators_summary'),
    clusterOperators: await json('cluster_operators'),
    clusterOperatorsSummary: await json('cluster_operators_summary'),
    events: (await redis.lrange(`events:${name}`, 0, -1)).map((text) => JSON.parse(text) as { type: string }),
  }
}

function realSleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}
