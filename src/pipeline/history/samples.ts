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
 * @param scopes what is made of a round; default: all
 */
export function samplesOf(
  batch: Batch,
  view?: BatchView,
  scopes: readonly MetricScope[] = roundScopes,
): SampleSet | undefined {
  const rounds = batch.partial ? [] : scopes.map((scope) => roundGroup(scope, batch, view))
  const groups = [...rounds, ...rowsGroups(batch)].filter((group) => group !== undefined)
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

const roundScopes: readonly MetricScope[] = ['cluster', 'node', 'operator', 'clusterOperator']

function roundGroup(scope: MetricScope, batch: Batch, view: BatchView | undefined): SampleGroup | undefined {
  const read = <T extends SnapshotType>(type: T) => itemsOf(batch, view, type)
  switch (scope) {
    case 'cluster':
      return clusterGroup({
        nodes: read('node') ?? null,
        podSummary: read('podSummary')?.[0] ?? null,
        namespaces: read('namespace') ?? null,
        deployments: read('deployment') ?? null,
        deploymentCount: batch.deploymentCount,
        operators: read('operator') ?? noneServed(batch, 'operator'),
        clusterOperators: read('clusterOperator') ?? noneServed(batch, 'clusterOperator'),
      })
    case 'node':
      return groupOf(scope, read('node'), (node) => node.name, nodeReaders)
    case 'operator':
      return groupOf(scope, read('operator'), (operator) => operator.csv, operatorReaders)
    case 'clusterOperator':
      return groupOf(scope, read('clusterOperator'), (operator) => operator.name, clusterOperatorReaders)
    case 'custom':
      return undefined // not of what is read of the cluster itself: see rowsGroups
  }
}

const noneServed = ({ parts }: Batch, type: SnapshotType): [] | null =>
  parts.some((part) => part.type === type && part.outcome === 'absent') ? [] : null

/** One group per source: each has aggregations of its own. */
function rowsGroups({ tables = [] }: Batch): SampleGroup[] {
  return tables.flatMap((part): SampleGroup[] => {
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
  const columns = columnNames.cluster.map(({ name, metric }) => ({
    metric,
    values: Float64Array.of(values[name] ?? Number.NaN),
  }))
  return { scope: 'cluster', keys: [''], columns }
}

/** How each number is read of an item, by name. */
type Readers<T> = Readonly<Record<string, (item: T) => Amount>>

const nodeReaders: Readers<NodeSnapshot> = {
  // A share of nothing is not known; the documents write 0 there.
  cpu_usage_percent: (node) => (node.allocatable.cpuCores ? nodeUsagePercent(node)?.cpu : null),
  memory_usage_percent: (node) => (node.allocatable.memoryBytes ? nodeUsagePercent(node)?.memory : null),
  pods_total: ({ pods }) => pods?.total,
  pods_running: ({ pods }) => pods?.running,
  cpu_capacity: ({ capacity }) => capacity.cpuCores,
  memory_capacity_bytes: ({ capacity }) => capacity.memoryBytes,
  storage_capacity_bytes: ({ capacity }) => capacity.storageBytes,
  pods_capacity: ({ capacity }) => capacity.pods,
  cpu_allocatable: ({ allocatable }) => allocatable.cpuCores,
  memory_allocatable_bytes: ({ allocatable }) => allocatable.memoryBytes,
  storage_allocatable_bytes: ({ allocatable }) => allocatable.storageBytes,
  pods_allocatable: ({ allocatable }) => allocatable.pods,
  cpu_requested: ({ requested }) => requested?.cpuCores,
  memory_requested_bytes: ({ requested }) => requested?.memoryBytes,
  pods_pending: ({ pods }) => pods?.pending,
  pods_failed: ({ pods }) => pods?.failed,
  pods_succeeded: ({ pods }) => pods?.succeeded,
  cpu_used: ({ used }) => used?.cpuCores,
  memory_used_bytes: ({ used }) => used?.memoryBytes,
  ready: ({ ready }) => (ready === 'unknown' ? null : Number(ready === 'ready')),
}

const operatorReaders: Readers<unknown> = { installed: () => 1 }

const clusterOperatorReaders: Readers<ClusterOperatorSnapshot> = {
  available: ({ available }) => Number(available),
  progressing: ({ progressing }) => Number(progressing),
  degraded: ({ degraded }) => Number(degraded),
  upgradeable: ({ upgradeable }) => Number(upgradeable),
}

function groupOf<T>(
  scope: MetricScope,
  items: readonly T[] | undefined,
  keyOf: (item: T) => string,
  readers: Readers<T>,
): SampleGroup | undefined {
  if (!items || items.length === 0) return undefined
  // Two of one name (an operator copied into several namespaces) are one series, of which the last counts.
  const last = new Map<string, T>()
  for (const item of items) last.set(keyOf(item), item)
  const [keys, read] = [[...last.keys()], [...last.values()]]
  // One buffer for all columns: memory of their own is dear for so few numbers.
  const numbers = new Float64Array(keys.length * columnNames[scope].length)
  const columns = columnNames[scope].map(({ name, metric }, at) => {
    const values = numbers.subarray(at * keys.length, (at + 1) * keys.length)
    const reader = readers[name]
    for (let row = 0; row < read.length; row++) values[row] = reader?.(read[row] as T) ?? Number.NaN // below its length
    return { metric, values }
  })
  return { scope, keys, columns }
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
