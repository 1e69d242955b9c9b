import { describe, expect, it } from 'vitest'
import {
  type Batch,
  clusterTotals,
  metricPrefix,
  metricsCatalogue,
  metricsDocument,
  type NodeSnapshot,
  nodeDocument,
  type Part,
  type RowsPart,
  type SampleSet,
} from '#model'
import {
  aBatch,
  aCluster,
  aClusterOperator,
  aDeployment,
  aNamespace,
  aNode,
  anOperator,
  aPodSummary,
  complete,
  failed,
  partial,
  seen,
  seenSince,
  sizes,
  unseen,
  west,
} from '../state/test/fleet-words.ts'
import { samplesOf } from './samples.ts'

/** `cluster/cpu_used` or `node/ready/n1`: one number of a set */
function numberOf(set: SampleSet | undefined, name: string): number | undefined {
  const [scope, metric, ...key] = name.split('/')
  const group = set?.groups.find((one) => one.scope === scope)
  const i = group?.keys.indexOf(key.join('/')) ?? -1
  return group?.columns.find((one) => one.metric === metricPrefix[group.scope] + metric)?.values[i]
}

const changed = (type: Part['type'], put: unknown[]): Part =>
  ({ type, collector: 'test', durationMs: 1, outcome: 'changed', put, removed: [] }) as unknown as Part
const batch = (...parts: Part[]): Batch => aBatch(west, 3, parts)

const whole = batch(
  complete('cluster', aCluster()),
  complete('node', aNode('n1'), aNode('n2', { unschedulable: true }), aNode('n3', { ready: 'notReady' })),
  complete('podSummary', aPodSummary(12)),
  complete('namespace', aNamespace('a'), aNamespace('b')),
  complete('deployment', aDeployment('x')),
  complete('operator', anOperator('op.v1')),
  complete('clusterOperator', aClusterOperator('dns', { degraded: true })),
)

describe('samplesOf', () => {
  it('has every metric of the catalogue, in its order', () => {
    const set = samplesOf(whole)
    const names = set?.groups.flatMap(({ columns }) => columns.map(({ metric }) => metric))
    expect(names).toEqual(metricsCatalogue.map(({ scope, name }) => metricPrefix[scope] + name))
    expect(set).toMatchObject({ cluster: 'west', at: whole.collectedAt, source: 'pull', repaired: false })
  })

  it('agrees with the documents of the same round', () => {
    const set = samplesOf(whole)
    const nodes = whole.parts.flatMap((part) =>
      part.type === 'node' && part.outcome === 'complete' ? (part.items as NodeSnapshot[]) : [],
    )
    const totals = clusterTotals({ nodes, podSummary: aPodSummary(12) })
    const document = metricsDocument(totals, nodes, 0)
    expect(numberOf(set, 'cluster/nodes_ready/')).toBe(document.nodes_ready)
    expect(numberOf(set, 'cluster/pods_running/')).toBe(document.pods_running)
    expect(numberOf(set, 'cluster/cpu_capacity/')).toBe(document.cpu_capacity)
    const node = nodeDocument(aNode('n1'), 0)
    expect(numberOf(set, 'node/cpu_usage_percent/n1')).toBe(node.cpu_usage_percent)
    expect(numberOf(set, 'node/memory_usage_percent/n1')).toBe(node.memory_usage_percent)
    expect(numberOf(set, 'node/ready/n3')).toBe(0)
    expect(numberOf(set, 'clusterOperator/degraded/dns')).toBe(1)
    expect(numberOf(set, 'cluster/operators_total/')).toBe(1)
  })

  it('has deployments that were only counted, of which nobody knows how many are ready', () => {
    const set = samplesOf({ ...batch(complete('node', aNode('n1'))), deploymentCount: 7 })
    expect(numberOf(set, 'cluster/deployments_total/')).toBe(7)
    expect(numberOf(set, 'cluster/deployments_ready/')).toBeNaN()
  })

  it('says nothing of what is not known, which is not zero', () => {
    const amounts = { cpuCores: null, memoryBytes: null, storageBytes: null, pods: null }
    const set = samplesOf(
      batch(complete('node', aNode('n1', { capacity: amounts, allocatable: amounts, ready: 'unknown' }))),
    )
    for (const name of [
      'cpu_usage_percent',
      'memory_usage_percent',
      'cpu_capacity',
      'pods_capacity',
      'cpu_used',
      'ready',
    ]) {
      expect(numberOf(set, `node/${name}/n1`), name).toBeNaN()
    }
    for (const name of ['cpu_capacity', 'cpu_used', 'namespaces_total', 'deployments_total', 'operators_total']) {
      expect(numberOf(set, `cluster/${name}/`), name).toBeNaN()
    }
    expect(numberOf(set, 'cluster/nodes_total/')).toBe(1)
    const nobody = samplesOf(batch(complete('node'), complete('operator')))
    expect(numberOf(nobody, 'cluster/nodes_total/')).toBe(0)
    expect(numberOf(nobody, 'cluster/operators_total/')).toBe(0)
    expect(nobody?.groups.map(({ scope }) => scope)).toEqual(['cluster'])
  })

  it('counts what a cluster does not serve as none, and what it refuses as not known', () => {
    const set = samplesOf(batch(complete('node', aNode('n1')), failed('operator', 'absent')))
    expect(numberOf(set, 'cluster/operators_total/')).toBe(0)
    expect(numberOf(set, 'cluster/operators_count/')).toBeNaN()
    const other = samplesOf(
      batch(complete('node', aNode('n1')), failed('operator', 'forbidden'), failed('clusterOperator', 'absent')),
    )
    expect(numberOf(other, 'cluster/operators_total/')).toBeNaN()
    expect(numberOf(other, 'cluster/operators_count/')).toBe(0)
  })

  it('has what was read of a round that failed for the refusal of its nodes', () => {
    const refused = batch(failed('node', 'forbidden'), complete('namespace', aNamespace('a')))
    const set = samplesOf({ ...refused, failure: { code: 'kube_forbidden', message: 'no' } })
    expect(numberOf(set, 'cluster/namespaces_total/')).toBe(1)
    expect(numberOf(set, 'cluster/nodes_total/')).toBeNaN()
  })

  it('is nothing where nothing in the round makes a number', () => {
    expect(samplesOf({ ...batch(), failure: { code: 'x', message: 'y' } })).toBeUndefined()
    expect(samplesOf(batch())).toBeUndefined()
    expect(samplesOf(batch(complete('cluster', aCluster()), failed('node', 'forbidden')))).toBeUndefined()
  })

  it('takes differences from the view, and only types the batch names', () => {
    const view = {
      node: new Map([
        ['n1', aNode('n1')],
        ['n2', aNode('n2')],
      ]),
      namespace: new Map([['a', aNamespace('a')]]),
    }
    const set = samplesOf(batch(changed('node', [aNode('n2')])), view)
    expect(set?.groups.find(({ scope }) => scope === 'node')?.keys).toEqual(['n1', 'n2'])
    expect(numberOf(set, 'cluster/nodes_total/')).toBe(2)
    expect(numberOf(set, 'cluster/namespaces_total/')).toBeNaN()
    expect(samplesOf(batch(changed('node', [aNode('n2')])))).toBeUndefined()
    expect(samplesOf(batch(failed('node', 'unreachable')), view)).toBeUndefined()
  })

  it('keeps one series for things of one name', () => {
    const twice = [anOperator('op.v1'), anOperator('op.v1', { name: 'elsewhere/op.v1', namespace: 'elsewhere' })]
    const set = samplesOf(batch(complete('operator', ...twice)))
    expect(set?.groups.find(({ scope }) => scope === 'operator')?.keys).toEqual(['op.v1'])
    expect(numberOf(set, 'cluster/operators_total/')).toBe(2)
  })

  it('carries the time and the way of the batch', () => {
    const late = aBatch(west, 5, [complete('node', aNode('n1'))], { source: 'push', origin: 'o', backfill: true })
    expect(samplesOf(late)).toMatchObject({ at: late.collectedAt, source: 'push', repaired: true })
  })
})

