import { create, type MessageInitShape } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Batch, nodeDocument, nodeStatus, type Part, parseClusterName, type SnapshotOf } from '#model'
import { decodeRequest, encodeRequest } from './envelopes.ts'
import { MetricsBatchSchema } from './generated/clusterpulse/collector/v1/collector_pb.ts'
import { batchFromOriginal, originalFromBatch } from './original.ts'
import { itemsOf } from './testing/arbitrary.ts'

const head = { cluster: parseClusterName('west'), origin: 'original', sequence: 9, collectedAt: 1_760_000_000_000 }
type Init = MessageInitShape<typeof MetricsBatchSchema>

const batchOf = (metrics: Init): Batch => batchFromOriginal(create(MetricsBatchSchema, metrics), head)
function partOf(batch: Batch, type: Part['type']): Part | undefined {
  return batch.parts.find((part) => part.type === type)
}
function items<T extends Part['type']>(batch: Batch, type: T): readonly SnapshotOf<T>[] {
  const part = partOf(batch, type)
  if (part?.outcome !== 'complete') throw new Error(`no items of ${type}`)
  return part.items as readonly unknown[] as readonly SnapshotOf<T>[]
}
const nodeOf = (node: object) => items(batchOf({ nodeMetrics: [{ name: 'n1', ...node }] }), 'node')[0]!

describe('a node of the original', () => {
  it.each([
    ['Ready', 'ready', false, 'Ready'],
    ['NotReady', 'notReady', false, 'NotReady'],
    // A cordon hides the readiness there: we do not claim to know it.
    ['SchedulingDisabled', 'unknown', true, 'SchedulingDisabled'],
    ['Unknown', 'unknown', false, 'Unknown'],
    ['', 'unknown', false, 'Unknown'],
    ['Sleeping', 'unknown', false, 'Unknown'],
  ])('of status %j is %s', (status, ready, unschedulable, shown) => {
    const node = nodeOf({ status })
    expect(node).toMatchObject({ ready, unschedulable })
    expect(nodeStatus(node)).toBe(shown)
  })

  it('has null where the original had nothing to say, not 0', () => {
    const none = { cpuCores: null, memoryBytes: null, storageBytes: null, pods: null }
    expect(nodeOf({})).toMatchObject({ capacity: none, allocatable: none, used: null, createdAt: null, conditions: [] })
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1])('with a capacity of %d has none that is known', (value) => {
    expect(nodeOf({ cpuCapacity: value, memoryCapacity: -5n, podsCapacity: -1 }).capacity).toEqual({
      cpuCores: null,
      memoryBytes: null,
      storageBytes: null,
      pods: null,
    })
  })

  it.each([
    ['a NaN of cpu', { cpuRequested: Number.NaN }],
    ['infinitely little cpu', { cpuRequested: Number.NEGATIVE_INFINITY }],
    ['less than no memory', { memoryRequested: -1n }],
    ['less than no pods', { podsTotal: -3 }],
  ])('with a request or a count of %s is refused by name: such a number must be one', (...[, node]) => {
    expect(() => nodeOf(node)).toThrow(/node "n1": /)
  })

  it('takes its share of requests for what it is, and no usage for measured', () => {
    const node = nodeOf({ cpuAllocatable: 4, cpuRequested: 1, cpuUsagePercent: 99, memoryUsagePercent: Number.NaN })
    expect(node.used).toBeNull()
    expect(nodeDocument(node, null).cpu_usage_percent).toBe(25)
  })

  it('counts pods of no known phase', () => {
    expect(
      nodeOf({ podsTotal: 10, podsRunning: 5, podsPending: 1, podsFailed: 1, podsSucceeded: 1 }).pods?.unknown,
    ).toBe(2)
    expect(nodeOf({ podsTotal: 1, podsRunning: 5 }).pods?.unknown).toBe(0)
  })

  it('without a name is refused', () => expect(() => nodeOf({ name: '' })).toThrow(/no name/))

  it('told twice is what was said last', () => {
    const batch = batchOf({
      nodeMetrics: [
        { name: 'a', hostname: 'x' },
        { name: 'a', hostname: 'y' },
      ],
    })
    expect(items(batch, 'node').map(({ hostname }) => hostname)).toEqual(['y'])
  })
})

