import { describe, expect, it } from 'vitest'
import type { KubeObject } from '#kube'
import { compileMetricSource } from './compile.ts'
import type { SourceObject } from './types.ts'

/* Manifests that people have already: the sources the original installs, and what it took without a word. */

const metadata = { name: 'source', namespace: 'clusterpulse' }
const exclude = ['openshift-*', 'kube-*']

function collected(spec: SourceObject['spec'], objects: readonly object[]) {
  const { source, findings } = compileMetricSource({ metadata, spec })
  if (!source) throw new Error(JSON.stringify(findings))
  const builder = source.collect(0)
  for (const object of objects) builder.add(object as KubeObject)
  const rows = builder.rows()
  return { findings, rows: [...rows.rows()].map(({ values }) => values), aggregations: source.aggregate(rows) }
}

describe('the sources that the original installs', () => {
  it('tell of deployments', () => {
    const status = (name: string) => ({ name, path: `.status.${name}`, type: 'integer' as const, default: '0' })
    const { findings, rows, aggregations } = collected(
      {
        source: { apiVersion: 'apps/v1', kind: 'Deployment', scope: 'Namespaced', namespaces: { exclude } },
        fields: [
          { name: 'replicas', path: '.spec.replicas', type: 'integer', default: '1' },
          ...['readyReplicas', 'availableReplicas', 'unavailableReplicas', 'updatedReplicas'].map(status),
        ],
        computed: [
          { name: 'readyPct', expression: 'round((readyReplicas / max(replicas, 1)) * 100, 1)', type: 'float' },
        ],
        aggregations: [
          { name: 'total_deployments', function: 'count' },
          { name: 'total_desired_replicas', function: 'sum', field: 'replicas' },
          { name: 'total_ready_replicas', function: 'sum', field: 'readyReplicas' },
          {
            name: 'fully_available',
            function: 'count',
            filter: { field: 'unavailableReplicas', operator: 'equals', value: '0' },
          },
          {
            name: 'degraded',
            function: 'count',
            filter: { field: 'unavailableReplicas', operator: 'greaterThan', value: '0' },
          },
          { name: 'avg_ready_pct', function: 'avg', field: 'readyPct' },
        ],
        collection: { intervalSeconds: 60, maxResources: 5000 },
        rbac: { resourceTypeName: 'deployment', filterableFields: ['readyPct'], filterAggregations: true },
      },
      [
        {
          metadata: { name: 'whole', namespace: 'a' },
          spec: { replicas: 3 },
          status: { readyReplicas: 3, availableReplicas: 3 },
        },
        {
          metadata: { name: 'part', namespace: 'a' },
          spec: { replicas: 3 },
          status: { readyReplicas: 1, unavailableReplicas: 2 },
        },
        { metadata: { name: 'new', namespace: 'b' }, spec: {}, status: {} },
      ],
    )
    expect(findings).toEqual([])
    expect(rows.map(({ readyPct }) => readyPct)).toEqual([33.3, 100, 0])
    expect(aggregations).toEqual({
      total_deployments: 3,
      total_desired_replicas: 7,
      total_ready_replicas: 4,
      fully_available: 2,
      degraded: 1,
      avg_ready_pct: expect.closeTo(44.43, 2),
    })
  })

  it('tell of volumes', () => {
    const phase = (value: string) => ({ field: 'phase', operator: 'equals' as const, value })
    const { findings, rows, aggregations } = collected(
      {
        source: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespaces: { exclude } },
        fields: [
          { name: 'phase', path: '.status.phase' },
          { name: 'capacity', path: '.status.capacity.storage', type: 'quantity' },
          { name: 'requested', path: '.spec.resources.requests.storage', type: 'quantity' },
          { name: 'storageClass', path: '.spec.storageClassName' },
          { name: 'accessMode', path: '.spec.accessModes[0]' },
          { name: 'volumeMode', path: '.spec.volumeMode', default: 'Filesystem' },
        ],
        computed: [{ name: 'capacityGB', expression: 'round(capacity / 1073741824, 2)', type: 'float' }],
        aggregations: [
          { name: 'total_pvcs', function: 'count' },
          { name: 'total_capacity_bytes', function: 'sum', field: 'capacity' },
          { name: 'bound_count', function: 'count', filter: phase('Bound') },
          { name: 'pending_count', function: 'count', filter: phase('Pending') },
          { name: 'by_storage_class', function: 'count', groupBy: 'storageClass' },
        ],
        collection: { intervalSeconds: 120, maxResources: 10_000 },
        rbac: {
          resourceTypeName: 'pvc',
          filterableFields: ['storageClass', 'phase', 'accessMode'],
          filterAggregations: true,
        },
      },
      [
        {
          metadata: { name: 'data', namespace: 'a' },
          spec: {
            accessModes: ['ReadWriteOnce'],
            resources: { requests: { storage: '5Gi' } },
            storageClassName: 'fast',
          },
          status: { phase: 'Bound', capacity: { storage: '5Gi' } },
        },
        {
          metadata: { name: 'wanted', namespace: 'a' },
          spec: { accessModes: [], resources: { requests: { storage: '1536Mi' } }, volumeMode: 'Block' },
          status: { phase: 'Pending' },
        },
      ],
    )
    expect(findings).toEqual([])
    const [data, wanted] = rows
    expect(data).toMatchObject({ capacity: 5368709120, requested: 5368709120, capacityGB: 5, volumeMode: 'Filesystem' })
    expect(wanted).toMatchObject({ capacity: null, requested: 1610612736, accessMode: null, volumeMode: 'Block' })
    expect(aggregations).toEqual({
      total_pvcs: 2,
      total_capacity_bytes: 5368709120,
      bound_count: 1,
      pending_count: 1,
      by_storage_class: { fast: 1, _unknown_: 1 },
    })
  })
})

