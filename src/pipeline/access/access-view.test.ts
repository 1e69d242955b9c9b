import { describe, expect, it } from 'vitest'
import { accessOf } from './testing/access-of.ts'
import {
  cluster,
  clusterOperator,
  deployment,
  event,
  names,
  namesOf,
  namespace,
  node,
  operator,
  person,
  podSummary,
  pods,
  policy,
  type Resource,
} from './testing/words.ts'
import type { AccessView } from './types.ts'

const alice = person('alice')
type Filters = NonNullable<Resource['filters']>
const both = { view: true, viewMetrics: true }

/** What alice sees by one Allow of c1 with these entries. */
const seeing = (
  resources: readonly Resource[],
  permissions: { view?: boolean; viewMetrics?: boolean } = both,
): Promise<AccessView> =>
  accessOf([policy('Allow', [{ ...names('c1'), permissions, resources: [...resources] }])]).viewOf(alice)

const hidden = (...denied: string[]): Filters => ({ names: { denied } })
const only = (...allowed: string[]): Filters => ({ names: { allowed } })

const world = cluster('c1', {
  node: [node('a', { zone: 'x' }), node('b', { zone: 'y' })],
  namespace: [namespace('shop', { team: 'red' }), namespace('bank', { team: 'blue' })],
  deployment: [deployment('shop', 'web'), deployment('bank', 'vault')],
  operator: [operator('etcd.v1', ['shop', 'bank'], 'Etcd'), operator('mesh.v2', ['*']), operator('lost.v1', [])],
  clusterOperator: [clusterOperator('dns', 'shop', 'bank', '')],
  podSummary: [podSummary({ shop: 3, bank: 4 })],
})

describe('an access view without filters', () => {
  it('gives the very rows, and one array for everybody', async () => {
    const [one, other] = [await seeing([]), await seeing([{ type: 'pvc' }])]
    expect(one.fingerprint).not.toBe(other.fingerprint)
    for (const type of ['node', 'namespace', 'operator', 'clusterOperator', 'deployment', 'podSummary'] as const) {
      expect(one.visible(world, type)).toBe(other.visible(world, type))
      expect(one.visible(world, type)).toEqual([...(world.parts[type]?.items.values() ?? [])])
    }
    expect(one.whole(world)).toBe(true)
  })

  it('gives nothing of a part that was never read, and nothing of a cluster that is not seen', async () => {
    const accessView = await seeing([])
    expect(accessView.visible(cluster('c1'), 'node')).toEqual([])
    const other = cluster('c2', { node: [node('a')], podSummary: [podSummary({ shop: 1 })] })
    expect(accessView.canSee(other)).toBe(false)
    expect(accessView.visible(other, 'node')).toEqual([])
    expect([accessView.whole(other), accessView.usage(other), accessView.history(other)]).toEqual([false, false, false])
    expect(accessView.showsEvent(other, event('cluster.version'))).toBe(false)
    expect(accessView.showsAlert(other, { name: 'x' })).toBe(false)
    expect(accessView.permissions(other)).toEqual({ permissions: [], level: 'none', decidedBy: null, filters: {} })
  })
})

describe('nodes', () => {
  it('leave out what was measured without view_metrics', async () => {
    const accessView = await seeing([], { view: true })
    expect(
      accessView.visible(world, 'node').map(({ used, pods, requested }) => [used, pods !== null, requested !== null]),
    ).toEqual([
      [null, true, true],
      [null, true, true],
    ])
    expect([accessView.usage(world), accessView.history(world), accessView.whole(world)]).toEqual([false, false, true])
  })

  it.each<[string, Resource]>([
    ['a namespace may be hidden', { type: 'namespaces', filters: hidden('nothing-of-that-name') }],
    ['pods are filtered', { type: 'pods', filters: { namespaces: { denied: ['nowhere'] } } }],
    ['pods are hidden', { type: 'pods', visibility: 'none' }],
  ])('do not tell their pods where %s', async (_, resource) => {
    const accessView = await seeing([resource])
    for (const row of accessView.visible(world, 'node')) {
      expect([row.pods, row.requested]).toEqual([null, null])
      expect(row.used).not.toBeNull()
    }
    expect(accessView.whole(world)).toBe(false)
  })

  it('are shown as they are where only something else is filtered', async () => {
    const accessView = await seeing([{ type: 'operators', visibility: 'none' }])
    expect(accessView.visible(world, 'node')).toEqual([...(world.parts.node?.items.values() ?? [])])
  })

  it('are filtered by label, and a label that is absent equals nothing', async () => {
    const labelled = async (labels: Record<string, string>) =>
      namesOf((await seeing([{ type: 'nodes', filters: { labels } }])).visible(world, 'node'))
    expect(await labelled({ zone: 'x' })).toEqual(['a'])
    expect(await labelled({ zone: '' })).toEqual([])
    expect(await labelled({ toString: '' })).toEqual([])
  })
})

