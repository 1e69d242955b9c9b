import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { AgentFacts, Batch, Change, ClusterState, Health, Loss, NodeSnapshot, Part } from '#model'
import { applyRecord, EVENTS_KEPT, HEARTBEATS_KEPT } from './fleet.ts'
import { FleetMemory } from './memory.ts'
import { changedFields, decodeCluster } from './stored.ts'
import { StoredRows } from './stored-rows.ts'
import {
  aBatch,
  aCluster,
  aClusterOperator,
  aNode,
  anAgent,
  anOperator,
  batchRecord,
  complete,
  connected,
  east,
  failed,
  removed,
  T0,
  west,
} from './test/fleet-words.ts'
import type { StateRecord } from './types.ts'

/** A cluster after these rounds, and what the last of them told. */
function afterRounds(...rounds: (Part[] | StateRecord)[]): {
  state: ClusterState
  changes: readonly Change[]
  told: string[]
} {
  let state = applyRecord(undefined, connected(west), 1).next
  let changes: readonly Change[] = []
  for (const [i, round] of rounds.entries()) {
    const record = Array.isArray(round) ? batchRecord(aBatch(west, i + 1, round)) : round
    const applied = applyRecord(state, record, i + 2)
    state = applied.next
    changes = applied.changes
  }
  const told = changes.flatMap((change) => (change.kind === 'event' ? [change.event.type] : []))
  return { state: state as ClusterState, changes, told }
}
const changed = (put: NodeSnapshot[], gone: string[] = []): Part => ({
  type: 'node',
  collector: 'test',
  durationMs: 1,
  outcome: 'changed',
  put,
  removed: gone,
})
const pushed = (origin: string, sequence: number, parts: Part[], more: Partial<Batch> = {}): StateRecord => ({
  kind: 'batch',
  batch: aBatch(west, sequence, parts, { origin, source: 'push', ...more }),
  receivedAt: T0 + sequence * 30_000 + 20,
})
const agentRecord = (more: Partial<AgentFacts> = {}): StateRecord => ({
  kind: 'agent',
  cluster: west,
  agent: anAgent(more),
  at: T0,
})
const lostRecord = (more: Partial<Loss> = {}): StateRecord => ({
  kind: 'lost',
  cluster: west,
  loss: {
    origin: 'a',
    sequence: 9,
    lost: [[2, 3]],
    from: T0,
    to: T0 + 30_000,
    cause: 'dropped',
    count: 2,
    keptEveryMs: 0,
    ...more,
  },
  at: T0,
})
const healthy = [complete('node', aNode('n1'), aNode('n2'), aNode('n3'))]