describe('what the original took without a word', () => {
  const fields = [
    { name: 'a', path: '.a', type: 'integer' as const },
    { name: 'b', path: '.b' },
  ]
  const source = { apiVersion: 'v1', kind: 'ConfigMap' }

  it.each<[string, Partial<SourceObject['spec']>]>([
    ['an aggregation over nothing', { aggregations: [{ name: 'x', function: 'sum', field: 'nothing' }] }],
    [
      'two aggregations of a name',
      {
        aggregations: [
          { name: 'x', function: 'count' },
          { name: 'x', function: 'sum', field: 'a' },
        ],
      },
    ],
    ['a sum over text', { aggregations: [{ name: 'x', function: 'sum', field: 'b' }] }],
    ['an aggregation that lacks its field', { aggregations: [{ name: 'x', function: 'max' }] }],
    ['a default that does not fit', { fields: [{ name: 'a', path: '.a', type: 'integer', default: 'none' }] }],
    ['names with dots and dashes', { fields: [{ name: 'a.b-c', path: '.a' }] }],
    ['an empty key in a path', { fields: [{ name: 'a', path: '.a..b' }] }],
    ['a field that policies cannot find', { rbac: { resourceTypeName: 'x', filterableFields: ['nothing'] } }],
    [
      'values for Exists',
      { source: { ...source, labelSelector: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['x'] }] } } },
    ],
    ['a timeout longer than the interval', { collection: { intervalSeconds: 30, timeoutSeconds: 300 } }],
    [
      'namespaces for objects of the cluster',
      { source: { ...source, scope: 'Cluster', namespaces: { include: ['a'] } } },
    ],
    ['text made a number', { computed: [{ name: 'c', expression: 'concat(b, "x")', type: 'float' }] }],
    [
      'a comparison with what is no number',
      { aggregations: [{ name: 'x', function: 'count', filter: { field: 'a', operator: 'lessThan', value: 'x' } }] },
    ],
  ])('%s still comes into force, with a warning', (_, changes) => {
    const { source: compiled, findings } = compileMetricSource({ metadata, spec: { source, fields, ...changes } })
    expect(compiled).toBeDefined()
    expect(findings.map(({ severity }) => severity)).toEqual(['warning'])
  })
})
