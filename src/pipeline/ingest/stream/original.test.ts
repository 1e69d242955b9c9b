import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { type ClusterState, clusterTotals, nodeStatus, type Plan } from '#model'
import { originalFromBatch } from '#wire'
import { documentCommands } from '../../state/redis-documents.ts'
import { aBatch, aClusterOperator, aNode, anOperator, complete, west } from '../../state/test/fleet-words.ts'
import { type Payload, StreamClient } from './test/clients.ts'
import { aHub } from './test/hub.ts'

const register = (clusterName: string, token = `${clusterName}-token`): Payload => ({
  case: 'register',
  value: { clusterName, token, version: 'v0.9' },
})

const metrics = (id: string, nodes: readonly string[], cluster = 'west', at = Date.now()): Payload => {
  const batch = aBatch(west, 1, [complete('node', ...nodes.map((name) => aNode(name)))])
  return {
    case: 'metrics',
    value: { ...originalFromBatch(batch), clusterName: cluster, batchId: id, collectedAt: timestampFromMs(at) },
  }
}

describe('a collector of the original', () => {
  it('is served as it is: no message it does not know, one ack per batch, in order, once the batch is safe', async () => {
    await using hub = await aHub()
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    for (const id of ['a', 'b', 'c']) collector.send(metrics(id, ['n1', `n-${id}`]))
    for (const id of ['a', 'b', 'c']) expect(await collector.next('ack')).toMatchObject({ batchId: id, success: true })
    await hub.ingester.flushed()
    expect([...(hub.state.cluster('west')?.parts.node?.items.keys() ?? [])]).toEqual(['n1', 'n-c'])
    expect(hub.state.cluster('west')?.source).toBe('push')
    expect(collector.received).toEqual([])
  })

  it('counts deployments, which the cluster then has without their names, in state and in history', async () => {
    await using hub = await aHub()
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    const batch = aBatch(west, 1, [complete('node', aNode('n1'))], { deploymentCount: 7 })
    const send = (batchId: string, deployments: number) => {
      const told = originalFromBatch({ ...batch, deploymentCount: deployments })
      collector.send({
        case: 'metrics',
        value: { ...told, clusterName: 'west', batchId, collectedAt: timestampFromMs(Date.now()) },
      })
      return collector.next('ack')
    }
    await send('a', 7)
    await hub.ingester.flushed()
    expect(hub.state.cluster('west')?.deploymentCount).toBe(7)
    // It counts itself among them: none means that it could not read them.
    await send('b', 0)
    await hub.ingester.flushed()
    expect(hub.state.cluster('west')?.deploymentCount).toBe(7)
  })

  it('takes over from the hub: numbers that it does not tell are not those of the hub any more', async () => {
    await using hub = await aHub()
    const pods = { total: 20, running: 20, pending: 0, failed: 0, succeeded: 0, unknown: 0 }
    const summary = { name: 'pods' as const, counts: pods, unscheduled: 0, byNamespace: { shop: pods } }
    const deployment = { name: 'shop/x', namespace: 'shop', replicas: 1, ready: 1, available: 1, updated: 1 }
    const parts = [complete('node', aNode('n1')), complete('podSummary', summary), complete('deployment', deployment)]
    await hub.ingester.accept({ batch: aBatch(west, 1, parts, { collectedAt: Date.now() - 1_000 }) })
    await hub.ingester.flushed()
    expect(Object.keys(hub.state.cluster('west')?.parts ?? {})).toEqual(['node', 'podSummary', 'deployment'])
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    const told = [complete('node', aNode('n1', { pods: { ...pods, total: 6, running: 6 } }))]
    collector.send({
      case: 'metrics',
      value: {
        ...originalFromBatch(aBatch(west, 1, told, { deploymentCount: 4 })),
        clusterName: 'west',
        batchId: 'a',
        collectedAt: timestampFromMs(Date.now()),
      },
    })
    await collector.next('ack')
    await hub.ingester.flushed()
    const state = hub.state.cluster('west') as ClusterState
    expect(Object.keys(state.parts)).toEqual(['node'])
    const settings = { ttlMs: 600_000, retentionMs: 3_600_000 }
    const { commands } = documentCommands(undefined, state, Date.now(), settings)
    const metrics = commands.find(([verb, key]) => verb === 'SET' && key === 'cluster:west:metrics')?.[2]
    expect(JSON.parse(String(metrics))).toMatchObject({ pods: 6, pods_running: 6, deployments: 4 })
  })

  it('drains a node: the cluster stays healthy, and no node counts as not ready', async () => {
    await using hub = await aHub()
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    const send = async (batchId: string, unschedulable: boolean) => {
      const nodes = [aNode('n1', { roles: ['control-plane'], unschedulable }), aNode('n2')]
      const told = originalFromBatch(aBatch(west, 1, [complete('node', ...nodes)]))
      collector.send({
        case: 'metrics',
        value: { ...told, clusterName: 'west', batchId, collectedAt: timestampFromMs(Date.now()) },
      })
      await collector.next('ack')
      await hub.ingester.flushed()
      return hub.state.cluster('west') as ClusterState
    }
    await send('a', false)
    const drained = await send('b', true)
    expect(drained.status.health).toBe('healthy')
    const nodes = [...(drained.parts.node?.items.values() ?? [])]
    expect(nodes.map(nodeStatus)).toEqual(['SchedulingDisabled', 'Ready'])
    expect(clusterTotals({ nodes }).nodes).toEqual({ total: 2, ready: 1, notReady: 0, unschedulable: 1 })
    const back = await send('c', false)
    expect(back.events.map(({ type }) => type).filter((type) => type.startsWith('node.'))).toEqual([
      'node.uncordoned',
      'node.cordoned',
    ])
  })

  it('tells no time of its operators: the documents have that of their arrival', async () => {
    await using hub = await aHub()
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    const parts = [
      complete('node', aNode('n1')),
      complete('operator', anOperator('x.v1')),
      complete('clusterOperator', aClusterOperator('dns')),
    ]
    const before = Math.floor(Date.now() / 1000) * 1000
    collector.send({
      case: 'metrics',
      value: {
        ...originalFromBatch(aBatch(west, 1, parts)),
        clusterName: 'west',
        batchId: 'a',
        collectedAt: timestampFromMs(Date.now()),
      },
    })
    await collector.next('ack')
    await hub.ingester.flushed()
    const state = hub.state.cluster('west') as ClusterState
    const { commands } = documentCommands(undefined, state, Date.now(), { ttlMs: 600_000, retentionMs: 3_600_000 })
    const documentAt = (wanted: string) =>
      JSON.parse(String(commands.find(([verb, key]) => verb === 'SET' && key === wanted)?.[2])) as [
        Record<string, string>,
      ]
    const [operator] = documentAt('cluster:west:operators')
    const [clusterOperator] = documentAt('cluster:west:cluster_operators')
    for (const time of [operator.created_at, operator.updated_at, clusterOperator.last_transition_time])
      expect(Date.parse(time ?? '')).toBeGreaterThanOrEqual(before)
  })

  it('gets its sources as they are compiled, again when they change, and nothing where there are none', async () => {
    await using hub = await aHub()
    const plan = (version: string, sources: readonly unknown[]): Plan => ({
      version,
      intervalMs: 60_000,
      timeoutMs: 10_000,
      operatorScanIntervalMs: 300_000,
      sources,
    })
    hub.plans.set(west, plan('none', []))
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    collector.send(metrics('a', ['n1']))
    await collector.next('ack')
    expect(collector.received).toEqual([])
    hub.plans.set(west, plan('one', [{ id: 'default/backups' }]))
    const { metricSourcesJson, defaultIntervalSeconds } = await collector.next('config')
    expect(metricSourcesJson.map((json) => JSON.parse(Buffer.from(json).toString()))).toEqual([
      { id: 'default/backups' },
    ])
    expect(defaultIntervalSeconds).toBe(0)
  })

  it('may register once: a second time with its own name changes nothing', async () => {
    await using hub = await aHub()
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    collector.send(register('west'))
    collector.send(metrics('a', ['n1']))
    expect(await collector.next('ack')).toMatchObject({ batchId: 'a', success: true })
    expect(hub.server.agents.facts('west')).toMatchObject({ connected: true, protocol: 'original', version: 'v0.9' })
  })

  it('whose batch comes a second time has it once, over streams', async () => {
    await using hub = await aHub()
    const { address } = hub.server
    await using first = new StreamClient({ address, token: 'west-token' })
    first.send(register('west'))
    first.send(metrics('a', ['n1']))
    await first.next('ack')
    await using second = new StreamClient({ address, token: 'west-token' })
    second.send(register('west'))
    second.send(metrics('a', ['other']))
    second.send(metrics('b', ['n2']))
    expect(await second.next('ack')).toMatchObject({ batchId: 'a', success: true })
    expect(await second.next('ack')).toMatchObject({ batchId: 'b', success: true })
    expect((await first.ended()).details).toMatch(/^replaced: /)
    expect(hub.ingester.received(west, 'original')).toEqual([[1, 2]])
  })

  it('has the time it says where that makes sense, else the time of arrival', async () => {
    await using hub = await aHub()
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    const observed = async (id: string, at: number) => {
      collector.send(metrics(id, ['n1'], 'west', at))
      await collector.next('ack')
      await hub.ingester.flushed()
      return hub.state.cluster('west')?.parts.node?.freshness?.observedAt ?? 0
    }
    const aMinuteAgo = Date.now() - 60_000
    expect(await observed('a', aMinuteAgo)).toBe(aMinuteAgo)
    expect(await observed('b', Date.now() - 86_400_000)).toBeGreaterThan(Date.now() - 5_000)
    expect(await observed('c', Date.now() + 86_400_000)).toBeLessThanOrEqual(Date.now())
  })

  it('hears what failed, in the ack of that batch', async () => {
    await using hub = await aHub()
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    collector.send(metrics('bad', ['']))
    const ack = await collector.next('ack')
    expect(ack).toMatchObject({ batchId: 'bad', success: false })
    expect(ack.error).not.toBe('')
    await hub.ingester.remove(west)
    collector.send(metrics('late', ['n1']))
    expect((await collector.ended()).details).toMatch(/^not_connected: /)
  })

  it('that ends its stream well has its acks first', async () => {
    await using hub = await aHub()
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send(register('west'))
    collector.send(metrics('a', ['n1']))
    collector.finish()
    expect(await collector.next('ack')).toMatchObject({ batchId: 'a', success: true })
    expect((await collector.ended()).code).toBe(0)
  })
})