describe('health', () => {
  const cp = (name: string, changes = {}) => aNode(name, { roles: ['control-plane'], ...changes })
  const down = { ready: 'notReady' as const }
  const cases: [string, Part[], Health, string[]][] = [
    ['all nodes ready', healthy, 'healthy', []],
    ['one of two nodes not ready', [complete('node', aNode('a', down), aNode('b'))], 'degraded', ['nodes_not_ready']],
    [
      'a node whose readiness is unknown',
      [complete('node', aNode('a', { ready: 'unknown' }), aNode('b'))],
      'degraded',
      ['nodes_not_ready'],
    ],
    ['no node ready', [complete('node', aNode('a', down))], 'unhealthy', ['all_nodes_not_ready']],
    [
      'no control-plane node ready',
      [complete('node', cp('a', down), aNode('b'))],
      'unhealthy',
      ['control_plane_not_ready'],
    ],
    [
      'one of two control-plane nodes not ready',
      [complete('node', cp('a', down), cp('b'))],
      'degraded',
      ['nodes_not_ready'],
    ],
    ['a cordoned node', [complete('node', aNode('a', { unschedulable: true }))], 'healthy', []],
    ['no node at all', [complete('node')], 'degraded', ['no_nodes']],
    ['nodes forbidden', [failed('node', 'forbidden')], 'unhealthy', ['nodes_forbidden']],
    ['nodes unreachable', [failed('node', 'unreachable')], 'unhealthy', ['nodes_unreachable']],
    ['nodes never asked for', [complete('operator')], 'unknown', []],
    [
      'a degraded cluster operator',
      [...healthy, complete('clusterOperator', aClusterOperator('dns', { degraded: true }))],
      'degraded',
      ['cluster_operators_degraded'],
    ],
    [
      'an unavailable cluster operator',
      [...healthy, complete('clusterOperator', aClusterOperator('dns', { available: false }))],
      'degraded',
      ['cluster_operators_unavailable'],
    ],
    [
      'a failed operator',
      [...healthy, complete('operator', anOperator('x.v1', { status: 'Failed' }))],
      'degraded',
      ['operators_failed'],
    ],
    ['operators forbidden', [...healthy, failed('operator', 'forbidden')], 'healthy', ['operator_forbidden']],
    ['namespaces unreachable', [...healthy, failed('namespace', 'unreachable')], 'healthy', ['namespace_unreachable']],
    ['operators not served', [...healthy, failed('operator', 'absent')], 'healthy', []],
  ]
  it.each(cases)('%s', (_, parts, health, codes) => {
    const { status } = afterRounds(parts).state
    expect({ health: status.health, codes: status.reasons.map(({ code }) => code) }).toEqual({ health, codes })
    expect(status.message).not.toBe('')
  })

  it('names what may not be read as people call it', () => {
    const { status } = afterRounds([...healthy, failed('podSummary', 'forbidden')]).state
    expect(status.message).toContain('; pods may not be read: ')
  })

  it('is unhealthy with the reason when the round failed as a whole, and healthy again after it', () => {
    const failure = { code: 'unauthorized', message: 'the token has expired' }
    const broken = afterRounds(healthy, batchRecord(aBatch(west, 2, [], { failure })))
    expect(broken.state.status).toMatchObject({
      health: 'unhealthy',
      message: 'the token has expired',
      reasons: [failure],
    })
    expect(broken.state.parts.node?.items.size).toBe(3)
    expect(broken.state.status.lastSyncAt).toBeLessThan(broken.state.status.checkedAt as number)
    expect(afterRounds(healthy, batchRecord(aBatch(west, 2, [], { failure })), healthy).state.status.health).toBe(
      'healthy',
    )
  })

  it('says of what it never read that the cluster was out of reach, and takes it back with the first read', () => {
    const failure = { code: 'kube_unreachable', message: 'nothing listens there' }
    const round = batchRecord(aBatch(west, 1, [], { failure }))
    const never = afterRounds(round).state
    expect(never.parts.node).toMatchObject({ outcome: 'unreachable', ...failure, freshness: null })
    expect(never.parts.operator).toMatchObject({ outcome: 'unreachable' })
    const read = afterRounds(round, [...healthy, failed('operator', 'absent')]).state
    expect(read.parts.node).toMatchObject({ outcome: 'complete', message: '' })
    expect(read.parts.operator).toMatchObject({ outcome: 'absent' })
    const later = afterRounds(
      [...healthy, failed('operator', 'absent')],
      batchRecord(aBatch(west, 2, [], { failure })),
    ).state
    expect(later.parts.node).toMatchObject({ outcome: 'complete' })
    expect(later.parts.operator).toMatchObject({ outcome: 'absent' })
  })

  it('counts nothing of what the cluster no longer serves', () => {
    const trouble = complete('clusterOperator', aClusterOperator('dns', { degraded: true }))
    expect(afterRounds([...healthy, trouble], [failed('clusterOperator', 'absent')]).state.status.health).toBe(
      'healthy',
    )
  })

  it('names three and counts the rest', () => {
    const nodes = ['e', 'd', 'c', 'b', 'a'].map((name) => aNode(name, down))
    expect(afterRounds([complete('node', ...nodes, aNode('up'))]).state.status.message).toBe(
      '5 of 6 nodes not ready: a, b, c and 2 more',
    )
  })
})

