import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { systemClock } from '#model'
import { Tenancy } from './tenancy.ts'
import { monitored } from './testing/monitored.ts'

const rules = { systemNamespace: 'core', tenantPrefix: 'compute-', ownerLabel: 'user-id' }
const caller = (userId: string) => ({ userId, isAdmin: false, expiresAt: Number.POSITIVE_INFINITY })
const world = (namespaces: Readonly<Record<string, Readonly<Record<string, string>>>>, at = 1) =>
  monitored({ namespaces, at })

describe('namespaces of tenants', () => {
  it('are those with the owner’s label, and without one those that his id names, whatever else there is', () => {
    const id = fc.constantFrom('a', 'ab', 'b', 'B', 'a-b', '')
    const namespace = fc.record({
      name: fc.oneof(
        fc.tuple(id, fc.constantFrom('1', '2', '')).map(([owner, rest]) => `compute-${owner}-${rest}`),
        fc.constantFrom('core', 'compute-', 'computea-1', 'compute-*-1', 'compute-a|b'),
      ),
      label: fc.option(id),
    })
    fc.assert(
      fc.property(fc.array(namespace), id, (all, userId) => {
        const byName = new Map(all.map(({ name, label }) => [name, label]))
        const given = [...byName].map(([name, label]) => [name, label === null ? {} : { 'user-id': label }] as const)
        const cluster = world(Object.fromEntries(given))
        const isOwned = (name: string, label: string | null) =>
          /^compute-[-a-z0-9]*[a-z0-9]$/.test(name) && (label ?? userId) === userId
            ? label !== null || name.startsWith(`compute-${userId}-`)
            : false
        const owned = [...byName].filter(([name, label]) => isOwned(name, label)).map(([name]) => name)
        const expected = userId === '' ? [] : owned.sort()
        expect(new Tenancy(rules, systemClock).owned(userId, [cluster]).get(cluster.name) ?? []).toEqual(expected)
      }),
    )
  })

  it('are no patterns, whatever a collector calls them', () => {
    const cluster = world({ 'compute-*-1': { 'user-id': 'a' }, 'compute-b-1': {} })
    const view = new Tenancy(rules, systemClock).viewOf(caller('a'), [cluster])
    const seen = view.resource(cluster, { name: 'pods', rule: 'pods', isTaken: false })
    const isShown = seen.shows({ name: 'x', namespace: 'compute-b-1', values: {} })
    expect([view.canSee(cluster), isShown]).toEqual([false, false])
  })

  it('give the very same view until they are others, and another to nobody', () => {
    const tenancy = new Tenancy(rules, systemClock)
    const [first, later] = [world({ 'compute-a-1': {} }), world({ 'compute-a-1': {}, 'compute-b-1': {} }, 2)]
    const view = tenancy.viewOf(caller('a'), [first])
    expect(tenancy.viewOf(caller('a'), [{ ...first, version: 2 }])).toBe(view)
    expect(tenancy.viewOf(caller('a'), [later])).toBe(view) // what came is another's
    const other = tenancy.viewOf(caller('b'), [later])
    expect([other.canSee(later), view.canSee(later)]).toEqual([true, true])
    const gone = world({ 'compute-b-1': {} }, 3)
    expect(tenancy.viewOf(caller('a'), [gone]).canSee(gone)).toBe(false)
    expect(tenancy.viewOf(caller('b'), [gone])).toBe(other)
  })
})
