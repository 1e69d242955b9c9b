import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Change, nodeDocument, type SnapshotOf } from '#model'
import {
  originalCollection,
  originalNodeDocument,
  originalRemoval,
  originalRound,
  originalSource,
} from '../../../test/original-manager.ts'
import { OriginalState } from './original.ts'
import { eventually, redisMissing, startRedis, type TestRedis } from './test/redis-server.ts'

const noRedis = redisMissing === undefined ? '' : ` (not run: ${redisMissing})`

describe.skipIf(noRedis !== '')(`the state of an original manager${noRedis}`, () => {
  let server: TestRedis
  let hand: Redis
  beforeAll(async () => {
    server = await startRedis()
    hand = new Redis(server.port)
  })
  afterAll(async () => {
    hand.disconnect()
    await server[Symbol.asyncDispose]()
  })
  beforeEach(() => hand.flushall())

  const open = (options: Partial<ConstructorParameters<typeof OriginalState>[0]> = {}) =>
    new OriginalState({ connection: server, checkEveryMs: 60_000, ...options })
  const available = (state: OriginalState) =>
    eventually('it has loaded', () => state.availability().state === 'available')
  const nodes = (state: OriginalState, name = 'west') => [...(state.cluster(name)?.parts.node?.items.values() ?? [])]
  const west = { name: 'west', nodes: [{ name: 'n1' }, { name: 'n2', status: 'NotReady' as const }] }

  it('is loading, and says which key is missing, until a manager has written', async () => {
    await using state = open({ checkEveryMs: 50 })
    await eventually('it says so', () => JSON.stringify(state.availability()).includes('clusters:all'))
    expect(state.availability().state).toBe('loading')
    await originalRound(hand, west)
    await available(state)
    // All of it gone must not look like a fleet without clusters.
    await hand.flushall()
    await eventually('it notices', () => state.availability().state === 'unavailable')
    expect(state.clusters()).toHaveLength(1)
  })

  it('knows namespaces by their set where the document that names them is gone', async () => {
    await originalRound(hand, { ...west, mode: 'push', namespaces: ['b', 'a'] })
    await hand.del('cluster:west:namespaces')
    await hand.sadd('cluster:west:namespaces:set', 'a', 'b')
    await using state = open()
    await available(state)
    const namespaces = () => state.cluster('west')?.parts.namespace
    expect(namespaces()).toMatchObject({ outcome: 'complete' })
    expect([...(namespaces()?.items.keys() ?? [])]).toEqual(['a', 'b'])
  })

  it('reads every document as it was written', async () => {
    const at = Date.UTC(2026, 10, 1, 12)
    const operators = [{ name: 'op.v1', namespaces: ['a', 'b'] }]
    await originalRound(hand, { ...west, mode: 'push', labels: { env: 'prod' }, namespaces: ['b', 'a'], operators, at })
    await originalSource(hand)
    await originalCollection(
      hand,
      'west',
      [{ namespace: 'a', name: 'x', labels: { l: '1' }, values: { phase: 'Bound', capacity: 5 } }],
      undefined,
      at,
    )
    await using state = open()
    await available(state)
    const cluster = state.cluster('west')
    expect(cluster?.connection).toMatchObject({
      displayName: 'WEST',
      labels: { env: 'prod' },
      mode: 'push',
      intervalMs: 30_000,
    })
    expect(cluster?.status).toMatchObject({
      health: 'healthy',
      message: 'Collector push active',
      checkedAt: at,
      lastSyncAt: at,
    })
    const told = nodes(state).map((node) => nodeDocument(node as SnapshotOf<'node'>, at))
    for (const [i, node] of west.nodes.entries()) expect(told[i]).toMatchObject(originalNodeDocument(node, at))
    expect([...(cluster?.parts.namespace?.items.keys() ?? [])]).toEqual(['b', 'a'])
    expect(cluster?.parts.operator?.items.get('openshift-operators/op.v1')?.availableInNamespaces).toEqual(['a', 'b'])
    expect(cluster?.parts.cluster?.items.get('cluster')).toMatchObject({
      version: 'v1.31.0',
      distribution: 'kubernetes',
    })
    expect(cluster?.deploymentCount).toBe(5)
    const custom = cluster?.tables.get('clusterpulse/pvcs')
    expect([...(custom?.rows.rows() ?? [])]).toEqual([
      { namespace: 'a', name: 'x', labels: { l: '1' }, values: { phase: 'Bound', capacity: 5 } },
    ])
    expect(custom).toMatchObject({ aggregations: { total: 1, bytes: 5 }, freshness: { observedAt: at } })
    expect(cluster?.events.map(({ type }) => type)).toEqual(['cluster.reconciled'])
    expect(cluster?.heartbeats).toEqual([{ at, health: 'healthy', durationMs: 0 }])
  })

  it('knows who reads a cluster also where our manager writes totals of every one', async () => {
    await originalRound(hand, { ...west, mode: 'push', namespaces: ['a'] })
    await hand.set('cluster:west:status', JSON.stringify({ health: 'healthy', message: 'Cluster is reachable' }))
    await originalRound(hand, { name: 'east', mode: 'push', namespaces: ['a'] })
    const lost = { health: 'unhealthy', message: 'connection refused', last_check: '2026-11-01T12:00:00Z' }
    await originalRound(hand, { name: 'north', mode: 'push', namespaces: ['a'] })
    await hand.set('cluster:north:status', JSON.stringify(lost))
    await using state = open()
    await available(state)
    expect(state.clusters().map(({ name, source, connection }) => [name, source, connection?.mode])).toEqual([
      ['east', 'push', 'push'],
      ['north', 'push', 'push'],
      ['west', 'pull', 'pull'],
    ])
  })

  it('takes what ran out for unknown, with the age of the last check, and never for nothing', async () => {
    const at = Date.UTC(2026, 10, 1, 12)
    await originalRound(hand, { ...west, at })
    await using state = open({ checkEveryMs: 50 })
    await available(state)
    for (const { name } of west.nodes) await hand.pexpire(`cluster:west:node:${name}`, 1)
    await eventually('it is noticed', () => state.cluster('west')?.parts.node?.outcome === 'unreachable')
    expect(state.cluster('west')?.parts.node).toMatchObject({ code: 'expired', freshness: null, attemptedAt: at })
    expect(state.cluster('west')?.parts.node?.message).toContain('2026-11-01T12:00:00Z')
    expect(state.cluster('west')?.status.checkedAt).toBe(at)
  })

  it('leaves out nodes that vanished, whose names stay in the set', async () => {
    await originalRound(hand, west)
    await hand.del('cluster:west:node:n2')
    await using state = open()
    await available(state)
    expect(state.cluster('west')?.parts.node?.outcome).toBe('complete')
    expect(nodes(state).map(({ name }) => name)).toEqual(['n1'])
  })

  it('follows what is announced, tells it once it can be read, and forgets what is gone', async () => {
    await originalRound(hand, west)
    await originalRound(hand, { name: 'east', nodes: [{ name: 'e1' }] })
    await using state = open()
    await available(state)
    const seen: Change[] = []
    state.onSteps((steps) => seen.push(...steps.flatMap(({ changes, isPast }) => (isPast ? [] : changes))))
    await originalRound(hand, { ...west, nodes: [...west.nodes, { name: 'n3' }] })
    await eventually('the node is there', () => nodes(state).length === 3)
    expect(seen.map((change) => (change.kind === 'snapshot' ? `${change.op} ${change.name}` : change.kind))).toContain(
      'put n3',
    )
    const before = state.cluster('east')
    await originalRemoval(hand, 'west')
    await eventually('it is gone', () => state.cluster('west') === undefined)
    expect(state.cluster('east')).toBe(before)
    expect(seen.at(-1)).toMatchObject({ kind: 'cluster', cluster: 'west', op: 'remove' })
  })

  it('sees within a check what nobody announced, and knows what did not change', async () => {
    await originalRound(hand, west)
    await using state = open({ checkEveryMs: 50 })
    await available(state)
    const before = state.cluster('west')
    const spec = JSON.parse((await hand.get('cluster:west:spec')) ?? '')
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(state.cluster('west')).toBe(before)
    await hand.set('cluster:west:spec', JSON.stringify({ ...spec, displayName: 'New' }))
    await eventually('it is read', () => state.cluster('west')?.connection?.displayName === 'New')
  })

  it('keeps its picture while Redis is away, says so, and reads again', async () => {
    await originalRound(hand, west)
    await using state = open()
    await available(state)
    await server.kill()
    await eventually('it says so', () => state.availability().state === 'unavailable')
    expect(nodes(state)).toHaveLength(2)
    await server.start()
    await eventually('it is back', async () => (await hand.ping().catch(() => '')) === 'PONG')
    await originalRound(hand, { ...west, nodes: [{ name: 'other' }] })
    await eventually('it reads again', () => nodes(state)[0]?.name === 'other')
  })

  describe('with documents that cannot be read', () => {
    const HOSTILE: readonly [what: string, text: string][] = [
      ['no JSON', '{'],
      ['a number', '5'],
      ['null', 'null'],
      ['a list', '[]'],
      [
        'fields of other types',
        '{"name":5,"labels":[1],"conditions":{"a":1},"roles":"x","namespaces":7,"timestamp":{}}',
      ],
      [
        'names of every object',
        '{"name":"n1","labels":{"__proto__":"x","constructor":"y"},"__proto__":{"status":"Ready"}}',
      ],
      [
        'amounts that are none',
        '{"name":"n1","timestamp":"2026-01-01T00:00:00Z","cpu_capacity":-1,"pods_total":1e400,"memory_requested":"7"}',
      ],
      ['deeply nested', '['.repeat(200_000) + ']'.repeat(200_000)],
    ]
    const keys = [
      'spec',
      'status',
      'info',
      'metrics',
      'namespaces',
      'operators',
      'cluster_operators',
      'custom:clusterpulse/pvcs:resources',
    ]

    it.each(HOSTILE)('such as %s, answers for the rest', async (_, text) => {
      await originalRound(hand, west)
      await originalRound(hand, { name: 'east', nodes: [{ name: 'e1' }] })
      await originalSource(hand)
      for (const key of keys) await hand.set(`cluster:west:${key}`, text)
      await hand.hset('cluster:west:node:n1', 'current', text)
      await hand.lpush('events:west', text)
      await using state = open()
      await available(state)
      expect(nodes(state, 'east')).toHaveLength(1)
      const cluster = state.cluster('west')
      expect(() => JSON.stringify([cluster, ...(cluster?.tables.values() ?? [])])).not.toThrow()
      const { node } = cluster?.parts ?? {}
      expect([...(node?.items.keys() ?? [])]).toContain('n2')
      // What is left of the nodes is not told as all there are.
      if (node?.items.size === 1) expect(node).toMatchObject({ outcome: 'unreachable', code: 'document_unreadable' })
      for (const each of node?.items.values() ?? []) expect(each.requested?.memoryBytes ?? 0).toBeGreaterThanOrEqual(0)
    })

    it('such as ones of another type or size, names them and reads nothing of them', async () => {
      await originalRound(hand, { ...west, mode: 'push', namespaces: ['a'] })
      await hand.set('cluster:west:operators', `[${'"x",'.repeat(3_000)}"x"]`)
      await hand.del('cluster:west:namespaces')
      await hand.sadd('cluster:west:namespaces', 'a')
      await hand.sadd('clusters:all', 'Not a cluster', 'huge')
      await hand.sadd('cluster:huge:nodes', ...Array.from({ length: 20_001 }, (_, i) => `n${i}`))
      await using state = open({ limits: { documentBytes: 8_192, clusterBytes: 100_000 } })
      await available(state)
      const parts = state.cluster('west')?.parts ?? {}
      expect(parts.operator).toMatchObject({ outcome: 'unreachable', freshness: null })
      expect(parts.operator?.message).toContain('larger')
      expect(parts.namespace?.message).toContain('documented type')
      expect(parts.node).toMatchObject({ outcome: 'complete' })
      expect(state.cluster('huge')?.parts.node?.outcome).toBe('unreachable')
      expect(state.clusters().map(({ name }) => name)).toEqual(['huge', 'west'])
    })
  })
})