describe('events', () => {
  const up = aNode('a')
  const cases: [string, Part[], Part[], string[]][] = [
    ['the same again', [complete('node', up)], [complete('node', { ...up })], []],
    ['a node that goes', [complete('node', up, aNode('b'))], [complete('node', up)], ['node.removed']],
    ['a node that comes', [complete('node', up)], [complete('node', up, aNode('b'))], ['node.added']],
    [
      'a node that is cordoned',
      [complete('node', up)],
      [complete('node', aNode('a', { unschedulable: true }))],
      ['node.cordoned'],
    ],
    [
      'a node no longer cordoned',
      [complete('node', aNode('a', { unschedulable: true }))],
      [complete('node', up)],
      ['node.uncordoned'],
    ],
    [
      'a node that falls',
      [complete('node', up, aNode('b'))],
      [complete('node', up, aNode('b', { ready: 'notReady' }))],
      ['node.not_ready', 'cluster.health', 'cluster.reconciled'],
    ],
    [
      'a node that is back',
      [complete('node', up, aNode('b', { ready: 'notReady' }))],
      [complete('node', up, aNode('b'))],
      ['node.ready', 'cluster.health', 'cluster.reconciled'],
    ],
    [
      'a node with another count of pods',
      [complete('node', up)],
      [complete('node', aNode('a', { imagesCount: 13 }))],
      [],
    ],
    [
      'a new version',
      [complete('cluster', aCluster())],
      [complete('cluster', aCluster({ version: 'v1.32.0' }))],
      ['cluster.version'],
    ],
    [
      'an operator that fails',
      [complete('operator', anOperator('x'))],
      [complete('operator', anOperator('x', { status: 'Failed' }))],
      ['operator.failed'],
    ],
    ['an operator that is installed', [complete('operator')], [complete('operator', anOperator('x'))], []],
    [
      'a cluster operator in trouble',
      [complete('clusterOperator', aClusterOperator('x'))],
      [complete('clusterOperator', aClusterOperator('x', { degraded: true }))],
      ['cluster_operator.degraded'],
    ],
    [
      'a cluster operator out of it',
      [complete('clusterOperator', aClusterOperator('x', { available: false }))],
      [complete('clusterOperator', aClusterOperator('x'))],
      ['cluster_operator.recovered'],
    ],
    [
      'nodes that cannot be read',
      [complete('node', up)],
      [failed('node', 'unreachable')],
      ['cluster.health', 'cluster.reconciled'],
    ],
  ]
  it.each(cases)('%s', (_, first, second, types) => {
    expect(afterRounds(first, second).told).toEqual(types)
  })

  it('tells of a recovered operator also when it went over other phases', () => {
    const phase = (status: string) => [...healthy, complete('operator', anOperator('x', { status }))]
    expect(afterRounds(phase('Failed'), phase('Pending'), phase('Installing'), phase('Succeeded')).told).not.toContain(
      'operator.recovered',
    )
    const path = afterRounds(phase('Succeeded'), phase('Failed'), phase('Pending'), phase('Succeeded'))
    expect(path.told).toContain('operator.recovered')
    expect(afterRounds(phase('Succeeded'), phase('Pending'), phase('Succeeded')).told).toEqual([])
  })

  it('tells nothing of single things at the first read', () => {
    expect(afterRounds(healthy).told).toEqual(['cluster.health', 'cluster.reconciled'])
  })

  it('says what changed, from what, to what', () => {
    const { state } = afterRounds(healthy, [
      complete('node', aNode('n1', { ready: 'notReady' }), aNode('n2'), aNode('n3')),
    ])
    expect(state.events.slice(0, 3)).toMatchObject([
      { type: 'cluster.reconciled', data: { health: 'degraded', display_name: 'West' } },
      { type: 'cluster.health', data: { from: 'healthy', to: 'degraded', message: '1 of 3 nodes not ready: n1' } },
      { type: 'node.not_ready', data: { node: 'n1' } },
    ])
  })

  it('remembers a bounded number, newest first', () => {
    const rounds = Array.from({ length: 80 }, (_, i) => [
      complete('node', aNode('a', { ready: i % 2 ? 'ready' : 'notReady' })),
    ])
    const { state } = afterRounds(...rounds)
    expect(state.events).toHaveLength(EVENTS_KEPT)
    expect(state.heartbeats).toHaveLength(HEARTBEATS_KEPT)
    const times = state.events.map(({ at }) => at)
    expect(times).toEqual([...times].sort((a, b) => b - a))
    const beats = state.heartbeats.map(({ at }) => at)
    expect(beats).toEqual([...beats].sort((a, b) => a - b))
  })

  it('keeps the word on health when one round tells more than the list holds', () => {
    const many = Array.from({ length: 300 }, (_, i) => aNode(`n${i}`))
    const { state } = afterRounds(
      [complete('node', ...many)],
      [complete('node', ...many.map((node) => ({ ...node, ready: 'notReady' as const })))],
    )
    expect(state.events).toHaveLength(EVENTS_KEPT)
    expect(state.events[1]?.type).toBe('cluster.health')
  })
})

