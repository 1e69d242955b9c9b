import {
  type Batch,
  type BatchView,
  type ClusterOperatorSnapshot,
  clusterTotals,
  isDeclaredSource,
  type MetricScope,
  metricPrefix,
  metricsCatalogue,
  type NodeSnapshot,
  nodeStatus,
  nodeUsagePercent,
  type SampleGroup,
  type SampleSet,
  type SnapshotOf,
  type SnapshotType,
  type TotalsInput,
} from '#model'

type Amount = number | null | undefined

/**
 * The numbers of one batch, by the same rules as the documents, so that a chart and a table never disagree.
 * Types are taken from `view` where the part is `changed` or complete, else from the items of complete parts; a `changed`
 * part without a view says nothing. What is not known is NaN. Aggregations of MetricSources are numbers where they are finite
 * and not grouped; a batch between two rounds has nothing else.
 * Operators of a cluster that does not serve their kind are 0; a refusal is not known. @returns undefined where nothing in the
 * batch makes a number
 */
export function samplesOf(batch: Batch, view?: BatchView): SampleSet | undefined {
  const read = <T extends SnapshotType>(type: T) => itemsOf(batch, view, type)
  const nodes = read('node')
  const operators = read('operator')
  const clusterOperators = read('clusterOperator')
  const rounds = batch.partial
    ? []
    : [
        clusterGroup({
          nodes: nodes ?? null,
          podSummary: read('podSummary')?.[0] ?? null,
          namespaces: read('namespace') ?? null,
          deployments: read('deployment') ?? null,
          deploymentCount: batch.deploymentCount,
          operators: operators ?? noneServed(batch, 'operator'),
          clusterOperators: clusterOperators ?? noneServed(batch, 'clusterOperator'),
        }),
        groupOf('node', nodes, (node) => node.name, nodeValues),
        groupOf('operator', operators, (operator) => operator.csv, operatorValues),
        groupOf('clusterOperator', clusterOperators, (operator) => operator.name, clusterOperatorValues),
      ]
  const groups = [...rounds, ...customGroups(batch)].filter((group) => group !== undefined)
  if (groups.length === 0) return undefined
  return {
    cluster: batch.cluster,
    at: batch.collectedAt,
    source: batch.source,
    repaired: batch.backfill === true,
    ...(batch.simulated && { simulated: true as const }),
    groups,
  }
}

const noneServed = ({ parts }: Batch, type: SnapshotType): [] | null =>
  parts.some((part) => part.type === type && part.outcome === 'absent') ? [] : null

/** One group per source: each has aggregations of its own. */
function customGroups({ custom = [] }: Batch): SampleGroup[] {
  return custom.flatMap((part): SampleGroup[] => {
    if (part.outcome !== 'complete' && part.outcome !== 'changed') return []
    if (!isDeclaredSource(part.source)) return []
    const numbers = Object.entries(part.aggregations).filter((entry): entry is [string, number] =>
      Number.isFinite(entry[1]),
    )
    if (numbers.length === 0) return []
    const columns = numbers.map(([name, value]) => ({
      metric: metricPrefix.custom + name,
      values: Float64Array.of(value),
    }))
    return [{ scope: 'custom', keys: [part.source], columns }]
  })
}

function itemsOf<T extends SnapshotType>(
  batch: Batch,
  view: BatchView | undefined,
  type: T,
): readonly SnapshotOf<T>[] | undefined {
  let items: readonly SnapshotOf<T>[] | undefined
  for (const part of batch.parts) {
    if (part.type !== type || (part.outcome !== 'complete' && part.outcome !== 'changed')) continue
    const known = view?.[type] as ReadonlyMap<string, SnapshotOf<T>> | undefined
    if (known) items = [...known.values()]
    // The compiler does not follow that `part.type === type` makes the items those of T.
    else
      items = part.outcome === 'complete' ? (part.items as readonly unknown[] as readonly SnapshotOf<T>[]) : undefined
  }
  return items
}

interface ClusterInput extends TotalsInput {
  readonly nodes: readonly NodeSnapshot[] | null
}

