import { describe, expect, it } from 'vitest'
import { type ResourceListSettings, resourceLists, resourceMetadataDocument } from './resource-lists.ts'
import { Table, type TableRow } from './table.ts'

const DEFAULTS: ResourceListSettings = {
  podsPerNamespace: 100,
  pods: 1000,
  deployments: 500,
  services: 500,
  labels: false,
}

const row = (namespace: string, name: string, values: TableRow['values'], labels = {}): TableRow => ({
  namespace,
  name,
  labels,
  values,
})
const pods = (...rows: TableRow[]) => Table.of(['status', 'node', 'phase'], rows)
const pod = (namespace: string, name: string, phase = 'Running', node: string | null = 'n1') =>
  row(namespace, name, { status: phase, node, phase })
const workloads = (...rows: TableRow[]) => Table.of(['kind', 'ready', 'desired', 'current'], rows)
const namesIn = (text: string) =>
  (JSON.parse(text) as { namespace: string; name: string }[]).map((one) => `${one.namespace}/${one.name}`)

describe('the list of pods', () => {
  const listed = (rows: Table, settings: Partial<ResourceListSettings> = {}) => {
    const [list] = resourceLists('pods', rows, { ...DEFAULTS, ...settings })
    return list!
  }

  it('leaves out what has ended, and the node of what waits for one', () => {
    const rows = pods(
      pod('a', 'done', 'Succeeded'),
      pod('a', 'lost', 'Failed'),
      pod('a', 'runs'),
      pod('a', 'waits', 'Pending', null),
    )
    expect(listed(rows)).toEqual({
      name: 'pods',
      count: 2,
      truncated: false,
      text: '[{"name":"runs","namespace":"a","status":"Running","node":"n1"},{"name":"waits","namespace":"a","status":"Pending"}]',
    })
  })

  it.each([
    ['of one namespace', { podsPerNamespace: 2 }, ['a/1', 'a/2', 'b/1'], true],
    ['of the cluster', { pods: 2 }, ['a/1', 'a/2'], true],
    ['just as many', { podsPerNamespace: 3, pods: 4 }, ['a/1', 'a/2', 'a/3', 'b/1'], false],
  ])('holds no more %s than it may, and says that it is cut', (_, settings, names, truncated) => {
    const { text, count, ...list } = listed(pods(pod('a', '1'), pod('a', '2'), pod('a', '3'), pod('b', '1')), settings)
    expect([namesIn(text), count, list.truncated]).toEqual([names, names.length, truncated])
  })

  it('is not cut for pods that are left out anyway', () => {
    expect(
      listed(pods(pod('a', '1'), pod('a', '2', 'Succeeded'), pod('b', '1', 'Failed')), { pods: 1 }).truncated,
    ).toBe(false)
  })

  it('has labels, sorted, where they are wanted and there are some', () => {
    const rows = pods(row('a', 'one', pod('a', 'one').values, { b: '<2>', a: '1' }), pod('a', 'two'))
    expect(listed(rows).text).not.toContain('labels')
    expect(listed(rows, { labels: true }).text).toBe(
      '[{"name":"one","namespace":"a","status":"Running","node":"n1","labels":{"a":"1","b":"\\u003c2\\u003e"}},' +
        '{"name":"two","namespace":"a","status":"Running","node":"n1"}]',
    )
  })
})

describe('the lists of workloads', () => {
  it('are one for each of three kinds', () => {
    const rows = workloads(
      row('a', 'web:Deployment', { kind: 'Deployment', desired: 3, ready: 2, current: 3 }),
      row('a', 'web:StatefulSet', { kind: 'StatefulSet', desired: 0, ready: 0, current: 0 }),
      row('a', 'log:DaemonSet', { kind: 'DaemonSet', desired: 5, ready: 4, current: 5 }),
      row('a', 'once:Job', { kind: 'Job', desired: 1, ready: 0, current: null }),
    )
    expect(resourceLists('workloads', rows, DEFAULTS)).toEqual([
      {
        name: 'deployments',
        count: 1,
        truncated: false,
        text: '[{"name":"web","namespace":"a","replicas":3,"ready":2}]',
      },
      {
        name: 'statefulsets',
        count: 1,
        truncated: false,
        text: '[{"name":"web","namespace":"a","replicas":0,"ready":0}]',
      },
      {
        name: 'daemonsets',
        count: 1,
        truncated: false,
        text: '[{"name":"log","namespace":"a","desired":5,"current":5,"ready":4}]',
      },
    ])
  })

  it('hold as many deployments and stateful sets as they may, and a hundred daemon sets', () => {
    const many = (kind: string) =>
      Array.from({ length: 101 }, (_, i) => row('a', `w${i}:${kind}`, { kind, desired: 1, ready: 1, current: 1 }))
    const rows = workloads(...many('Deployment'), ...many('StatefulSet'), ...many('DaemonSet'))
    const counts = resourceLists('workloads', rows, { ...DEFAULTS, deployments: 10 }).map(({ count, truncated }) => [
      count,
      truncated,
    ])
    expect(counts).toEqual([
      [10, true],
      [10, true],
      [100, true],
    ])
  })

  it('leave out a number that an older agent does not send', () => {
    const rows = Table.of(
      ['kind', 'ready', 'desired'],
      [row('a', 'log:DaemonSet', { kind: 'DaemonSet', desired: 5, ready: 4 })],
    )
    expect(resourceLists('workloads', rows, DEFAULTS)[2]?.text).toBe(
      '[{"name":"log","namespace":"a","desired":5,"ready":4}]',
    )
  })
})

it('lists services with their address, where they have one', () => {
  const rows = Table.of(
    ['type', 'clusterIp'],
    [
      row('a', 'api', { type: 'ClusterIP', clusterIp: '10.0.0.1' }),
      row('a', 'far', { type: 'ExternalName', clusterIp: null }),
      row('a', 'peers', { type: 'ClusterIP', clusterIp: 'None' }),
    ],
  )
  expect(resourceLists('services', rows, DEFAULTS)).toEqual([
    {
      name: 'services',
      count: 3,
      truncated: false,
      text:
        '[{"name":"api","namespace":"a","type":"ClusterIP","cluster_ip":"10.0.0.1"},{"name":"far","namespace":"a","type":"ExternalName"},' +
        '{"name":"peers","namespace":"a","type":"ClusterIP","cluster_ip":"None"}]',
    },
  ])
})

it('makes no list of other kinds', () => {
  expect(
    resourceLists('persistentvolumeclaims', Table.of(['status'], [row('a', 'b', { status: 'Bound' })]), DEFAULTS),
  ).toEqual([])
})

it('tells of the lists, and leaves out counts of what could not be read', () => {
  const at = Date.UTC(2026, 0, 1, 0, 0, 30, 500)
  const kinds = [
    { observedAt: at, durationMs: 70, truncated: false, counts: { pods: 12 } },
    {
      observedAt: at - 9_000,
      durationMs: 120,
      truncated: true,
      counts: { deployments: 3, statefulsets: 0, daemonsets: 2 },
    },
  ]
  expect(JSON.stringify(resourceMetadataDocument(kinds))).toBe(
    '{"timestamp":"2026-01-01T00:00:30Z","collection_time_ms":120,"truncated":true,"total_resources":17,' +
      '"pods_count":12,"deployments_count":3,"statefulsets_count":0,"daemonsets_count":2}',
  )
})
