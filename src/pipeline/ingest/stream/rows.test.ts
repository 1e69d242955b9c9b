import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import type { Batch, Plan, RowsPart } from '#model'
import { originalFromBatch } from '#wire'
import { aBatch, aNode, complete, partial, seen, sizes, west } from '../../state/test/fleet-words.ts'
import { plannedOnly } from './planned.ts'
import { StreamClient } from './test/clients.ts'
import { aHub, type TestHub } from './test/hub.ts'
import { OwnAgent } from './test/own-agent.ts'

const definition = (id: string, hash = 'abc', aggregations: readonly string[] = ['total']) => {
  const [namespace, name] = id.split('/')
  return { namespace, name, hash, aggregations: aggregations.map((one) => ({ name: one, function: 'count' })) }
}
const plan = (version: string, ...sources: unknown[]): Plan => ({
  version,
  intervalMs: 60_000,
  timeoutMs: 10_000,
  operatorScanIntervalMs: 300_000,
  sources,
})
const between = (sequence: number, ...custom: RowsPart[]): Batch =>
  partial(west, sequence, custom, { source: 'push', collectedAt: Date.now() })

async function shown({ ingester, state }: TestHub) {
  await ingester.flushed()
  const { tables } = state.cluster('west')!
  return Object.fromEntries(
    [...tables].map(([source, { rows }]) => [source, [...rows.rows()].map(({ name, values }) => [name, values.size])]),
  )
}

describe('an agent of ours', () => {
  it('sends what MetricSources saw between rounds, whole and as differences', async () => {
    await using hub = await aHub()
    hub.plans.set(west, plan('one', definition('team/sizes')))
    const { agent, welcome } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    expect(welcome.capabilities).toContain('custom-parts')
    const [one, two] = [sizes({ x: 1, y: 2 }), sizes({ y: 3 })]
    agent.push(between(1, seen(one)))
    await agent.ackedTo(1)
    expect(await shown(hub)).toEqual({
      'team/sizes': [
        ['x', 1],
        ['y', 2],
      ],
    })
    agent.push(between(2, seen(two)), { base: 1 })
    await agent.ackedTo(2)
    expect(await shown(hub)).toEqual({ 'team/sizes': [['y', 3]] })
    expect(hub.state.cluster('west')?.status.checkedAt).toBeNull()
  })

  it('is told to send all of it where the source was removed meanwhile, by the hub itself', async () => {
    await using hub = await aHub()
    hub.plans.set(west, plan('one', definition('team/sizes')))
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    agent.push(between(1, seen(sizes({ x: 1, y: 1 }))))
    await agent.ackedTo(1)
    await hub.ingester.removeSource(west, 'team/sizes')
    agent.push(between(2, seen(sizes({ x: 1, y: 2 }))), { base: 1 })
    await agent.ackedTo(2)
    expect(await shown(hub)).toEqual({
      'team/sizes': [
        ['x', 1],
        ['y', 2],
      ],
    })
  })

  it('cannot invent sources nor aggregations; what its plan names later is taken from then on', async () => {
    await using hub = await aHub()
    hub.plans.set(west, plan('one', definition('team/sizes')))
    const { agent } = await OwnAgent.connect({ address: hub.server.address, token: 'west-token' })
    await using _agent = agent
    const other = (value: number) => seen(sizes({ o: value, p: 1 }), { source: 'team/other' })
    agent.push(between(1, seen(sizes({ x: 1 }), { aggregations: { total: 1, invented: 2 } }), other(1)))
    await agent.ackedTo(1)
    expect(await shown(hub)).toEqual({ 'team/sizes': [['x', 1]] })
    expect(hub.state.cluster('west')?.tables.get('team/sizes')?.aggregations).toEqual({ total: 1 })
    expect(await hub.metrics.registry.metrics()).toMatch(/clusterpulse_agent_messages_total\{what="unplanned"\} 1/)
    hub.plans.set(west, plan('two', definition('team/sizes'), definition('team/other')))
    expect([(await agent.next('plan')).version, (await agent.next('plan')).version]).toEqual(['one', 'two'])
    // A difference to rows the hub never took.
    agent.push(between(2, seen(sizes({ x: 1 })), other(2)), { base: 1 })
    await agent.ackedTo(2)
    expect(await shown(hub)).toEqual({
      'team/sizes': [['x', 1]],
      'team/other': [
        ['o', 2],
        ['p', 1],
      ],
    })
  })
})

describe('what a plan does not name', () => {
  it('is left out, and all of it where nothing is a source; without a plan all is taken', () => {
    const batch = between(1, seen(sizes({ x: 1 })), seen(sizes({}), { source: 'not a source' }))
    expect(plannedOnly(batch, undefined).batch.tables).toEqual([batch.tables?.[0]])
    expect(plannedOnly(batch, undefined).dropped).toBe(1)
    expect(plannedOnly(batch, plan('none', null, 'x', {}, { namespace: 'team' }))).toMatchObject({ dropped: 2 })
    expect(plannedOnly(batch, plan('none')).batch.tables).toBeUndefined()
    const same = plannedOnly(batch, plan('one', definition('team/sizes'))).batch.tables?.[0]
    expect(same).toBe(batch.tables?.[0])
  })
})

describe('a collector of the original', () => {
  it('has its custom resources in state, by the definition of the plan, and no others', async () => {
    await using hub = await aHub()
    hub.plans.set(west, plan('one', definition('team/sizes', 'feedfeedfeedfeed')))
    await using collector = new StreamClient({ address: hub.server.address, token: 'west-token' })
    collector.send({ case: 'register', value: { clusterName: 'west', token: 'west-token', version: 'v0.9' } })
    const { metricSourcesJson } = await collector.next('config')
    expect(metricSourcesJson).toHaveLength(1)
    const tables = [seen(sizes({ 'a/x': 1, y: 'big' })), seen(sizes({}), { source: 'team/other' })]
    const batch = aBatch(west, 1, [complete('node', aNode('n1'))], { tables })
    const value = { ...originalFromBatch(batch), batchId: 'a', collectedAt: timestampFromMs(Date.now()) }
    collector.send({ case: 'metrics', value })
    expect(await collector.next('ack')).toMatchObject({ batchId: 'a', success: true })
    expect(await shown(hub)).toEqual({
      'team/sizes': [
        ['y', 'big'],
        ['x', 1],
      ],
    })
    expect(hub.state.cluster('west')?.tables.get('team/sizes')).toMatchObject({
      hash: 'feedfeedfeedfeed',
      durationMs: 7,
      aggregations: { total: 2 },
      freshness: { source: 'push' },
    })
    hub.plans.set(west, plan('two'))
    expect((await collector.next('config')).metricSourcesJson).toEqual([])
    collector.send({ case: 'metrics', value: { ...value, batchId: 'b' } })
    expect(await collector.next('ack')).toMatchObject({ batchId: 'b', success: true })
  })
})
