import { describe, expect, it } from 'vitest'
import type { Batch, ClusterState, Part } from '#model'
import { applyRecord } from './fleet.ts'
import {
  aBatch,
  aNamespace,
  aNode,
  batchRecord,
  complete,
  connected,
  failed,
  seen,
  sizes,
  west,
} from './test/fleet-words.ts'

const step = (sequence: number, parts: Part[], more: Partial<Batch> = {}) =>
  batchRecord(aBatch(west, sequence, parts, { partial: true, ...more }))
const changed = (...put: ReturnType<typeof aNode>[]): Part => ({
  type: 'node',
  collector: 'nodes',
  durationMs: 0,
  outcome: 'changed',
  put,
  removed: [],
})

/** A round with two nodes, then these. */
function lookedAt(...records: ReturnType<typeof batchRecord>[]) {
  const round = batchRecord(
    aBatch(west, 1, [complete('node', aNode('a'), aNode('b')), complete('namespace', aNamespace('shop'))]),
  )
  let state: ClusterState | undefined
  let told: readonly string[] = []
  for (const [i, record] of [connected(west), round, ...records].entries()) {
    const applied = applyRecord(state, record, i + 1)
    state = applied.next
    told = applied.changes.flatMap((change) => (change.kind === 'event' ? [change.event.type] : [change.kind]))
  }
  return { state: state as ClusterState, told }
}

describe('a step between two rounds', () => {
  it('changes what it names, judges health where nodes moved, and is no heartbeat', () => {
    const before = lookedAt().state
    const { state, told } = lookedAt(step(2, [changed(aNode('b', { ready: 'notReady' }))], { base: 1 }))
    expect([...(state.parts.node?.items.values() ?? [])].map(({ ready }) => ready)).toEqual(['ready', 'notReady'])
    expect(state.parts.namespace).toEqual(before.parts.namespace)
    expect(state.status).toMatchObject({
      health: 'degraded',
      checkedAt: before.status.checkedAt,
      lastSyncAt: before.status.lastSyncAt,
    })
    expect(state.heartbeats).toEqual(before.heartbeats)
    expect(state.sequence).toBe(2)
    expect(told).toEqual(['snapshot', 'cluster', 'node.not_ready', 'cluster.health', 'cluster.reconciled'])
    const healed = lookedAt(
      step(2, [changed(aNode('b', { ready: 'notReady' }))], { base: 1 }),
      step(3, [changed(aNode('b'))], { base: 2 }),
    )
    expect(healed.state.status).toEqual(before.status)
  })

  it('leaves health as the round found it where no node moved', () => {
    const failure = { code: 'kube_timeout', message: 'slow' }
    const round = batchRecord(aBatch(west, 2, [], { failure }))
    const { state } = lookedAt(round, step(3, [complete('namespace')], { tables: [seen(sizes({ x: 1 }))] }))
    expect(state.status).toMatchObject({ health: 'unhealthy', message: 'slow' })
    expect(state.parts.namespace?.items.size).toBe(0)
    expect(state.tables.get('team/sizes')?.rows.size).toBe(1)
  })

  it('is judged where nodes can be read no more, or again', () => {
    const lost = lookedAt(step(2, [failed('node', 'forbidden')]))
    expect(lost.state.status).toMatchObject({ health: 'unhealthy', reasons: [{ code: 'nodes_forbidden' }] })
    expect(
      lookedAt(step(2, [failed('node', 'forbidden')]), step(3, [complete('node', aNode('a'))])).state.status.health,
    ).toBe('healthy')
  })

  it('says nothing before the first round, as nobody looked', () => {
    const { next } = applyRecord(undefined, step(1, [complete('node', aNode('a'))]), 1)
    expect(next?.status).toMatchObject({ health: 'unknown', checkedAt: null })
    expect(next?.parts.node?.items.size).toBe(1)
  })

  it('takes back that nobody reads the cluster', () => {
    const after1 = { origin: '', sequence: 1 }
    const because = { code: 'agent_away', message: 'away' }
    const unread = { kind: 'unread', cluster: west, after: after1, because, at: 1 } as const
    expect(lookedAt(unread as never).state.status.health).toBe('unhealthy')
    const { state } = lookedAt(
      unread as never,
      step(2, [changed(aNode('b', { ready: 'notReady' }))], { base: 1, source: 'push' }),
    )
    expect(state.status).toMatchObject({ health: 'degraded' })
    expect(state.status.before).toBeUndefined()
  })

  it.each([
    ['another batch than the newest', { base: 7 }],
    ['a batch of another origin', { base: 1, origin: 'other', collectedAt: Date.UTC(2027, 0, 1) }],
  ])('changes nothing where it is a difference to %s', (_, more) => {
    const before = lookedAt().state
    expect(lookedAt(step(9, [changed(aNode('b', { ready: 'notReady' }))], more)).state).toEqual(before)
  })
})
