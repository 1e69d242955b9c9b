import { describe, expect, it } from 'vitest'
import { aCluster } from '../../testing/worlds.ts'
import type { ClusterView } from '../contract.ts'
import { hasFailed, hasFailedSince, isCurrent, oldestAt, pastText } from './current.ts'
import { basisOf, isPastSum, sumLoad, sumNodes, sumPods } from './sums.ts'

const now = Date.UTC(2026, 0, 1)
const alive = (name: string, ageMs = 4000, wish = {}) => aCluster(name, now, { ageMs, ...wish }).view
/** its last round failed; it was read before */
const dead = (name: string, ageMs = 135_000): ClusterView => ({
  ...alive(name, ageMs, { health: 'unhealthy', message: 'connection test failed: timeout' }),
  checkedAt: now - 5000,
})
const never = (name: string) => aCluster(name, now, { blank: true, health: 'unhealthy' }).view

describe('isCurrent', () => {
  it('ends with the first round that failed, long before the cluster is stale', () => {
    expect(isCurrent(alive('west'), 'node', now)).toBe(true)
    expect(isCurrent(dead('west', 35_000), 'node', now)).toBe(false)
    expect(pastText(dead('west', 35_000), 'node', now)).toBe(
      'As of 35 s ago: the last round failed: connection test failed: timeout',
    )
  })
  it('is not of what moved while the round was failing: that began before, and the cluster is away', () => {
    const freshness = { observedAt: now - 4000, receivedAt: now - 4000, source: 'pull' as const }
    const view = { ...dead('west'), parts: { ...dead('west').parts, node: { ...dead('west').parts.node, freshness } } }
    expect(isCurrent(view as ClusterView, 'node', now)).toBe(false)
  })
  it('ends by time alone where no round ends at all', () => {
    expect(isCurrent(alive('west', 1000), 'node', now + 100_000)).toBe(false)
    expect(pastText(alive('west', 1000), 'node', now + 100_000)).toBe('As of 101 s ago: no round has read it since')
  })
  it('is told of each kind for itself: deployments that may not be listed any more leave nodes current', () => {
    const view = alive('west', 4000, {
      parts: {
        deployment: {
          outcome: 'forbidden',
          message: 'deployments.apps is forbidden',
          freshness: { observedAt: now - 600_000, receivedAt: now, source: 'pull' },
        },
      },
    })
    expect(isCurrent(view, 'node', now)).toBe(true)
    expect(isCurrent(view, 'deployment', now)).toBe(false)
    expect(pastText(view, 'deployment', now)).toBe('As of 10 min ago: deployments.apps is forbidden')
    expect(oldestAt(view)).toBe(now - 600_000)
    expect(oldestAt(never('west'))).toBeNull()
  })
  it('holds for a collector that is not due in every round', () => {
    const freshness = { observedAt: now - 250_000, receivedAt: now, source: 'pull' as const }
    const view = alive('west', 4000, { openshift: true, parts: { operator: { freshness } } })
    expect(isCurrent(view, 'operator', now)).toBe(true)
    expect(isCurrent({ ...view, checkedAt: now }, 'operator', now)).toBe(false)
  })
  it('holds for all but the nodes where nodes alone are refused, until a round fails', () => {
    const freshness = { observedAt: now - 250_000, receivedAt: now, source: 'pull' as const }
    const node = { outcome: 'forbidden' as const, attemptedAt: now - 5000, freshness: null }
    const view = alive('west', 4000, { openshift: true, parts: { node, operator: { freshness } } })
    const refused = { ...view, lastSyncAt: null, checkedAt: now - 5000 }
    expect(hasFailed(refused)).toBe(false)
    expect(isCurrent(refused, 'operator', now)).toBe(true)
    expect(isCurrent(refused, 'operator', now + 100_000)).toBe(false)
    expect(isCurrent({ ...refused, lastSyncAt: now - 900_000, stale: true }, 'operator', now)).toBe(true)
    const since = { ...refused, checkedAt: now }
    expect(hasFailed(since)).toBe(true)
    expect(isCurrent(since, 'operator', now)).toBe(false)
    expect(hasFailedSince(since, now - 5000)).toBe(true)
  })
  it('says nothing of what was never read', () => {
    expect(isCurrent(never('west'), 'node', now)).toBe(false)
    expect(pastText(never('west'), 'node', now)).toBe('')
  })
})

describe('sums', () => {
  it('say of how many clusters they are current, and how old the oldest part is', () => {
    const fleet = [alive('a', 4000), alive('b', 12_000), dead('c')]
    expect(sumNodes(fleet, now)).toEqual({ of: 3, counted: 3, current: 2, oldestAt: now - 135_000, part: 15, all: 15 })
    expect(sumPods([dead('a'), dead('b')], now)).toMatchObject({ of: 2, counted: 2, current: 0 })
  })
  it('leave out what was never read instead of counting it as none', () => {
    expect(sumNodes([alive('a'), never('b')], now)).toMatchObject({ of: 2, counted: 1, current: 1, part: 5, all: 5 })
    expect(sumNodes([never('a'), never('b')], now)).toBeNull()
    expect(sumLoad([never('a')], 'cpuCores', now)).toBeNull()
  })
  it('do not call it old that something is kept from whoever looks', () => {
    const hidden = { ...alive('b'), filtered: true, nodes: null }
    expect(sumNodes([alive('a'), hidden], now)).toMatchObject({ of: 1, counted: 1, current: 1 })
  })
  it.each([
    [3, 3, false],
    [3, 2, true],
    [3, 0, true],
  ] as const)('of %d clusters with %d current are of the past: %s', (counted, current, past) =>
    expect(isPastSum({ counted, current })).toBe(past),
  )
  it('are empty of an empty fleet', () => expect(basisOf([], 'node', now, () => true)).toBeNull())
})

describe('sumLoad', () => {
  const half = alive('a', 4000, { used: 0.5 })
  const blind = alive('b', 4000, { used: null, requested: 0.9 })
  it('stays what is used although one cluster measures nothing, over those that do', () => {
    const alone = sumLoad([half], 'cpuCores', now)
    const both = sumLoad([half, blind], 'cpuCores', now)
    expect(both?.load).toEqual(alone?.load)
    expect(both).toMatchObject({ counted: 1, loaded: 2, load: { basis: 'used' } })
    expect(both?.requestedRatio).toBeCloseTo((0.61 + 0.9) / 2)
  })
  it('is what is asked for where none measures', () => {
    expect(sumLoad([blind], 'cpuCores', now)).toMatchObject({
      counted: 1,
      loaded: 1,
      requestedRatio: null,
      load: { basis: 'requested' },
    })
  })
})