function clusterGroup(input: ClusterInput): SampleGroup | undefined {
  const totals = clusterTotals(input)
  const { cpuCores, memoryBytes, pods, deployments } = totals
  const values: Record<string, Amount> = {
    nodes_total: totals.nodes?.total,
    // As in the metrics document: a cordoned node is not among them.
    nodes_ready: input.nodes?.filter((node) => nodeStatus(node) === 'Ready').length,
    pods_total: pods?.total,
    pods_running: pods?.running,
    cpu_capacity: cpuCores.capacity,
    memory_capacity_bytes: memoryBytes.capacity,
    namespaces_total: totals.namespaces,
    deployments_total: deployments?.total,
    cpu_allocatable: cpuCores.allocatable,
    cpu_requested: cpuCores.requested,
    cpu_used: cpuCores.used,
    memory_allocatable_bytes: memoryBytes.allocatable,
    memory_requested_bytes: memoryBytes.requested,
    memory_used_bytes: memoryBytes.used,
    pods_pending: pods?.pending,
    pods_failed: pods?.failed,
    deployments_ready: deployments?.ready,
    operators_total: totals.operators?.total,
    operators_count: totals.clusterOperators?.total,
  }
  if (Object.values(values).every((value) => value === null || value === undefined)) return undefined
  return groupOf(
    'cluster',
    [values],
    () => '',
    (known) => known,
  )
}

function nodeValues(node: NodeSnapshot): Readonly<Record<string, Amount>> {
  const { capacity, allocatable, requested, used, pods } = node
  const percent = nodeUsagePercent(node)
  return {
    // A share of nothing is not known; the documents write 0 there.
    cpu_usage_percent: allocatable.cpuCores ? percent?.cpu : null,
    memory_usage_percent: allocatable.memoryBytes ? percent?.memory : null,
    pods_total: pods?.total,
    pods_running: pods?.running,
    cpu_capacity: capacity.cpuCores,
    memory_capacity_bytes: capacity.memoryBytes,
    storage_capacity_bytes: capacity.storageBytes,
    pods_capacity: capacity.pods,
    cpu_allocatable: allocatable.cpuCores,
    memory_allocatable_bytes: allocatable.memoryBytes,
    storage_allocatable_bytes: allocatable.storageBytes,
    pods_allocatable: allocatable.pods,
    cpu_requested: requested?.cpuCores,
    memory_requested_bytes: requested?.memoryBytes,
    pods_pending: pods?.pending,
    pods_failed: pods?.failed,
    pods_succeeded: pods?.succeeded,
    cpu_used: used?.cpuCores,
    memory_used_bytes: used?.memoryBytes,
    ready: node.ready === 'unknown' ? null : Number(node.ready === 'ready'),
  }
}

const operatorValues = (): Readonly<Record<string, Amount>> => ({ installed: 1 })

const clusterOperatorValues = (operator: ClusterOperatorSnapshot): Readonly<Record<string, Amount>> => ({
  available: Number(operator.available),
  progressing: Number(operator.progressing),
  degraded: Number(operator.degraded),
  upgradeable: Number(operator.upgradeable),
})

function groupOf<T>(
  scope: MetricScope,
  items: readonly T[] | undefined,
  keyOf: (item: T) => string,
  valuesOf: (item: T) => Readonly<Record<string, Amount>>,
): SampleGroup | undefined {
  if (!items || items.length === 0) return undefined
  // Two of one name (an operator copied into several namespaces) are one series, of which the last counts.
  const places = new Map<string, number>()
  for (const item of items) {
    const key = keyOf(item)
    if (!places.has(key)) places.set(key, places.size)
  }
  const columns = columnNames[scope].map(({ metric }) => ({
    metric,
    values: new Float64Array(places.size).fill(Number.NaN),
  }))
  for (const item of items) {
    const place = places.get(keyOf(item)) ?? 0
    const row = valuesOf(item)
    for (const [i, { name }] of columnNames[scope].entries()) {
      const column = columns[i]
      if (column) column.values[place] = row[name] ?? Number.NaN
    }
  }
  return { scope, keys: [...places.keys()], columns }
}

const columnsOf = (scope: MetricScope) =>
  metricsCatalogue
    .filter((metric) => metric.scope === scope)
    .map(({ name }) => ({ name, metric: metricPrefix[scope] + name }))
const columnNames: Readonly<Record<MetricScope, readonly { readonly name: string; readonly metric: string }[]>> = {
  cluster: columnsOf('cluster'),
  node: columnsOf('node'),
  operator: columnsOf('operator'),
  clusterOperator: columnsOf('clusterOperator'),
  custom: [],
}
