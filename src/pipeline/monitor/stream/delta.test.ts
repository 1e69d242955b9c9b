import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { atOnce } from '#runtime'
import type { NodeDocument, PodDocument } from '../documents.ts'
import { Picture } from '../testing/picture.ts'
import { type Item, SentPicture } from './delta.ts'

const node = (name: string, cpu: number, more: Partial<NodeDocument> = {}): NodeDocument => ({
  name,
  ...{ cpu_usage: `${cpu * 40}m`, memory_usage: '1Gi', cpu_capacity: '4', memory_capacity: '16Gi' },
  ...{ cpu_percent: cpu, memory_percent: 6.25, disk_capacity: 0, disk_usage: 0, disk_percent: 0 },
  ...more,
})
const pod = (namespace: string, name: string, cpu: number, capacity = 4_000_000_000): PodDocument => ({
  ...{ name, namespace, node: 'n1', cpu_usage: cpu, memory_usage: 1, disk_usage: 0 },
  ...{ cpu_capacity: capacity, memory_capacity: 1000, disk_capacity: 0 },
})
/** Led on at once. */
const advanced = (sent: SentPicture, items: readonly Item[], now: number) => atOnce(sent.advance(items, now))
const exact = { points: 0, maxMs: 60_000 }

const items = fc.array(
  fc.oneof(
    fc
      .record({ at: fc.nat(3), cpu: fc.nat(3), pressure: fc.boolean(), away: fc.boolean() })
      .map(({ at, cpu, pressure, away }) =>
        node(`n${at}`, cpu, {
          ...(pressure && { conditions: [{ type: 'NotReady', status: 'True' }] }),
          ...(away && { metrics_available: false as const }),
        }),
      ),
    fc
      .record({ space: fc.nat(1), at: fc.nat(3), cpu: fc.nat(3) })
      .map(({ space, at, cpu }) => pod(`s${space}`, `p${at}`, cpu)),
  ),
  { maxLength: 12 },
)
const keyOf = (item: Item) => ('namespace' in item ? `${item.namespace}/${item.name}` : item.name)
const once = (all: readonly Item[]) => [...new Map(all.map((item) => [keyOf(item), item])).values()]
const sorted = (all: readonly Item[]) => all.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))

describe('differences', () => {
  it('lead from a snapshot to what a new one would be, whatever came and went', () =>
    fc.assert(
      fc.property(items, fc.array(items, { maxLength: 8 }), (first, steps) => {
        const sent = new SentPicture(exact)
        advanced(sent, once(first), 0)
        const held = new Picture()
        const say = (event: string, more: object) =>
          held.apply(JSON.parse(JSON.stringify({ event, data: { cluster: 'c', kind: 'all', ...more } })))
        say('snapshot', { items: [...sent.items()] })
        for (const [at, step] of steps.entries()) {
          const now = once(step)
          const delta = advanced(sent, now, at)
          if (delta) say('delta', delta)
          expect(held.items('c', 'all')).toEqual(sorted(now))
        }
      }),
    ))

  it('say the key and what changed, null for a key that went, and nothing where nothing did', () => {
    const sent = new SentPicture(exact)
    const pressed = [{ type: 'NotReady', status: 'True' }]
    advanced(sent, [node('a', 10, { conditions: pressed }), node('b', 1), pod('s', 'p', 1)], 0)
    expect(advanced(sent, [node('a', 20), node('b', 1), pod('s', 'p', 2)], 1)).toEqual({
      upsert: [
        { name: 'a', cpu_usage: '800m', cpu_percent: 20, conditions: null },
        { name: 'p', namespace: 's', cpu_usage: 2 },
      ],
      remove: [],
    })
    expect(advanced(sent, [node('a', 20), node('b', 1)], 2)).toEqual({ upsert: [], remove: ['s/p'] })
    expect(advanced(sent, [node('a', 20), node('b', 1)], 3)).toBeUndefined()
  })

  it('leave unsaid what moved within the dead band, but no longer than a minute, and nothing else', () => {
    const sent = new SentPicture({ points: 0.1, maxMs: 60_000 })
    advanced(sent, [node('a', 10), pod('s', 'p', 0), pod('s', 'q', 0, 0)], 0)
    const moved = [node('a', 10.05), pod('s', 'p', 3_900_000), pod('s', 'q', 1, 0)]
    expect(advanced(sent, moved, 1000)?.upsert).toEqual([{ name: 'q', namespace: 's', cpu_usage: 1 }])
    expect(advanced(sent, [node('a', 10.11), ...moved.slice(1)], 2000)?.upsert).toMatchObject([{ name: 'a' }])
    expect(advanced(sent, [node('a', 10.15), ...moved.slice(1)], 60_000)?.upsert).toMatchObject([{ name: 'p' }])
    expect(
      advanced(sent, [node('a', 10.15, { metrics_available: false }), ...moved.slice(1)], 60_001)?.upsert,
    ).toMatchObject([{ name: 'a', metrics_available: false }])
  })

  it('never leave a value further off than the dead band', () =>
    fc.assert(
      fc.property(fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { maxLength: 40 }), (percents) => {
        const sent = new SentPicture({ points: 0.5, maxMs: 1e9 })
        for (const [at, percent] of percents.entries()) {
          advanced(sent, [node('a', percent)], at)
          expect(Math.abs(([...sent.items()][0] as NodeDocument).cpu_percent - percent)).toBeLessThan(0.5)
        }
      }),
    ))
})