describe('pods', () => {
  it('are counted over visible namespaces only', async () => {
    const accessView = await seeing([{ type: 'namespaces', filters: hidden('bank') }])
    expect(accessView.visible(world, 'podSummary')).toEqual([
      { name: 'pods', counts: pods(3), unscheduled: null, byNamespace: { shop: pods(3) } },
    ])
  })

  it('obey their own filter of namespaces besides', async () => {
    const resources: Resource[] = [{ type: 'pods', filters: { namespaces: { allowed: ['bank'] } } }]
    expect((await seeing(resources)).visible(world, 'podSummary')[0]?.byNamespace).toEqual({ bank: pods(4) })
    const none = await seeing([...resources, { type: 'namespaces', filters: hidden('bank') }])
    expect(none.visible(world, 'podSummary')[0]).toMatchObject({ byNamespace: {}, counts: pods(0) })
  })

  it.each<[string, Resource]>([
    ['they are hidden', { type: 'pods', visibility: 'none' }],
    ['only some names are allowed, and no name is known', { type: 'pods', filters: only('web-*') }],
    ['labels are asked for, and none is known', { type: 'pods', filters: { labels: { app: 'web' } } }],
  ])('are not counted where %s', async (_, resource) =>
    expect((await seeing([resource])).visible(world, 'podSummary')).toEqual([]),
  )
})

describe('namespaces', () => {
  it('take what is in them with them', async () => {
    const accessView = await seeing([{ type: 'namespaces', filters: hidden('bank') }])
    expect(namesOf(accessView.visible(world, 'namespace'))).toEqual(['shop'])
    expect(namesOf(accessView.visible(world, 'deployment'))).toEqual(['shop/web'])
    expect(accessView.visible(world, 'operator').map((row) => row.availableInNamespaces)).toEqual([['shop'], ['*'], []])
    expect(accessView.visible(world, 'clusterOperator')[0]?.relatedObjects.map((object) => object.namespace)).toEqual([
      'shop',
      '',
    ])
  })

  it('are filtered by label, and follow a label that changes', async () => {
    const accessView = await seeing([{ type: 'namespaces', filters: { labels: { team: 'red' } } }])
    expect(namesOf(accessView.visible(world, 'namespace'))).toEqual(['shop'])
    expect(namesOf(accessView.visible(world, 'deployment'))).toEqual(['shop/web'])
    // The deployments are the same part as before; only the namespaces were read again.
    const items = new Map([namespace('shop'), namespace('bank', { team: 'red' })].map((row) => [row.name, row]))
    const part = { ...world.parts.namespace, items } as NonNullable<typeof world.parts.namespace>
    const later = { ...world, parts: { ...world.parts, namespace: part } }
    expect(namesOf(accessView.visible(later, 'deployment'))).toEqual(['bank/vault'])
    expect(namesOf(accessView.visible(world, 'deployment'))).toEqual(['shop/web'])
  })

  it('that are called like parts of a language are namespaces like any other', async () => {
    const odd = cluster('c1', {
      podSummary: [podSummary({ constructor: 1, shop: 2 })],
      deployment: [deployment('__proto__', 'x')],
    })
    const accessView = await seeing([{ type: 'namespaces', filters: only('shop') }])
    expect(accessView.visible(odd, 'podSummary')[0]?.byNamespace).toEqual({ shop: pods(2) })
    expect(accessView.visible(odd, 'deployment')).toEqual([])
  })
})

