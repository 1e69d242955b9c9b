import { describe, expect, it } from 'vitest'
import { openAccess } from './open-access.ts'
import { storedOf, TestPolicies } from './testing/access-of.ts'
import { cluster, names, namespace, node, person, policy, type Resource } from './testing/words.ts'
import type { AccessView, PolicyObject, RowItem, Semantics, StandardResource } from './types.ts'

const alice = person('alice')
const c1 = cluster('c1', {
  node: [node('n1', { zone: 'x' }), node('n2')],
  namespace: [namespace('app', { team: 'red' }), namespace('bank')],
})

async function look(semantics: Semantics, ...policies: PolicyObject[]): Promise<AccessView> {
  const source = new TestPolicies()
  source.set(policies.map(storedOf))
  const clock = { now: () => Date.parse('2026-06-01T12:00:00Z'), sleep: () => Promise.resolve() }
  return openAccess({ source, semantics, administrators: { users: [], groups: [] }, clock }).viewOf(alice)
}

const pods: StandardResource = { name: 'pods', rule: 'pods', isTaken: false }
const services: StandardResource = { name: 'services', rule: 'namespaced', isTaken: false }
const inventory: StandardResource = { name: 'inventory', rule: 'named', isTaken: false }
const taken: StandardResource = { ...services, isTaken: true }

const row = (namespace: string, name = 'web', over: Partial<RowItem> = {}): RowItem => ({
  ...{ name, namespace, labels: {}, values: {} },
  ...over,
})
const shown = (accessView: AccessView, kind: StandardResource) =>
  ['app', 'bank'].filter((space) => accessView.resource(c1, kind).shows(row(space)))

const allow = (...resources: Resource[]) => policy('Allow', [{ ...names('c1'), resources }])
const only = (type: string, filters: Resource['filters']): Resource => ({
  type,
  visibility: 'filtered',
  ...(filters && { filters }),
})
const inApp = (type: string) => only(type, { namespaces: { allowed: ['app'] } })

describe('rows of any kind', () => {
  const named = { type: 'inventory', visibility: 'all' } as const
  it.each<[string, Resource[], string[]]>([
    ['nothing is filtered', [], ['', 'app', 'bank']],
    ['something is filtered', [inApp('pods')], []],
    ['something else is hidden', [{ type: 'nodes', visibility: 'none' }], []],
    ['another type is filtered', [inApp('pvc')], []],
    ['a namespace is hidden, and the kind is not named', [inApp('namespaces')], []],
    ['it is named', [named], ['', 'app', 'bank']],
    ['it is named, and pods are filtered', [named, inApp('pods')], ['app', 'bank']],
    ['it is named, and a namespace is hidden', [named, inApp('namespaces')], ['app']],
    ['it is filtered', [inApp('inventory')], ['app']],
    ['it is hidden', [{ type: 'inventory', visibility: 'none' }], []],
  ])('where %s', async (_, resources, expected) => {
    const { shows, whole } = (await look('strict', allow(...resources))).resource(c1, inventory)
    expect(['', 'app', 'bank'].filter((space) => shows(row(space)))).toEqual(expected)
    expect(whole).toBe(expected.length === 3)
  })

  it('are hidden by a Deny of anything, unless a policy names them', async () => {
    const denied = policy('Deny', [{ ...names('c1'), resources: [{ type: 'pods', visibility: 'all' }] }], {
      priority: 900,
    })
    expect((await look('strict', denied, allow())).resource(c1, inventory).result).toBe('deny')
    expect((await look('strict', denied, allow(named))).resource(c1, inventory).shows(row('app'))).toBe(true)
  })
})

