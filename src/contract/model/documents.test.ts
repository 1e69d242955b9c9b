import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  clusterTotals,
  documentText,
  documentTime,
  infoDocument,
  nodeStatus,
  operatorDocument,
  ZERO_TIME,
} from './index.ts'
import type { ClusterSnapshot, NodeSnapshot, OperatorSnapshot } from './snapshots.ts'

const anOperator = (changes: Partial<OperatorSnapshot>): OperatorSnapshot => ({
  name: 'ns/x.v1',
  csv: 'x.v1',
  displayName: 'X',
  version: '1',
  provider: '',
  status: 'Succeeded',
  namespace: 'ns',
  installModes: [],
  installMode: 'SingleNamespace',
  clusterWide: false,
  availableInNamespaces: ['ns'],
  createdAt: null,
  updatedAt: null,
  ...changes,
})

const aCluster = (changes: Partial<ClusterSnapshot>): ClusterSnapshot => ({
  name: 'cluster',
  apiUrl: '',
  distribution: 'kubernetes',
  version: null,
  platform: null,
  channel: null,
  clusterId: null,
  image: null,
  updateVersion: null,
  versionState: null,
  versionStartedAt: null,
  versionCompletedAt: null,
  consoleUrl: null,
  conditions: [],
  ...changes,
})

describe('documentTime', () => {
  it.each([
    [0, '1970-01-01T00:00:00Z'],
    [1_767_225_630_999, '2026-01-01T00:00:30Z'],
    [null, ZERO_TIME],
    [Number.NaN, ZERO_TIME],
    [8.65e15, ZERO_TIME],
    [253_402_300_800_000, ZERO_TIME],
  ])('writes %s as %s', (at, text) => expect(documentTime(at)).toBe(text))

  it('never fails, whatever a collector sends', () =>
    fc.assert(
      fc.property(fc.double(), (at) => {
        expect(documentTime(at)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      }),
    ))
})

describe('documentText', () => {
  it('escapes what the documented writers escape', () => {
    expect(documentText({ a: '<b> & \u2028' })).toBe('{"a":"\\u003cb\\u003e \\u0026 \\u2028"}')
  })

  it('reads back as it was', () =>
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(documentText(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    ))
})

describe('operatorDocument', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `ns-${i}`)

  it.each([
    ['cluster-wide', { clusterWide: true, availableInNamespaces: ['*'] }, 'All namespaces', 1, 1],
    ['only *', { availableInNamespaces: ['*'] }, 'All namespaces', 1, 1],
    ['few', { availableInNamespaces: ['a', 'b'] }, 'a, b', 2, 2],
    ['exactly twenty', { availableInNamespaces: names(20) }, names(20).join(', '), 20, 20],
    ['many', { availableInNamespaces: names(25) }, '25 namespaces (showing first 20)', 25, 20],
    ['many, yet cluster-wide', { clusterWide: true, availableInNamespaces: names(25) }, 'All namespaces', 25, 25],
  ])('describes where it is available: %s', (_, changes, detail, count, shown) => {
    const document = operatorDocument(anOperator(changes), null)
    expect(document.available_namespaces_detail).toBe(detail)
    expect(document.available_count).toBe(count)
    expect(document.available_in_namespaces).toHaveLength(shown)
    expect(document.all_available_namespaces?.length).toBe(shown < count ? count : undefined)
  })
})

describe('infoDocument', () => {
  it('has only what the cluster said, sorted, with the address we use in place of one it did not give', () => {
    expect(JSON.stringify(infoDocument(aCluster({}), 'https://api'))).toBe(
      '{"api_url":"https://api","version":"unknown"}',
    )
  })

  it('has the documented keys of an OpenShift cluster', () => {
    const conditions = [{ type: 'Progressing', status: 'True', reason: 'r', message: 'm', lastTransitionAt: null }]
    const cluster = aCluster({
      distribution: 'openshift',
      version: '4.16.3',
      platform: 'OpenShift',
      updateVersion: '4.16.4',
      versionState: 'Completed',
      versionCompletedAt: 0,
      conditions,
    })
    expect({ ...infoDocument(cluster, 'https://api') }).toEqual({
      api_url: 'https://api',
      available_update_version: '4.16.4',
      conditions: [{ type: 'Progressing', status: 'True', message: 'm', reason: 'r' }],
      is_progressing: true,
      platform: 'OpenShift',
      update_available: true,
      version: '4.16.3',
      version_completion_time: '1970-01-01T00:00:00Z',
      version_state: 'Completed',
    })
  })

  it('says nothing of updates where nobody read of them: as a collector of the original tells of OpenShift', () => {
    const told = aCluster({
      distribution: 'openshift',
      version: '4.16.3',
      platform: 'OpenShift',
      channel: 'stable-4.16',
    })
    expect(infoDocument(told, 'https://api')).not.toHaveProperty('update_available')
    expect(infoDocument({ ...told, versionState: 'Completed' }, '')).toHaveProperty('update_available', false)
  })
})

describe('nodeStatus', () => {
  it.each([
    ['ready', false, 'Ready'],
    ['ready', true, 'SchedulingDisabled'],
    ['notReady', false, 'NotReady'],
    ['notReady', true, 'NotReady'],
    ['unknown', false, 'Unknown'],
    ['unknown', true, 'SchedulingDisabled'],
  ] as const)('%s, cordoned %s: %s', (ready, unschedulable, status) => {
    expect(nodeStatus({ ready, unschedulable } as NodeSnapshot)).toBe(status)
  })
})

describe('clusterTotals', () => {
  it('is null for what was never read, and zero for what is empty', () => {
    expect(clusterTotals({})).toEqual({
      nodes: null,
      pods: null,
      namespaces: null,
      deployments: null,
      operators: null,
      clusterOperators: null,
      cpuCores: { capacity: null, allocatable: null, requested: null, used: null },
      memoryBytes: { capacity: null, allocatable: null, requested: null, used: null },
    })
    const empty = clusterTotals({ nodes: [], namespaces: [], deployments: [] })
    expect(empty.nodes).toEqual({ total: 0, ready: 0, notReady: 0, unschedulable: 0 })
    expect(empty.namespaces).toBe(0)
    expect(empty.cpuCores.capacity).toBeNull()
  })
})