describe('operators', () => {
  const shown = async (filters: Filters) =>
    (await seeing([{ type: 'operators', filters }])).visible(world, 'operator').map(({ csv }) => csv)

  it('are known by two names, of which one may be allowed and none denied', async () => {
    expect(await shown(only('Etcd'))).toEqual(['etcd.v1'])
    expect(await shown(only('etcd.*'))).toEqual(['etcd.v1'])
    expect(await shown({ names: { allowed: ['etcd.*'], denied: ['Et*'] } })).toEqual([])
  })

  it('without a display name have one name only, so that a wildcard for no text lets none in', async () => {
    const odd = cluster('c1', { operator: [operator('mesh\n.v2', ['*'], '')] })
    const accessView = await seeing([{ type: 'operators', filters: { names: { allowed: ['*'] } } }])
    expect(accessView.visible(odd, 'operator')).toEqual([])
  })

  it('pass a filter of namespaces with one of theirs, or everywhere, and not with none', async () => {
    expect(await shown({ namespaces: { allowed: ['bank'] } })).toEqual(['etcd.v1', 'mesh.v2'])
    expect(await shown({ namespaces: { denied: ['bank'] } })).toEqual(['etcd.v1', 'mesh.v2'])
    expect(await shown({ namespaces: { denied: ['bank', 'shop'] } })).toEqual(['mesh.v2'])
  })

  it('of the cluster itself pass namespaces, and no label', async () => {
    const parts = async (filters: Filters) =>
      namesOf((await seeing([{ type: 'operators', filters }])).visible(world, 'clusterOperator'))
    expect(await parts({ namespaces: { allowed: ['nowhere'] } })).toEqual(['dns'])
    expect(await parts(hidden('dn?'))).toEqual([])
    expect(await parts({ labels: { a: 'b' } })).toEqual([])
  })
})

describe('events', () => {
  it('that sum up a cluster are told only where nothing of it can be hidden', async () => {
    const whole = await seeing([])
    const reduced = await seeing([{ type: 'operators', filters: hidden('x') }])
    for (const type of ['cluster.health', 'cluster.reconciled']) {
      expect(
        [whole, reduced].map((accessView) => accessView.showsEvent(world, event(type, { to: 'degraded' }))),
      ).toEqual([true, false])
    }
    expect(reduced.showsEvent(world, event('cluster.version', { from: '1', to: '2' }))).toBe(true)
  })

  it('go with what they tell of', async () => {
    const accessView = await seeing([
      { type: 'nodes', filters: only('a') },
      { type: 'operators', filters: hidden('etcd*', 'dns') },
      { type: 'namespaces', filters: hidden('bank') },
    ])
    const told = (type: string, data: Record<string, unknown>) => accessView.showsEvent(world, event(type, data))
    expect([told('node.ready', { node: 'a' }), told('node.ready', { node: 'b' })]).toEqual([true, false])
    expect(told('cluster_operator.degraded', { operator: 'dns' })).toBe(false)
    expect(told('operator.failed', { operator: 'operators/etcd.v1', display_name: 'Etcd' })).toBe(false)
    expect(told('operator.failed', { operator: 'operators/mesh.v2', display_name: 'mesh.v2' })).toBe(true)
    expect([told('pod.lost', { namespace: 'shop' }), told('pod.lost', { namespace: 'bank' })]).toEqual([true, false])
  })

  it('of a node that is gone pass no label, as none is known', async () => {
    const accessView = await seeing([{ type: 'nodes', filters: { labels: { zone: 'x' } } }])
    expect(accessView.showsEvent(world, event('node.removed', { node: 'a' }))).toBe(true)
    expect(accessView.showsEvent(world, event('node.removed', { node: 'gone' }))).toBe(false)
  })

  it('obey their own filter by type, by object and by namespace', async () => {
    const shown = async (filters: Filters, type: string, data: Record<string, unknown>) =>
      (await seeing([{ type: 'events', filters }])).showsEvent(world, event(type, data))
    expect(await shown(hidden('node.*'), 'node.ready', { node: 'a' })).toBe(false)
    expect(await shown(only('a'), 'node.ready', { node: 'a' })).toBe(true)
    expect(await shown(hidden('a'), 'node.ready', { node: 'a' })).toBe(false)
    expect(await shown({ namespaces: { allowed: ['shop'] } }, 'cluster.version', {})).toBe(false)
    expect(await shown({ namespaces: { allowed: ['shop'] } }, 'pod.lost', { namespace: 'shop' })).toBe(true)
  })
})

