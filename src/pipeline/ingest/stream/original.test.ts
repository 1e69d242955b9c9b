import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import type { Plan } from '#model'
import { originalFromBatch } from '#wire'
import { aBatch, aNode, complete, west } from '../../state/test/fleet-words.ts'
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