describe('aggregations of MetricSources', () => {
  const custom = (more: Partial<Batch>, ...parts: RowsPart[]): Batch => partial(west, 3, parts, more)
  const aggregations = { total: 3, ratio: 0.5, none: null, word: 'x', by: { a: 1 }, on: true }

  it('are samples where they are numbers, of complete and of changed parts', () => {
    const [whole, rest] = [seen(sizes({ x: 1 }), { aggregations }), sizes({})]
    const change = { ...seenSince(rest, sizes({ x: 1 })), source: 'team/b', aggregations: { total: 0 } } as RowsPart
    const set = samplesOf(custom({}, whole, change, unseen('no', 'team/c')))
    expect(set).toMatchObject({ cluster: 'west', repaired: false, source: 'pull' })
    expect(set?.groups.map(({ scope, keys }) => [scope, ...keys])).toEqual([
      ['custom', 'team/sizes'],
      ['custom', 'team/b'],
    ])
    expect(set?.groups[0]?.columns).toEqual([
      { metric: 'clusterpulse_custom_resource_total', values: Float64Array.of(3) },
      { metric: 'clusterpulse_custom_resource_ratio', values: Float64Array.of(0.5) },
    ])
    expect(set?.at).toBe(custom({}).collectedAt)
  })

  it('are repaired where they come out of a buffer, and stand beside those of a round', () => {
    expect(samplesOf(custom({ backfill: true }, seen(sizes({}))))?.repaired).toBe(true)
    const round = { ...batch(complete('node', aNode('n1'))), tables: [seen(sizes({}))] }
    expect(samplesOf(round)?.groups.map(({ scope }) => scope)).toEqual(['cluster', 'node', 'custom'])
  })

  it('are none where nothing is a number', () => {
    expect(samplesOf(custom({}, seen(sizes({}), { aggregations: { by: { a: 1 } } }), unseen()))).toBeUndefined()
  })
})