describe('what does not change', () => {
  it('keeps its identity, so that a reader need not compare', () => {
    const first = afterRounds(healthy).state
    const second = afterRounds(healthy, [
      complete('node', aNode('n1'), aNode('n2', { imagesCount: 1 }), aNode('n3')),
    ]).state
    expect(second.parts.node?.items).not.toBe(first.parts.node?.items)
    const again = applyRecord(
      first,
      batchRecord(aBatch(west, 2, [complete('node', aNode('n1'), aNode('n2'), aNode('n3'))])),
      9,
    )
    expect(again.next?.parts.node?.items).toBe(first.parts.node?.items)
    expect(again.next?.parts.node?.freshness).not.toEqual(first.parts.node?.freshness)
    expect(again.changes.map(({ kind }) => kind)).toEqual(['cluster'])
  })

  it('makes no change: a connection declared again, a cluster removed twice, an old batch', () => {
    const { state } = afterRounds(healthy)
    expect(applyRecord(state, connected(west), 9)).toEqual({ next: state, changes: [] })
    expect(applyRecord(undefined, removed(west), 9)).toEqual({ next: undefined, changes: [] })
    expect(applyRecord(state, batchRecord(aBatch(west, 1, [complete('node')])), 9)).toEqual({
      next: state,
      changes: [],
    })
  })
})

describe('a batch of an agent', () => {
  it('told as differences gives what it gives whole, with the identity of what did not change', () => {
    const nodes = fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.nat(2), { maxKeys: 4 })
    fc.assert(
      fc.property(fc.array(nodes, { minLength: 1, maxLength: 8 }), (rounds) => {
        const itemsOf = (round: Record<string, number>) =>
          Object.entries(round).map(([name, imagesCount]) => aNode(name, { imagesCount }))
        let whole = applyRecord(undefined, connected(west), 1).next
        let told = whole
        for (const [i, round] of rounds.entries()) {
          const before = rounds[i - 1]
          const sequence = i + 1
          whole = applyRecord(whole, pushed('a', sequence, [complete('node', ...itemsOf(round))]), i + 2).next
          const put = itemsOf(round).filter(({ name, imagesCount }) => before?.[name] !== imagesCount)
          const gone = Object.keys(before ?? {}).filter((name) => !(name in round))
          const record = before
            ? pushed('a', sequence, [changed(put, gone)], { base: sequence - 1 })
            : pushed('a', sequence, [complete('node', ...itemsOf(round))])
          const previous = told?.parts.node
          const applied = applyRecord(told, record, i + 2)
          told = applied.next
          // Items that came later stand last, so that what one round tells may come in another order.
          const sorted = (state: ClusterState | undefined) => ({
            ...state,
            parts: {},
            events: state?.events.map((event) => JSON.stringify(event)).sort(),
          })
          expect(sorted(told)).toEqual(sorted(whole))
          expect(told?.parts.node).toEqual(whole?.parts.node)
          if (before && put.length + gone.length === 0) expect(told?.parts.node?.items).toBe(previous?.items)
          for (const [name, item] of told?.parts.node?.items ?? []) {
            if (before?.[name] === round[name]) expect(item).toBe(previous?.items.get(name))
          }
        }
      }),
    )
  })

  it('that is a difference to something else is left out as a whole', () => {
    const { state } = afterRounds(pushed('a', 4, healthy))
    for (const [origin, base] of [
      ['a', 3],
      ['b', 4],
      ['a', 5],
    ] as const) {
      const parts = [changed([], ['n1']), complete('operator', anOperator('x'))]
      expect(applyRecord(state, pushed(origin, 6, parts, { base }), 9)).toEqual({ next: state, changes: [] })
    }
    const never = { ...changed([]), type: 'namespace' } as Part
    expect(applyRecord(state, pushed('a', 5, [never], { base: 4 }), 9).changes).toEqual([])
    expect(applyRecord(undefined, pushed('a', 5, [changed([])], { base: 4 }), 9)).toEqual({
      next: undefined,
      changes: [],
    })
  })

  it('that is older than a batch of its own or of another origin changes nothing', () => {
    const { state } = afterRounds(pushed('a', 4, healthy))
    for (const record of [
      pushed('a', 3, healthy),
      pushed('b', 99, healthy, { collectedAt: T0 + 3 * 30_000 }),
      batchRecord(aBatch(west, 2, healthy)),
    ]) {
      expect(applyRecord(state, record, 9)).toEqual({ next: state, changes: [] })
    }
    const { next } = applyRecord(state, batchRecord(aBatch(west, 1, healthy, { collectedAt: T0 + 5 * 30_000 })), 9)
    expect([next?.origin, next?.sequence, next?.source]).toEqual(['', 1, 'pull'])
  })
})

