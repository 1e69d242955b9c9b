import { describe, expect, it } from 'vitest'
import { eventLine } from './events.ts'

const told = (type: string, data: Record<string, unknown> | null) => eventLine({ type, cluster: 'west', at: 1, data })

describe('an event in words', () => {
  it.each([
    ['agent.connected', { version: '1.0', tls: true }, 'healthy', 'its agent connected'],
    ['agent.connected', { version: '1.0', tls: false }, 'degraded', 'its agent connected, without encryption'],
    ['agent.disconnected', { reason: 'revoked' }, 'degraded', 'its agent is away: revoked'],
    [
      'cluster.health',
      { from: 'healthy', to: 'degraded', message: 'a node' },
      'degraded',
      'turned degraded, was healthy: a node',
    ],
    [
      'collection.lost',
      { cause: 'damaged', from: 0, to: 0, count: 1, kept_every_ms: 0 },
      'degraded',
      'lost 1 batch for good: damaged on the disk of the agent',
    ],
    ['node.ready', { node: 'n1' }, 'healthy', 'node n1 is ready again'],
  ] as const)('%s %j', (type, data, need, text) => expect(told(type, data)).toMatchObject({ need, text }))

  it('says why in words, and keeps the request that was tried for whoever mends it', () => {
    const message = 'connection test failed: GET /api/v1/namespaces: nothing listens at https://west:6443'
    expect(told('cluster.health', { from: 'healthy', to: 'unhealthy', message })).toMatchObject({
      text: 'turned unhealthy, was healthy: nothing listens at https://west:6443',
      detail: message,
    })
    expect(told('cluster.health', { from: 'healthy', to: 'degraded', message: 'a node' }).detail).toBe('')
  })

  it('says of lost batches when they were, why, and how many were kept', () => {
    const from = new Date(2026, 0, 10, 10, 0).getTime()
    const data = { cause: 'thinned', from, to: from + 1_800_000, count: 12, kept_every_ms: 300_000 }
    expect(told('collection.lost', data).text).toMatch(
      /^lost 12 batches of .*10:00 – 10:30 for good: thinned out, because the buffer .*; one per 5 min was kept$/,
    )
  })

  it('tells what it does not know by its name and facts', () => {
    expect(told('comet.seen', { tail: 2 })).toMatchObject({ need: 'unknown', text: 'comet.seen: tail 2' })
    expect(told('comet.seen', null).text).toBe('comet.seen')
  })
})
