import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aCluster, aNode } from '../../testing/worlds.ts'
import type { ClusterView, NodeView, PartView, StreamChange, StreamMessage } from '../contract.ts'
import { applyMessage, emptyFleet, type Fleet, maxEvents, newestFirst } from './fleet.ts'

const now = Date.UTC(2026, 0, 1)
const template = aCluster('template', now).view
const nodeTemplate = aNode('template', 'template', now)
const part: PartView = { outcome: 'complete', code: '', message: '', attemptedAt: now, freshness: null, count: 0 }

/** A fleet as data: cluster → its marker and its nodes with theirs. */
type World = Record<string, { mark: string; nodes: Record<string, number> }>
const names = fc.constantFrom('a', 'b', 'c', 'ab')
const world: fc.Arbitrary<World> = fc.dictionary(
  names,
  fc.record({ mark: fc.string({ maxLength: 3 }), nodes: fc.dictionary(names, fc.nat(3)) }),
)

const clusterOf = (name: string, mark: string): ClusterView => ({ ...template, name, message: mark })
const nodeOf = (cluster: string, name: string, imagesCount: number): NodeView => ({
  ...nodeTemplate,
  cluster,
  name,
  imagesCount,
})

const snapshotOf = (fleet: World): StreamMessage => ({
  kind: 'snapshot',
  now,
  clusters: Object.entries(fleet).map(([name, { mark }]) => clusterOf(name, mark)),
  rows: Object.entries(fleet).map(([cluster, { nodes }]) => ({
    type: 'node',
    cluster,
    part,
    items: Object.entries(nodes).map(([name, mark]) => nodeOf(cluster, name, mark)),
  })),
})

function changesBetween(before: World, after: World): StreamChange[] {
  const changes: StreamChange[] = []
  for (const name of Object.keys(before))
    if (!after[name]) changes.push({ op: 'remove', type: 'cluster', cluster: name })
  for (const [name, { mark, nodes }] of Object.entries(after)) {
    const was = before[name]
    if (was?.mark !== mark) changes.push({ op: 'put', type: 'cluster', view: clusterOf(name, mark) })
    changes.push({ op: 'part', type: 'node', cluster: name, part })
    for (const node of Object.keys(was?.nodes ?? {}))
      if (!(node in nodes)) changes.push({ op: 'remove', type: 'node', cluster: name, name: node })
    for (const [node, value] of Object.entries(nodes)) {
      if (was?.nodes[node] !== value)
        changes.push({ op: 'put', type: 'node', cluster: name, view: nodeOf(name, node, value) })
    }
  }
  return changes
}

const plain = ({ clusters, rows }: Fleet) => ({
  clusters: [...clusters].sort(),
  rows: [...rows]
    .map(([key, { items, part: how }]) => [key, [...items].sort(([a], [b]) => (a < b ? -1 : 1)), how])
    .sort(),
})

