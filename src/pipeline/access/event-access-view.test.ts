import { describe, expect, it } from 'vitest'
import { Table } from '#model'
import { openAccess } from './open-access.ts'
import { storedOf, TestPolicies } from './testing/access-of.ts'
import { cluster, names, namespace, node, person, policy, type Resource } from './testing/words.ts'
import type { ObjectsOfEvents, RowItem, StandardResource } from './types.ts'

const at = { observedAt: 0, receivedAt: 0, source: 'pull' } as const
const podRows = Table.of(
  ['status'],
  [
    { namespace: 'app', name: 'red', labels: { team: 'red' }, values: { status: 'Running' } },
    { namespace: 'app', name: 'blue', labels: { team: 'blue' }, values: { status: 'Failed' } },
  ],
)
const known = cluster('c1', {
  node: [node('n1', { zone: 'x' }), node('n2')],
  namespace: [namespace('app'), namespace('bank')],
})
const targets = Table.of(
  ['about'],
  [
    { namespace: 'app', name: 'both:KollectTarget', labels: {}, values: { about: 'app' } },
    { namespace: 'shop', name: 'sel:KollectTarget', labels: {}, values: { about: 'app, bank' } },
  ],
)
const c1 = {
  ...known,
  tables: new Map([
    [
      'pods',
      {
        ...{ source: 'pods', hash: '', durationMs: 0, outcome: 'complete', code: '', message: '', attemptedAt: 0 },
        ...{ freshness: at, rows: podRows, aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] },
      },
    ],
    [
      'kollecttargets',
      {
        ...{ source: 'kollecttargets', hash: '', durationMs: 0, outcome: 'complete', code: '', message: '' },
        ...{ attemptedAt: 0, freshness: at, rows: targets, aggregations: {}, truncated: false, errors: [] },
        ...{ errorCount: 0, reports: [] },
      },
    ],
  ]),
} as typeof known

const about: readonly ObjectsOfEvents[] = [
  { name: 'pods', rule: 'pods', isTaken: false, rows: 'pods', kinds: ['Pod'] },
  { name: 'workloads', rule: 'namespaced', isTaken: false, rows: 'workloads', kinds: ['Deployment', 'Job'] },
]
const events: StandardResource = { name: 'kubernetes-events', rule: 'events', isTaken: false, about }

const event = (object: string, over: Partial<RowItem> = {}, values: object = {}): RowItem => ({
  ...{ name: 'e', namespace: object.startsWith('Node/') ? '' : 'app', labels: {} },
  values: { object, message: 'it happened', node: null, ...values },
  ...over,
})

async function viewWith(...resources: Resource[]) {
  const source = new TestPolicies()
  source.set([storedOf(policy('Allow', [{ ...names('c1'), resources }]))])
  const clock = { now: () => Date.parse('2026-06-01T12:00:00Z'), sleep: () => Promise.resolve() }
  const access = openAccess({ source, semantics: 'strict', administrators: { users: [], groups: [] }, clock })
  return { view: (await access.viewOf(person('alice'))).resource(c1, events), access }
}

const objects = [
  'Pod/red',
  'Pod/blue',
  'Pod/gone',
  'Node/n1',
  'Node/n2',
  'Deployment/web',
  'ReplicaSet/web-1',
  'Widget/w',
]
const only = (type: string, filters: Resource['filters']): Resource => ({
  type,
  visibility: 'filtered',
  ...(filters && { filters }),
})
const none = (type: string): Resource => ({ type, visibility: 'none' })
const all = (type: string): Resource => ({ type, visibility: 'all' })
const web = only('workloads', { names: { allowed: ['web'] } })

