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
    ['node.ready', { node: 'n1' }, 'healthy', 'node n1 is ready again'],
  ] as const)('%s %j', (type, data, need, text) => expect(told(type, data)).toMatchObject({ need, text }))

  it('tells what it does not know by its name and facts', () => {
    expect(told('comet.seen', { tail: 2 })).toMatchObject({ need: 'unknown', text: 'comet.seen: {"tail":2}' })
    expect(told('comet.seen', null).text).toBe('comet.seen')
  })
})
