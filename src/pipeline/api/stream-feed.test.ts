import { describe, expect, it } from 'vitest'
import { MemoryPolicies, openAccess } from '#access'
import type { ClusterState, JsonValue } from '#model'
import type { StateReader } from '#state'
import { ClusterSets } from './cluster-sets.ts'
import { FleetHistory } from './stream-history.ts'
import { parseRowsAsked } from './stream-query.ts'
import { RowsFeed } from './stream-rows.ts'
import { aRow, aSource, GivenCatalog, seenBy } from './test/sources.ts'
import { ManualClock, principalOf } from './test/stream-fleet.ts'
import { connection } from './test/world.ts'
import { nobody, Views } from './views.ts'
import { VisibleTypes } from './visible-types.ts'

const source = aSource('pvcx')

/** One cluster that an administrator looks at. */
async function aFeed(query: string) {
  const clock = new ManualClock()
  let west: ClusterState = { ...nobody('west'), connection: connection() }
  let version = 0
  const state: StateReader = {
    availability: () => ({ state: 'available' }),
    version: () => version,
    clusters: () => [west],
    cluster: (name) => (name === 'west' ? west : undefined),
    alerts: () => [],
  }
  const policies = new MemoryPolicies()
  await policies.resync([])
  const access = openAccess({
    source: policies,
    semantics: 'strict',
    administrators: { users: ['admin'], groups: [] },
    clock,
  })
  const history = new FleetHistory(state, clock)
  const move = (rows: Readonly<Record<string, JsonValue>>) => {
    version++
    const all = Object.entries(rows).map(([name, size]) => aRow('a', name, { size, phase: 'Bound' }))
    west = { ...west, version, tables: new Map([[source.id, seenBy(source, all)]]) }
    const change = { kind: 'custom', cluster: west.name, source: source.id, rows: true, op: 'put', at: 0 } as const
    history.note([{ id: `step-${version}`, change }])
  }
  history.begin('step-0')
  move({ x: 1, y: 2, z: 3 })
  const types = new VisibleTypes(new GivenCatalog(source), new Views(), [])
  const view = await access.viewOf(principalOf('admin'))
  return {
    history,
    move,
    clock,
    feed: new RowsFeed(
      { types, sets: new ClusterSets(undefined), history, now: () => clock.now() },
      view,
      parseRowsAsked(query),
    ),
  }
}

describe('a feed of rows', () => {
  it.each(['pvcx', 'pvcx?sort=size&order=desc&limit=2'])(
    'makes what readers who fell behind lack once: %s',
    async (query) => {
      const { history, move, feed } = await aFeed(query)
      const behind = feed.place
      move({ x: 1, y: 20, z: 3 })
      feed.advance()
      move({ x: 10, y: 20, z: 3 })
      const step = feed.since(behind)
      expect(step?.to).toBe(history.place)
      expect(step?.frame(0)).toBeDefined()
      expect(feed.since(behind)).toBe(step)
      expect(feed.since(behind)?.frame(0)).toBe(step?.frame(0))
      move({ x: 11, y: 20, z: 3 })
      expect(feed.since(behind)).not.toBe(step)
      expect(feed.since(behind)?.to).toBe(history.place)
    },
  )

  it('tells who comes back late the same as who comes back soon, of a past that is kept without what was made of it', async () => {
    const framesAfter = async (ms: number) => {
      const { history, move, clock, feed } = await aFeed('pvcx')
      const [behind, before] = [feed.place, history.cluster('west')]
      move({ x: 10, y: 2, z: 3 })
      await clock.pass(ms)
      move({ x: 10, y: 20, z: 3, w: 4 })
      const past = history.since(behind)?.get('west')
      const rows = past === 'unknown' ? undefined : past?.tables.get(source.id)?.rows
      const own = before?.tables.get(source.id)?.rows
      expect([...(rows?.rows() ?? [])]).toEqual([...(own?.rows() ?? [])])
      return {
        changes: feed
          .since(behind)
          ?.frame(0)
          ?.plain.toString()
          .replace(/,"now":.*/s, ''),
        isTheSame: past === before && rows === own,
      }
    }
    const [soon, late] = [await framesAfter(9_000), await framesAfter(11_000)]
    expect(late.changes).toBe(soon.changes)
    expect(late.changes).toContain('"name":"w"')
    expect([soon.isTheSame, late.isTheSame]).toEqual([true, false])
  })
})