describe('events of a cluster are shown with what they are about', () => {
  it.each<[string, Resource[], string[]]>([
    ['nothing is filtered', [], objects],
    [
      'some nodes are hidden',
      [only('nodes', { names: { allowed: ['n1'] } })],
      objects.filter((one) => one !== 'Node/n2'),
    ],
    [
      'nodes are filtered by labels',
      [only('nodes', { labels: { zone: 'x' } })],
      objects.filter((one) => one !== 'Node/n2'),
    ],
    ['pods are hidden', [none('pods')], ['Node/n1', 'Node/n2']],
    [
      'pods are filtered by name',
      [only('pods', { names: { allowed: ['red', 'gone'] } })],
      ['Pod/red', 'Pod/gone', 'Node/n1', 'Node/n2'],
    ],
    [
      'pods are filtered by labels, which one that is gone no longer has',
      [only('pods', { labels: { team: 'red' } })],
      ['Pod/red', 'Node/n1', 'Node/n2'],
    ],
    [
      'pods are hidden and the events are named',
      [none('pods'), all('kubernetes-events')],
      ['Node/n1', 'Node/n2', 'Widget/w'],
    ],
    [
      'pods are hidden, events and workloads are named',
      [none('pods'), all('kubernetes-events'), web],
      ['Node/n1', 'Node/n2', 'Deployment/web', 'ReplicaSet/web-1', 'Widget/w'],
    ],
    [
      'workloads are filtered',
      [only('workloads', { names: { denied: ['web'] } })],
      objects.filter((one) => !one.includes('web')),
    ],
    ['their namespace is hidden', [only('namespaces', { names: { allowed: ['bank'] } })], ['Node/n1', 'Node/n2']],
    [
      'they are filtered themselves',
      [only('core/kubernetes-events', { fields: { object: { denied: ['Widget/*'] } } })],
      objects.filter((one) => one !== 'Widget/w'),
    ],
    ['they are hidden', [none('kubernetes-events')], []],
    ['nodes and pods are hidden', [none('pods'), none('nodes')], []],
  ])('where %s', async (_, resources, expected) => {
    const { view } = await viewWith(...resources)
    expect(objects.filter((object) => view.shows(event(object)))).toEqual(expected)
    if (view.whole) expect(expected).toEqual(objects)
    if (view.result === 'deny') expect(expected).toEqual([])
  })

  it('and one that cannot be read for what it is about is of what runs pods', async () => {
    const odd = event('nothing', {}, { object: null })
    expect((await viewWith()).view.shows(odd)).toBe(true)
    expect((await viewWith(none('pods'))).view.shows(odd)).toBe(false)
  })

  it('and are explained as they are decided', async () => {
    const { view, access } = await viewWith(only('pods', { labels: { team: 'red' } }))
    for (const object of ['Pod/red', 'Pod/blue']) {
      const { values, ...item } = event(object)
      const row = podRows.row(podRows.indexOf('app', object.slice(4)))
      const question = {
        ...{
          action: 'view' as const,
          cluster: { name: 'c1', labels: {} },
          type: events.name,
          resource: events,
          object: row,
        },
        ...{ name: item.name, namespace: 'app', fields: values },
      } as const
      const { item: said } = await access.explain(person('alice'), question)
      expect(said?.shown).toBe(view.shows(event(object)))
    }
  })
})

describe('an event that is shown does not say', () => {
  it('the name of a hidden node, nor a message with it', async () => {
    const { view } = await viewWith(only('nodes', { names: { allowed: ['n1'] } }))
    const on = (name: string, message = `Successfully assigned app/red to ${name}`) =>
      view.withholds?.(event('Pod/red', {}, { node: name, message })) ?? []
    expect(on('n1')).toEqual([])
    expect(on('n2')).toEqual(['node', 'message'])
    // One that is gone is hidden by its name as well.
    expect(on('n3', 'it was "n3".')).toEqual(['node', 'message'])
    expect(on('n2', 'it happened')).toEqual(['node'])
  })

  it.each([
    ['ScopeNamespaceDenied', 'the scope clip does not allow the namespace bank'],
    ['InvalidSink', 'both would be written to gx/third/bank/all.yaml'],
    ['SomethingNew', 'bank: it is so'],
  ])('what is said of objects of inventory in words that name a hidden namespace: %s', async (reason, message) => {
    const { view } = await viewWith(all('pods'), only('namespaces', { names: { allowed: ['app', 'shop'] } }))
    for (const kind of ['KollectTarget', 'KollectInventory', 'KollectDatabaseSink', 'KollectThatIsNew'])
      expect(view.withholds?.(event(`${kind}/both`, {}, { reason, message }))).toEqual(['message'])
    const free = event('KollectTarget/both', {}, { reason, message: 'the scope clip does not allow it in app' })
    expect(view.withholds?.(free)).toEqual([])
    // Whatever it says: a target there is about a namespace that is not shown.
    expect(view.withholds?.({ ...free, namespace: 'shop' })).toEqual(['message'])
    const { view: whole } = await viewWith(all('pods'), all('namespaces'))
    expect(whole.withholds?.(event('KollectTarget/both', {}, { reason, message })) ?? []).toEqual([])
  })

  it('which pods were made, to whom not all pods are shown', async () => {
    const { view } = await viewWith(only('pods', { names: { allowed: ['red'] } }), all('kubernetes-events'), web)
    expect(view.withholds?.(event('Deployment/web'))).toEqual(['message'])
    expect(view.withholds?.(event('Pod/red'))).toEqual([])
  })
})