describe('rows of kinds that are compiled in', () => {
  const both = ['app', 'bank']
  it.each<[string, Resource[], { pods: string[]; services: string[]; taken: string[] }]>([
    ['nothing is filtered', [], { pods: both, services: both, taken: both }],
    ['a namespace is hidden', [inApp('namespaces')], { pods: ['app'], services: ['app'], taken: ['app'] }],
    ['pods are filtered, and the kind is not named', [inApp('pods')], { pods: ['app'], services: [], taken: [] }],
    ['pods are hidden', [{ type: 'pods', visibility: 'none' }], { pods: [], services: [], taken: [] }],
    [
      'pods are hidden, and the kind is named',
      [
        { type: 'pods', visibility: 'none' },
        { type: 'services', visibility: 'all' },
      ],
      // The plain name may mean the MetricSource that has it: it shows nothing more.
      { pods: [], services: both, taken: [] },
    ],
    [
      'pods are hidden, and the kind is named for sure',
      [
        { type: 'pods', visibility: 'none' },
        { type: 'core/services', visibility: 'all' },
      ],
      { pods: [], services: both, taken: both },
    ],
    ['the kind is filtered', [inApp('services')], { pods: both, services: ['app'], taken: ['app'] }],
    ['the kind is hidden', [{ type: 'services', visibility: 'none' }], { pods: both, services: [], taken: [] }],
    [
      'the kind is hidden for sure',
      [{ type: 'core/services', visibility: 'none' }],
      { pods: both, services: [], taken: [] },
    ],
  ])('where %s', async (_, resources, expected) => {
    const accessView = await look('strict', allow(...resources))
    expect({
      pods: shown(accessView, pods),
      services: shown(accessView, services),
      taken: shown(accessView, taken),
    }).toEqual(expected)
    for (const kind of [pods, services, taken]) {
      const { whole, result } = accessView.resource(c1, kind)
      // Sums over everything only where nothing can be hidden.
      if (whole) expect(resources).toEqual(result === 'deny' ? [] : resources)
      expect(whole).toBe(shown(accessView, kind).length === 2 && result === 'allow')
    }
  })

  it('a Deny above hides the kind it names, and no other', async () => {
    const deny = policy('Deny', [{ ...names('c1'), resources: [{ type: 'services', visibility: 'none' }] }], {
      priority: 200,
    })
    const accessView = await look('strict', deny, allow())
    expect([shown(accessView, services), shown(accessView, pods)]).toEqual([[], ['app', 'bank']])
  })

  it('go with the cluster', async () => {
    const other = cluster('c2', {})
    const accessView = await look('strict', allow())
    expect(accessView.resource(other, pods)).toMatchObject({ result: 'deny', whole: false })
    expect(accessView.resource(other, pods).shows(row('app'))).toBe(false)
  })

  it('do not name a node that is hidden', async () => {
    const accessView = await look('strict', allow(only('nodes', { labels: { zone: 'x' } })))
    const custom = accessView.resource(c1, pods)
    expect(custom.whole).toBe(false)
    expect(['n1', 'n2', 'unknown'].map((name) => custom.showsNode?.(name))).toEqual([true, false, false])
    expect((await look('strict', allow())).resource(c1, pods).showsNode).toBeUndefined()
  })

  it('are chosen by labels and names of the filter of pods', async () => {
    const accessView = await look(
      'strict',
      allow(only('pods', { names: { allowed: ['web-*'] }, labels: { tier: 'gold' } })),
    )
    const shows = (name: string, labels: Record<string, string>) =>
      accessView.resource(c1, pods).shows(row('app', name, { labels }))
    expect([shows('web-1', { tier: 'gold' }), shows('web-1', {}), shows('db-1', { tier: 'gold' })]).toEqual([
      true,
      false,
      false,
    ])
  })

  it('hang on the labels of namespaces where a policy does', async () => {
    const accessView = await look('strict', allow(only('namespaces', { labels: { team: 'red' } })))
    expect(shown(accessView, services)).toEqual(['app'])
    expect(accessView.resource(c1, services).basis).toContain(c1.parts.namespace?.items)
  })

  it.each(['strict', 'original'] as const)('are never more than the namespaces, by %s rules', async (semantics) => {
    const accessView = await look(semantics, allow(only('namespaces', { names: { allowed: ['app'] } })))
    expect([shown(accessView, pods), shown(accessView, services)]).toEqual([['app'], ['app']])
  })
})