describe('a batch of the original', () => {
  it('without nodes and totals could not read them', () => {
    expect(batchOf({}).parts).toMatchObject([{ type: 'node', outcome: 'unreachable', code: 'not_sent' }])
  })

  it('of a cluster without nodes has read none', () => {
    expect(partOf(batchOf({ clusterMetrics: { nodes: 0 } }), 'node')).toMatchObject({ outcome: 'complete', items: [] })
  })

  it('says nothing of what it did not scan in this cycle', () => {
    const types = batchOf({ clusterMetrics: { nodes: 1, namespaces: 3 }, nodeMetrics: [{ name: 'n' }] }).parts.map(
      ({ type }) => type,
    )
    expect(types).toEqual(['node'])
  })

  it('brings namespaces, operators, ClusterOperators and the cluster', () => {
    const batch = batchOf({
      clusterMetrics: { namespaceList: ['b', 'a', 'a'] },
      operators: [{ name: 'x.v1', installedNamespace: 'ops', isClusterWide: true, availableInNamespaces: ['*'] }],
      clusterOperators: [{ name: 'dns', degraded: true, conditions: [{ type: 'Degraded', status: 'True' }] }],
      clusterInfo: { version: '4.20.1', platform: 'OpenShift', channel: 'stable' },
    })
    expect(items(batch, 'namespace').map(({ name }) => name)).toEqual(['b', 'a'])
    expect(items(batch, 'operator')).toMatchObject([
      { name: 'ops/x.v1', csv: 'x.v1', status: 'Unknown', createdAt: null },
    ])
    expect(items(batch, 'clusterOperator')).toMatchObject([
      { name: 'dns', lastTransitionAt: null, conditions: [{ lastTransitionAt: null }] },
    ])
    expect(items(batch, 'cluster')).toMatchObject([
      { distribution: 'openshift', version: '4.20.1', consoleUrl: null, apiUrl: '' },
    ])
  })

  it('leaves custom resources aside without failing', () => {
    expect(
      batchOf({ customResources: [{ sourceId: 'a/b', resourceCount: 3, aggregationValues: { x: Number.NaN } }] }).parts
        .length,
    ).toBe(1)
  })

  it('is dated by the hub, which knows a usable time', () => {
    expect(batchOf({}).collectedAt).toBe(head.collectedAt)
    expect(() => batchFromOriginal(create(MetricsBatchSchema), { ...head, collectedAt: Number.NaN })).toThrow(/when/)
  })
})

describe('a batch of ours told as the original tells it', () => {
  const withItems = (type: Part['type'], all: readonly unknown[]) =>
    ({
      ...head,
      source: 'push',
      durationMs: 1,
      parts: [
        { type: 'node', collector: 'nodes', durationMs: 1, outcome: 'complete', items: [] },
        { type, collector: type, durationMs: 1, outcome: 'complete', items: all },
      ],
    }) as unknown as Batch

  const sent = (batch: Batch): Batch => {
    const { payload } = decodeRequest(encodeRequest({ payload: { case: 'metrics', value: originalFromBatch(batch) } }))
    if (payload.case !== 'metrics') throw new Error('no metrics')
    return batchFromOriginal(payload.value, head)
  }

  it('keeps what the original has a field for', () => {
    const named = fc.constantFrom('a', 'b', 'c')
    const arbitrary = fc.tuple(itemsOf('clusterOperator', 3), itemsOf('namespace', 3), named)
    fc.assert(
      fc.property(arbitrary, ([operators, namespaces, name]) => {
        const wellNamed = (all: readonly { readonly name: string }[]) =>
          all.map((item, i) => ({ ...item, name: `${name}${i}` }))
        const names = wellNamed(namespaces).map((namespace) => namespace.name)
        const found = sent(withItems('namespace', wellNamed(namespaces)))
        expect(names.length === 0 ? [] : items(found, 'namespace').map((one) => one.name)).toEqual(names)
        const told = sent(withItems('clusterOperator', wellNamed(operators)))
        if (operators.length > 0)
          expect(items(told, 'clusterOperator').map(({ degraded, name }) => [name, degraded])).toEqual(
            wellNamed(operators).map((one) => [one.name, (one as unknown as SnapshotOf<'clusterOperator'>).degraded]),
          )
      }),
      { numRuns: 50 },
    )
  })

  it('shows the same documents of a node on either way', () => {
    const node = nodeOf({
      status: 'Ready',
      roles: ['worker'],
      cpuCapacity: 4,
      memoryCapacity: 2n ** 34n,
      storageCapacity: 5n,
      podsCapacity: 110,
      cpuAllocatable: 3.5,
      memoryAllocatable: 2n ** 33n,
      storageAllocatable: 4n,
      podsAllocatable: 100,
      cpuRequested: 0.25,
      memoryRequested: 7n,
      podsTotal: 3,
      podsRunning: 3,
      kernelVersion: 'k',
      labels: { a: 'b' },
      internalIp: 'i',
      hostname: 'h',
    })
    const batch: Batch = {
      ...head,
      source: 'push',
      durationMs: 0,
      parts: [{ type: 'node', collector: 'nodes', durationMs: 0, outcome: 'complete', items: [node] }],
    }
    expect(sent(batch)).toEqual(batch)
    expect(originalFromBatch(batch).clusterMetrics).toMatchObject({ nodes: 1, nodesReady: 1, pods: 3, cpuCapacity: 4 })
  })
})
