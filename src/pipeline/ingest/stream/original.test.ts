import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
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
})