describe('deployments that are counted and not named', () => {
  const counted = (sequence: number, deploymentCount?: number, parts: Part[] = [complete('node', aNode('n1'))]) =>
    batchRecord(aBatch(west, sequence, parts, deploymentCount === undefined ? {} : { deploymentCount }))

  it('stay until they are counted anew, or read one by one', () => {
    expect(afterRounds(counted(1, 5)).state.deploymentCount).toBe(5)
    expect(afterRounds(counted(1, 5), counted(2)).state.deploymentCount).toBe(5)
    expect(afterRounds(counted(1, 5), counted(2, 6)).state.deploymentCount).toBe(6)
    const read = complete('deployment')
    expect(afterRounds(counted(1, 5), counted(2, undefined, [read])).state).not.toHaveProperty('deploymentCount')
    expect(
      afterRounds(counted(1, 5), counted(2, undefined, [failed('deployment', 'forbidden')])).state.deploymentCount,
    ).toBe(5)
    expect(afterRounds(counted(1, undefined, [read]), counted(2, 5)).state.deploymentCount).toBe(5)
  })

  it('are kept by a store', () => {
    const { state } = afterRounds(counted(1, 5))
    const fields = Object.fromEntries(
      [...changedFields(undefined, state, new StoredRows())].flatMap(([f, t]) => (t ? [[f, t]] : [])),
    )
    expect(decodeCluster(fields, new StoredRows())?.deploymentCount).toBe(5)
  })
})

describe('an agent', () => {
  it('tells when it comes and when it goes, and nothing in between', () => {
    const { state } = afterRounds(healthy)
    const come = applyRecord(state, agentRecord(), 8)
    const beats = applyRecord(come.next, agentRecord({ heartbeatAt: T0 + 9 }), 9)
    const gone = applyRecord(beats.next, agentRecord({ connected: false, reason: 'it was revoked' }), 10)
    const told = (changes: readonly Change[]) => changes.flatMap((one) => (one.kind === 'event' ? [one.event] : []))
    expect(told(come.changes)).toMatchObject([{ type: 'agent.connected', data: { version: '1.0.0', method: 'token' } }])
    expect(beats.changes).toMatchObject([{ kind: 'cluster', op: 'put' }])
    expect(told(gone.changes)).toMatchObject([{ type: 'agent.disconnected', data: { reason: 'it was revoked' } }])
    expect(gone.next?.parts).toBe(state.parts)
    expect(gone.next?.status).toBe(state.status)
    expect(gone.next?.heartbeats).toBe(state.heartbeats)
  })

  it('makes no change when it says the same, or speaks of a cluster nobody knows', () => {
    const { state } = afterRounds(healthy, agentRecord())
    expect(applyRecord(state, agentRecord(), 9)).toEqual({ next: state, changes: [] })
    expect(applyRecord(undefined, agentRecord(), 9)).toEqual({ next: undefined, changes: [] })
  })
})