describe('alerts', () => {
  it('are filtered by name, namespace and label, and by the node and namespace they are about', async () => {
    const shown = async (resources: Resource[], alert: Record<string, string>) =>
      (await seeing(resources)).showsAlert(world, alert)
    const alert = { name: 'Slow', namespace: 'shop', node: 'a', severity: 'warning' }
    expect(await shown([], alert)).toBe(true)
    expect(await shown([{ type: 'alerts', filters: hidden('Slow') }], alert)).toBe(false)
    expect(await shown([{ type: 'alerts', filters: { labels: { severity: 'critical' } } }], alert)).toBe(false)
    expect(await shown([{ type: 'alerts', filters: { namespaces: { allowed: ['bank'] } } }], alert)).toBe(false)
    expect(await shown([{ type: 'alerts', filters: { namespaces: { denied: ['bank'] } } }], { name: 'Slow' })).toBe(
      false,
    )
    expect(await shown([{ type: 'namespaces', filters: hidden('shop') }], alert)).toBe(false)
    expect(await shown([{ type: 'nodes', filters: hidden('a') }], alert)).toBe(false)
    expect(await shown([{ type: 'alerts', visibility: 'none' }], alert)).toBe(false)
  })
})

describe('registries', () => {
  it('are selected like clusters and filtered by an entry of the rule', async () => {
    const quay = { name: 'c1', labels: { tier: 'gold' } }
    const shown = async (...resources: Resource[]) => (await seeing(resources)).showsRegistry(quay)
    expect(await shown()).toBe(true)
    expect((await seeing([])).showsRegistry({ name: 'other', labels: {} })).toBe(false)
    expect(await shown({ type: 'registries', visibility: 'none' })).toBe(false)
    expect(await shown({ type: 'registries', filters: hidden('c*') })).toBe(false)
    expect(await shown({ type: 'registries', filters: { labels: { tier: 'gold' } } })).toBe(true)
    expect(await shown({ type: 'registries', filters: { labels: { tier: 'tin' } } })).toBe(false)
  })

  it('that are hidden hide nothing of a cluster', async () =>
    expect((await seeing([{ type: 'registries', visibility: 'none' }])).whole(world)).toBe(true))
})

describe('a cluster is whole', () => {
  it.each<[string, Resource, boolean]>([
    ['where an entry shows all', { type: 'nodes', visibility: 'all' }, true],
    [
      'not where an entry could hide a row, though it hides none now',
      { type: 'nodes', filters: hidden('no-such-node') },
      false,
    ],
    [
      'also where a custom type is filtered, which no sum of a cluster counts',
      { type: 'pvc', visibility: 'none' },
      true,
    ],
    ['not where events are filtered', { type: 'events', filters: only('*') }, false],
  ])('%s', async (_, resource, expected) => expect((await seeing([resource])).whole(world)).toBe(expected))
})

describe('permissions', () => {
  it('are full only with every action and nothing filtered', async () => {
    const levels = [
      await seeing([]),
      await seeing([], { view: true }),
      await seeing([{ type: 'nodes', filters: hidden('x') }]),
    ]
    expect(levels.map((accessView) => accessView.permissions(world).level)).toEqual(['full', 'limited', 'limited'])
  })

  it('name who decided, and the filters as they were written', async () => {
    const filters = { names: { allowed: ['w-*', 'a'], denied: ['b'] }, labels: { zone: 'x' } }
    const access = accessOf([
      policy('Allow', [{ ...names('c1'), resources: [{ type: 'nodes', filters }] }], { name: 'p', priority: 7 }),
    ])
    const { decidedBy, filters: told } = (await access.viewOf(alice)).permissions(world)
    expect(decidedBy).toMatchObject({
      policy: 'clusterpulse/p',
      effect: 'Allow',
      priority: 7,
      rule: 0,
      selectedBy: 'name',
    })
    expect(decidedBy?.hash).toMatch(/^[0-9a-f]{16}$/)
    expect(told.nodes).toEqual({
      visibility: 'filtered',
      names: { allowed: ['a', 'w-*'], denied: ['b'] },
      labels: { zone: 'x' },
    })
  })
})
