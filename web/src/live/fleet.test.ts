import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aCluster } from '../../testing/worlds.ts'
import type { ClusterView, StreamChange, StreamMessage } from '../contract.ts'
import { applyMessage, emptyFleet, type Fleet, maxEvents, newestFirst } from './fleet.ts'

const now = Date.UTC(2026, 0, 1)
const template = aCluster('template', now).view

/** A fleet as data: cluster → its marker. */
type World = Record<string, string>
const names = fc.constantFrom('a', 'b', 'c', 'ab')
const world: fc.Arbitrary<World> = fc.dictionary(names, fc.string({ maxLength: 3 }))

const clusterOf = (name: string, mark: string): ClusterView => ({ ...template, name, message: mark })

const snapshotOf = (fleet: World): StreamMessage => ({
  kind: 'snapshot',
  now,
  clusters: Object.entries(fleet).map(([name, mark]) => clusterOf(name, mark)),
  rows: [],
})

function changesBetween(before: World, after: World): StreamChange[] {
  const changes: StreamChange[] = []
  for (const name of Object.keys(before))
    if (after[name] === undefined) changes.push({ op: 'remove', type: 'cluster', cluster: name })
  for (const [name, mark] of Object.entries(after))
    if (before[name] !== mark) changes.push({ op: 'put', type: 'cluster', view: clusterOf(name, mark) })
  return changes
}

const plain = ({ clusters }: Fleet) => [...clusters].sort()

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
    const first = applyMessage(emptyFleet, snapshotOf({ a: '', b: '' }))
    const before = structuredClone(plain(first))
    const second = applyMessage(first, {
      kind: 'change',
      now,
      changes: [{ op: 'put', type: 'cluster', view: clusterOf('a', 'new') }],
    })
    expect(plain(first)).toEqual(before)
    expect(second.clusters.get('b')).toBe(first.clusters.get('b'))
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
    const before = applyMessage(applyMessage(emptyFleet, snapshotOf({ a: '', b: '' })), {
      kind: 'change',
      now,
      changes: [{ op: 'event', type: 'event', view: event('b') }],
    })
    const told = applyMessage(before, { kind: 'access', reason: 'policies', now })
    expect([told.clusters.size, told.epoch]).toEqual([2, 0])
    const after = applyMessage(told, snapshotOf({ b: '' }))
    expect(after).toMatchObject({ epoch: 1, isOutdated: false, events: [] })
    expect([...after.clusters.keys()]).toEqual(['b'])
  })

  it.each(['change', 'snapshot'])('forgets the events of a cluster that a %s takes away', (kind) => {
    const event = (cluster: string) => ({ type: 't', cluster, at: now, data: null })
    const fleet = applyMessage(applyMessage(emptyFleet, snapshotOf({ a: '', b: '' })), {
      kind: 'change',
      now,
      changes: [
        { op: 'event', type: 'event', view: event('a') },
        { op: 'event', type: 'event', view: event('b') },
      ],
    })
    const after = applyMessage(
      fleet,
      kind === 'change'
        ? { kind, now, changes: [{ op: 'remove', type: 'cluster', cluster: 'a' }] }
        : snapshotOf({ b: '' }),
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