describe('a declared loss', () => {
  it('is told once, with its span and cause, and touches nothing else', () => {
    const { state } = afterRounds(healthy)
    const first = applyRecord(state, lostRecord(), 8)
    expect(first.next?.events[0]).toMatchObject({
      type: 'collection.lost',
      data: { from: T0, to: T0 + 30_000, cause: 'dropped', count: 2, kept_every_ms: 0 },
    })
    expect(first.next?.parts).toBe(state.parts)
    expect(applyRecord(first.next, lostRecord(), 9)).toEqual({ next: first.next, changes: [] })
    expect(applyRecord(state, lostRecord({ count: 0 }), 9).changes).toEqual([])
  })
})

describe('what a former version stored', () => {
  it('is read as pulled by the hub itself, without an agent', () => {
    const { state } = afterRounds(healthy)
    const fields = Object.fromEntries(changedFields(undefined, state, new StoredRows()))
    const { origin: _origin, agent: _agent, ...meta } = JSON.parse(fields.meta as string) as ClusterState
    expect(decodeCluster({ ...fields, meta: JSON.stringify(meta) }, new StoredRows())).toEqual(state)
  })
})

describe('any sequence of records', () => {
  const names = fc.constantFrom('a', 'b', 'c')
  const part = fc.oneof(
    fc.uniqueArray(names).map((list) => complete('node', ...list.map((name) => aNode(name)))),
    fc
      .uniqueArray(names)
      .map((list) => complete('operator', ...list.map((name) => anOperator(name, { status: 'Failed' })))),
    fc.constantFrom('forbidden', 'unreachable', 'absent').map((outcome) => failed('node', outcome as 'forbidden')),
  )
  const record: fc.Arbitrary<StateRecord> = fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .tuple(fc.constantFrom(west, east), fc.integer({ min: 1, max: 12 }), part)
        .map(([cluster, sequence, one]) => batchRecord(aBatch(cluster, sequence, [one]))),
    },
    { weight: 1, arbitrary: fc.constantFrom(west, east).map((cluster) => connected(cluster)) },
    { weight: 1, arbitrary: fc.constantFrom(west, east).map((cluster) => removed(cluster)) },
  )
  const difference = fc.tuple(fc.uniqueArray(names), fc.uniqueArray(names)).map(([put, removed]) =>
    changed(
      put.map((name) => aNode(name, { imagesCount: put.length })),
      removed,
    ),
  )
  const anyRecord: fc.Arbitrary<StateRecord> = fc.oneof(
    { weight: 4, arbitrary: record },
    {
      weight: 4,
      arbitrary: fc
        .tuple(fc.constantFrom('a', 'b'), fc.integer({ min: 2, max: 8 }), fc.oneof(part, difference))
        .map(([origin, sequence, one]) => pushed(origin, sequence, [one], { base: sequence - 1 })),
    },
    { weight: 1, arbitrary: fc.boolean().map((isThere) => agentRecord({ connected: isThere })) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }).map((sequence) => lostRecord({ sequence })) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom('', 'a', 'b'), fc.integer({ min: 0, max: 8 }), fc.boolean())
        .map(([origin, sequence, isUnread]): StateRecord => {
          const because = isUnread ? { because: { code: 'agent_away', message: 'the agent is away' } } : {}
          return { kind: 'unread', cluster: west, after: { origin, sequence }, at: T0 + 90_000, ...because }
        }),
    },
  )
  const memoryAfter = (records: readonly StateRecord[], groups = records.length) => {
    const memory = new FleetMemory(0)
    const size = Math.max(1, Math.ceil(records.length / Math.max(1, groups)))
    for (let i = 0; i < records.length; i += size) memory.keep(memory.draft(records.slice(i, i + size)))
    return memory
  }

  it('says that nobody reads a cluster until the next batch of its agent, and takes nothing else of it', () =>
    fc.assert(
      fc.property(fc.array(anyRecord, { maxLength: 20 }), (records) => {
        const memory = memoryAfter(records)
        const before = memory.cluster(west)
        const { origin = '', sequence = 0 } = before ?? {}
        const because = { code: 'agent_away', message: 'the agent is away' }
        const unread: StateRecord = {
          kind: 'unread',
          cluster: west,
          after: { origin, sequence },
          because,
          at: T0 + 99_000,
        }
        memory.keep(memory.draft([unread]))
        const now = memory.cluster(west)
        if (!before) {
          expect(now).toBeUndefined()
          return
        }
        const { before: said, ...status } = now!.status
        expect(status).toMatchObject({ health: 'unhealthy', reasons: [because], checkedAt: T0 + 99_000 })
        expect(said).toEqual(before.status.before ?? before.status)
        const { parts, tables, agent } = before
        expect(now).toMatchObject({ parts, tables, agent, origin, sequence })
        const { because: _, ...back } = unread
        memory.keep(memory.draft([back as StateRecord]))
        expect(memory.cluster(west)?.status).toEqual(said)
        memory.keep(memory.draft([unread, pushed('a', 99, [], {}), { ...unread, at: T0 + 100_000 }]))
        const isTaken = memory.cluster(west)?.sequence === 99
        if (isTaken) expect(memory.cluster(west)?.status).not.toHaveProperty('before')
      }),
    ))

  it('gives the same however it is grouped', () =>
    fc.assert(
      fc.property(fc.array(anyRecord, { maxLength: 20 }), fc.integer({ min: 1, max: 5 }), (records, groups) => {
        const one = memoryAfter(records)
        const other = memoryAfter(records, groups)
        expect(other.clusters()).toEqual(one.clusters())
        expect(other.version()).toBe(one.version())
      }),
    ))

  it('never goes back in sequence, and a replay of batches changes nothing', () =>
    fc.assert(
      fc.property(fc.array(record, { maxLength: 20 }), (records) => {
        const batches = records.filter(({ kind }) => kind === 'batch')
        const memory = memoryAfter(batches)
        const before = memory.clusters()
        expect(memory.draft(batches).changes).toEqual([])
        expect(memory.clusters()).toBe(before)
        for (const state of before) {
          const sequences = batches.flatMap((r) =>
            r.kind === 'batch' && r.batch.cluster === state.name ? [r.batch.sequence] : [],
          )
          expect(state.sequence).toBe(Math.max(...sequences))
        }
      }),
    ))

  it('tells changes from which a follower builds the same rows', () =>
    fc.assert(
      fc.property(fc.array(anyRecord, { maxLength: 20 }), (records) => {
        const memory = new FleetMemory(0)
        const rows = new Set<string>()
        for (const one of records) {
          const draft = memory.draft([one])
          for (const change of draft.changes) {
            if (change.kind === 'snapshot') {
              const row = `${change.cluster}/${change.type}/${change.name}`
              if (change.op === 'put') rows.add(row)
              else rows.delete(row)
            }
            if (change.kind === 'cluster' && change.op === 'remove') {
              for (const row of rows) if (row.startsWith(`${change.cluster}/`)) rows.delete(row)
            }
          }
          memory.keep(draft)
        }
        const held = memory
          .clusters()
          .flatMap((state) =>
            Object.entries(state.parts).flatMap(([type, { items }]) =>
              [...items.keys()].map((name) => `${state.name}/${type}/${name}`),
            ),
          )
        expect([...rows].sort()).toEqual(held.sort())
      }),
    ))

  it('is the same after it was written and read back, whole or by differences', () =>
    fc.assert(
      fc.property(fc.array(anyRecord, { maxLength: 20 }), (records) => {
        let stored: Record<string, string | undefined> = {}
        let before: ClusterState | undefined
        const rows = new StoredRows()
        const memory = new FleetMemory(0)
        for (const one of records) {
          memory.keep(memory.draft([one]))
          const state = memory.cluster('west')
          stored = state ? { ...(before ? stored : {}), ...Object.fromEntries(changedFields(before, state, rows)) } : {}
          before = state
          expect(decodeCluster(kept(stored), new StoredRows())).toEqual(state)
        }
      }),
    ))
})

/** What a store holds after these fields: those without a text are gone. */
const kept = (fields: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])))