describe('applyMessage', () => {
  it('comes by changes to the same picture as by a new snapshot, however the changes are grouped', () =>
    fc.assert(
      fc.property(fc.array(world, { minLength: 2, maxLength: 5 }), fc.nat(4), (worlds, size) => {
        let fleet = applyMessage(emptyFleet, snapshotOf(worlds[0] ?? {}))
        for (let index = 1; index < worlds.length; index++) {
          const changes = changesBetween(worlds[index - 1] ?? {}, worlds[index] ?? {})
          for (let from = 0; from < changes.length; from += size + 1) {
            fleet = applyMessage(fleet, { kind: 'change', now, changes: changes.slice(from, from + size + 1) })
          }
        }
        const fresh = applyMessage(emptyFleet, snapshotOf(worlds.at(-1) ?? {}))
        expect(plain(fleet)).toEqual(plain(fresh))
      }),
    ))

  it('changes nothing it was given, and keeps what did not change', () => {
    const first = applyMessage(emptyFleet, snapshotOf({ a: { mark: '', nodes: { n: 1 } }, b: { mark: '', nodes: {} } }))
    const before = structuredClone(plain(first))
    const second = applyMessage(first, {
      kind: 'change',
      now,
      changes: [{ op: 'put', type: 'cluster', view: clusterOf('a', 'new') }],
    })
    expect(plain(first)).toEqual(before)
    expect(second.clusters.get('b')).toBe(first.clusters.get('b'))
    expect(second.rows).toBe(first.rows)
  })

  it('is the same after a repeat: delivery is at least once', () =>
    fc.assert(
      fc.property(world, world, (before, after) => {
        const message: StreamMessage = { kind: 'change', now, changes: changesBetween(before, after) }
        const once = applyMessage(applyMessage(emptyFleet, snapshotOf(before)), message)
        expect(plain(applyMessage(once, message))).toEqual(plain(once))
      }),
    ))

  it('keeps nothing of what was told before access changed, once the new picture is there', () => {
    const event = (cluster: string) => ({ type: 't', cluster, at: now, data: null })
    const before = applyMessage(
      applyMessage(emptyFleet, snapshotOf({ a: { mark: '', nodes: { n: 1 } }, b: { mark: '', nodes: {} } })),
      {
        kind: 'change',
        now,
        changes: [{ op: 'event', type: 'event', view: event('b') }],
      },
    )
    const told = applyMessage(before, { kind: 'access', reason: 'policies', now })
    expect([told.clusters.size, told.epoch]).toEqual([2, 0])
    const after = applyMessage(told, snapshotOf({ b: { mark: '', nodes: {} } }))
    expect(after).toMatchObject({ epoch: 1, isOutdated: false, events: [] })
    expect([...after.clusters.keys()]).toEqual(['b'])
    expect([...after.rows.keys()]).toEqual(['b/node'])
  })

  it.each(['change', 'snapshot'])('forgets the events of a cluster that a %s takes away', (kind) => {
    const event = (cluster: string) => ({ type: 't', cluster, at: now, data: null })
    const fleet = applyMessage(
      applyMessage(emptyFleet, snapshotOf({ a: { mark: '', nodes: {} }, b: { mark: '', nodes: {} } })),
      {
        kind: 'change',
        now,
        changes: [
          { op: 'event', type: 'event', view: event('a') },
          { op: 'event', type: 'event', view: event('b') },
        ],
      },
    )
    const after = applyMessage(
      fleet,
      kind === 'change'
        ? { kind, now, changes: [{ op: 'remove', type: 'cluster', cluster: 'a' }] }
        : snapshotOf({ b: { mark: '', nodes: {} } }),
    )
    expect(after.events.map(({ cluster }) => cluster)).toEqual(['b'])
    expect(after.epoch).toBe(0)
  })

  it('lets a message of a newer hub pass', () => {
    const message = { kind: 'weather', sun: true } as unknown as StreamMessage
    expect(applyMessage(emptyFleet, message)).toBe(emptyFleet)
  })
})

describe('newestFirst', () => {
  it('keeps a bounded number of events, each once', () => {
    const event = (at: number) => ({ type: 't', cluster: 'a', at, data: null })
    const many = Array.from({ length: maxEvents + 50 }, (_, at) => event(at))
    const kept = newestFirst([...many, ...many], many)
    expect(kept).toHaveLength(maxEvents)
    expect(kept[0]?.at).toBe(maxEvents + 49)
  })
})

describe('a snapshot in parts', () => {
  const items = (from: number, to: number, mark = 0) =>
    Array.from({ length: to - from }, (_, index) => nodeOf('a', `n${from + index}`, mark))
  const first = (total: number, mark = 0): StreamMessage => ({
    kind: 'snapshot',
    now,
    clusters: [clusterOf('a', '')],
    rows: [{ type: 'node', cluster: 'a', part, items: items(0, 2, mark), total }],
  })
  const more = (from: number, to: number, last: boolean, mark = 0): StreamMessage => ({
    kind: 'rows',
    type: 'node',
    cluster: 'a',
    items: items(from, to, mark),
    last,
    now,
  })
  const apply = (fleet: Fleet, ...messages: StreamMessage[]) => messages.reduce(applyMessage, fleet)
  const rowsOf = (fleet: Fleet) => fleet.rows.get('a/node')
  const marks = (fleet: Fleet) => [...(rowsOf(fleet)?.items.values() ?? [])].map((row) => (row as NodeView).imagesCount)

  it('shows what came so far, says how many there are, and ends as the whole', () => {
    const begun = apply(emptyFleet, first(5), more(2, 4, false))
    expect([rowsOf(begun)?.items.size, rowsOf(begun)?.arriving?.total]).toEqual([4, 5])
    const done = apply(begun, more(4, 5, true))
    expect([rowsOf(done)?.items.size, rowsOf(done)?.arriving]).toEqual([5, undefined])
    expect(rowsOf(apply(emptyFleet, first(2)))?.arriving).toBeUndefined()
  })
  it('keeps the rows that were whole until the new ones are', () => {
    const whole = apply(emptyFleet, first(5), more(2, 5, true))
    const again = apply(whole, first(5, 1), more(2, 4, false, 1))
    expect(marks(again)).toEqual([0, 0, 0, 0, 0])
    expect(marks(apply(again, more(4, 5, true, 1)))).toEqual([1, 1, 1, 1, 1])
  })
  it('keeps none that may no longer be shown', () => {
    const whole = apply(emptyFleet, first(5), more(2, 5, true))
    const other = apply(whole, { kind: 'access', reason: 'policies', now }, first(5, 1))
    expect(marks(other)).toEqual([1, 1])
  })
})
