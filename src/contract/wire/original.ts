import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import {
  type Batch,
  type ClusterOperatorSnapshot,
  type ClusterSnapshot,
  clusterOperatorDocument,
  clusterTotals,
  metricsDocument,
  type NamespaceSnapshot,
  type NodeSnapshot,
  nodeDocument,
  type OperatorSnapshot,
  operatorDocument,
  type Part,
  type PodCounts,
  type SnapshotOf,
  type SnapshotType,
  type SourceId,
} from '#model'
import { WireError } from './errors.ts'
import {
  type ClusterInfo,
  type ClusterOperatorInfo,
  type MetricsBatch,
  MetricsBatchSchema,
  type NodeMetrics,
  type OperatorInfo,
} from './generated/clusterpulse/collector/v1/collector_pb.ts'
import { customFromOriginal, customToOriginal } from './original-custom.ts'

/*
 * A MetricsBatch of the original and a Batch. What the original leaves out is null here, never 0; where its format cannot
 * tell "none" from "not known", the rule stands beside the field. Amounts that make no sense (negative, infinite, NaN) are
 * not known; where a number must be, the batch is refused. See "Batches of the original" in docs/spec/wire.md.
 */

/** What the hub knows of a batch beside its content: the name by the credential, a number it gave, a time it believes. */
export type OriginalHead = Pick<Batch, 'cluster' | 'sequence' | 'collectedAt'> & { readonly origin: string }

/**
 * Deployments are counted there and not named: `deploymentCount` is the count, absent where it is 0, since a collector that
 * could not read them says that, and is one itself.
 * @param hashOf of the definition a MetricSource is collected by there; '' where it is not known
 * @param nodes as readOriginal read them, of a message without any; default: those of the message
 * @throws WireError where a thing has no name, a count is negative, or a time or a request is no number
 */
export function batchFromOriginal(
  metrics: MetricsBatch,
  head: OriginalHead,
  hashOf: (source: SourceId) => string = () => '',
  nodes?: readonly NodeSnapshot[],
): Batch {
  const { cluster, origin, sequence, collectedAt } = head
  if (!Number.isFinite(collectedAt)) throw new WireError('the batch does not say when it was collected')
  const { clusterMetrics, nodeMetrics, operators, clusterOperators, clusterInfo } = metrics
  const parts: Part[] = []
  // Totals and nodes are read in every cycle and stand or fall together: without both, the read failed.
  const snapshots = nodes ?? lastOfEach(nodeMetrics.map(nodeSnapshot))
  if (snapshots.length > 0 || clusterMetrics) parts.push(part('node', 'nodes', snapshots))
  else parts.push({ type: 'node', collector: 'nodes', durationMs: 0, outcome: 'unreachable', ...NOT_SENT })
  // No cluster is without namespaces, operators are scanned now and then: an empty list says that nothing was read.
  const namespaces = clusterMetrics?.namespaceList ?? []
  if (namespaces.length > 0) parts.push(part('namespace', 'namespaces', lastOfEach(namespaces.map(namespaceSnapshot))))
  if (operators.length > 0) parts.push(part('operator', 'operators', lastOfEach(operators.map(operatorSnapshot))))
  if (clusterOperators.length > 0)
    parts.push(part('clusterOperator', 'clusterOperators', lastOfEach(clusterOperators.map(clusterOperatorSnapshot))))
  if (clusterInfo) parts.push(part('cluster', 'cluster', [clusterSnapshot(clusterInfo, clusterOperators.length > 0)]))
  const tables = customFromOriginal(metrics.customResources, hashOf)
  const deploymentCount = clusterMetrics?.deployments ?? 0
  return {
    cluster,
    origin,
    sequence,
    source: 'push',
    collectedAt,
    durationMs: 0,
    parts,
    ...(tables.length > 0 && { tables }),
    ...(deploymentCount > 0 && { deploymentCount }),
  }
}

const NOT_SENT = { code: 'not_sent', message: 'the collector could not read the nodes' }

/** Of a name that is told twice the last is kept, as the original's hub would have written it. */
const lastOfEach = <T extends { readonly name: string }>(all: readonly T[]): readonly T[] => [
  ...new Map(all.map((item) => [item.name, item])).values(),
]

function part<T extends SnapshotType>(type: T, collector: string, items: readonly SnapshotOf<T>[]): Part {
  // Its items are of its type: what the union of parts says for each type, but not for all at once.
  return { type, collector, durationMs: 0, outcome: 'complete', items } as unknown as Part
}

function nodeSnapshot(node: NodeMetrics): NodeSnapshot {
  const named = `node ${JSON.stringify(node.name.slice(0, 80))}`
  const count = (what: string, value: number) => countOf(`${named}: ${what}`, value)
  const sum = (what: string, value: number) => sumOf(`${named}: ${what}`, value)
  return {
    name: nameOf('a node', node.name),
    createdAt: null,
    ...statusOf(node.status),
    roles: [...node.roles].sort(),
    conditions: [],
    capacity: {
      cpuCores: amount(node.cpuCapacity),
      memoryBytes: amount(Number(node.memoryCapacity)),
      storageBytes: amount(Number(node.storageCapacity)),
      pods: amount(node.podsCapacity),
    },
    allocatable: {
      cpuCores: amount(node.cpuAllocatable),
      memoryBytes: amount(Number(node.memoryAllocatable)),
      storageBytes: amount(Number(node.storageAllocatable)),
      pods: amount(node.podsAllocatable),
    },
    requested: {
      cpuCores: sum('cpu_requested', node.cpuRequested),
      memoryBytes: sum('memory_requested', Number(node.memoryRequested)),
    },
    // Its percentages are shares of requests, which `requested` says: nothing here was measured.
    used: null,
    pods: podCounts(node, count),
    kernelVersion: node.kernelVersion,
    osImage: node.osImage,
    containerRuntime: node.containerRuntime,
    kubeletVersion: node.kubeletVersion,
    architecture: node.architecture,
    internalIp: node.internalIp,
    externalIp: '',
    hostname: node.hostname,
    labels: { ...node.labels },
    annotations: {},
    taints: [],
    imagesCount: 0,
    volumesAttached: 0,
  }
}

function podCounts(node: NodeMetrics, count: (what: string, value: number) => number): PodCounts {
  const total = count('pods_total', node.podsTotal)
  const running = count('pods_running', node.podsRunning)
  const pending = count('pods_pending', node.podsPending)
  const failed = count('pods_failed', node.podsFailed)
  const succeeded = count('pods_succeeded', node.podsSucceeded)
  return {
    total,
    running,
    pending,
    failed,
    succeeded,
    unknown: Math.max(0, total - running - pending - failed - succeeded),
  }
}

/** A cordon hides the readiness in the original: it is then not known. */
export function statusOf(status: string): Pick<NodeSnapshot, 'ready' | 'unschedulable'> {
  if (status === 'Ready') return { ready: 'ready', unschedulable: false }
  if (status === 'NotReady') return { ready: 'notReady', unschedulable: false }
  return { ready: 'unknown', unschedulable: status === 'SchedulingDisabled' }
}

function namespaceSnapshot(name: string): NamespaceSnapshot {
  return { name: nameOf('a namespace', name), phase: 'Unknown', createdAt: null, labels: {} }
}

function operatorSnapshot(operator: OperatorInfo): OperatorSnapshot {
  const { installedNamespace: namespace, name } = operator
  return {
    name: `${namespace}/${nameOf('an operator', name)}`,
    csv: name,
    displayName: operator.displayName,
    version: operator.version,
    provider: operator.provider,
    status: operator.status || 'Unknown',
    namespace,
    installModes: operator.installModes,
    installMode: operator.installMode,
    clusterWide: operator.isClusterWide,
    availableInNamespaces: operator.availableInNamespaces,
    createdAt: null,
    updatedAt: null,
  }
}

function clusterOperatorSnapshot(operator: ClusterOperatorInfo): ClusterOperatorSnapshot {
  const { name, version, available, progressing, degraded, upgradeable, message, reason } = operator
  return {
    name: nameOf('a ClusterOperator', name),
    version,
    available,
    progressing,
    degraded,
    upgradeable,
    message,
    reason,
    lastTransitionAt: null,
    conditions: operator.conditions.map(({ type, status, reason, message }) => ({
      type,
      status,
      reason,
      message,
      lastTransitionAt: null,
    })),
    versions: operator.versions.map(({ name, version }) => ({ name, version })),
    relatedObjects: operator.relatedObjects.map(({ group, resource, namespace, name }) => ({
      group,
      resource,
      namespace,
      name,
    })),
  }
}

function clusterSnapshot(info: ClusterInfo, hasClusterOperators: boolean): ClusterSnapshot {
  const snapshots = (text: string) => (text === '' || text === 'unknown' ? null : text)
  const isOpenShift =
    hasClusterOperators || info.platform === 'OpenShift' || info.channel !== '' || info.clusterId !== ''
  return {
    name: 'cluster',
    apiUrl: info.apiUrl,
    distribution: isOpenShift ? 'openshift' : 'kubernetes',
    version: snapshots(info.version),
    platform: snapshots(info.platform),
    channel: snapshots(info.channel),
    clusterId: snapshots(info.clusterId),
    image: null,
    updateVersion: null,
    versionState: null,
    versionStartedAt: null,
    versionCompletedAt: null,
    consoleUrl: snapshots(info.consoleUrl),
    conditions: [],
  }
}

/** No node has a capacity of 0: that is what the original says where it could not read it. */
export function amount(value: number): number | null {
  return Number.isFinite(value) && value > 0 ? value : null
}

function sumOf(what: string, value: number): number {
  if (Number.isFinite(value) && value >= 0) return value
  throw new WireError(`${what} is ${value}, which is no amount`)
}

function countOf(what: string, value: number): number {
  if (value >= 0) return value
  throw new WireError(`${what} is ${value}, which is no count`)
}

function nameOf(what: string, name: string): string {
  if (name !== '') return name
  throw new WireError(`${what} has no name`)
}

/**
 * The batch as a collector of the original would send it: what an agent says to a hub of the original. Complete parts only;
 * others are left out, as the original leaves out what it could not read.
 */
export function originalFromBatch(batch: Batch): MetricsBatch {
  const nodes = itemsOf(batch, 'node')
  const info = itemsOf(batch, 'cluster')?.[0]
  return create(MetricsBatchSchema, {
    clusterName: batch.cluster,
    batchId: `${batch.origin ?? 'hub'}-${batch.sequence}`,
    collectedAt: timestampFromMs(batch.collectedAt),
    ...(nodes && { clusterMetrics: clusterMetrics(batch, nodes), nodeMetrics: nodes.map(nodeMetrics) }),
    operators: itemsOf(batch, 'operator')?.map(operatorInfo) ?? [],
    clusterOperators: itemsOf(batch, 'clusterOperator')?.map(clusterOperatorInfo) ?? [],
    ...(info && { clusterInfo: clusterInfo(info) }),
    customResources: customToOriginal(batch.tables ?? []),
  })
}

type Init = MessageInitShape<typeof MetricsBatchSchema>
type Item<T> = T extends (infer U)[] ? U : never

function itemsOf<T extends SnapshotType>(batch: Batch, type: T): readonly SnapshotOf<T>[] | undefined {
  const found = batch.parts.find((part) => part.type === type && part.outcome === 'complete')
  // The part of this type holds items of this type.
  return found?.outcome === 'complete' ? (found.items as readonly unknown[] as readonly SnapshotOf<T>[]) : undefined
}

function clusterMetrics(batch: Batch, nodes: readonly NodeSnapshot[]): NonNullable<Init['clusterMetrics']> {
  const namespaces = itemsOf(batch, 'namespace') ?? null
  const deployments = itemsOf(batch, 'deployment') ?? null
  const podSummary = itemsOf(batch, 'podSummary')?.[0] ?? null
  const totals = metricsDocument(
    clusterTotals({ nodes, namespaces, deployments, deploymentCount: batch.deploymentCount, podSummary }),
    nodes,
    batch.collectedAt,
  )
  return {
    // It knows no other word for "not read" than 0.
    nodes: totals.nodes ?? 0,
    nodesReady: totals.nodes_ready ?? 0,
    namespaces: totals.namespaces ?? 0,
    namespaceList: (namespaces ?? []).map(({ name }) => name),
    pods: totals.pods ?? 0,
    podsRunning: totals.pods_running ?? 0,
    cpuCapacity: totals.cpu_capacity ?? 0,
    memoryCapacity: whole(totals.memory_capacity ?? 0),
    deployments: totals.deployments ?? 0,
  }
}

function nodeMetrics(node: NodeSnapshot): Item<NonNullable<Init['nodeMetrics']>> {
  const document = nodeDocument(node, null)
  return {
    // It knows no other word for "not known" than 0.
    name: node.name,
    status: document.status,
    roles: document.roles,
    cpuCapacity: document.cpu_capacity,
    memoryCapacity: whole(document.memory_capacity),
    storageCapacity: whole(document.storage_capacity),
    podsCapacity: document.pods_capacity,
    cpuAllocatable: document.cpu_allocatable,
    memoryAllocatable: whole(document.memory_allocatable),
    storageAllocatable: whole(document.storage_allocatable),
    podsAllocatable: document.pods_allocatable,
    cpuRequested: document.cpu_requested ?? 0,
    memoryRequested: whole(document.memory_requested ?? 0),
    cpuUsagePercent: document.cpu_usage_percent ?? 0,
    memoryUsagePercent: document.memory_usage_percent ?? 0,
    podsRunning: document.pods_running ?? 0,
    podsPending: document.pods_pending ?? 0,
    podsFailed: document.pods_failed ?? 0,
    podsSucceeded: document.pods_succeeded ?? 0,
    podsTotal: document.pods_total ?? 0,
    kernelVersion: node.kernelVersion,
    osImage: node.osImage,
    containerRuntime: node.containerRuntime,
    kubeletVersion: node.kubeletVersion,
    architecture: node.architecture,
    labels: node.labels,
    internalIp: node.internalIp,
    hostname: node.hostname,
  }
}

function operatorInfo(operator: OperatorSnapshot): Item<NonNullable<Init['operators']>> {
  const document = operatorDocument(operator, null)
  return {
    name: document.name,
    displayName: document.display_name,
    version: document.version,
    status: document.status,
    installedNamespace: document.installed_namespace,
    installMode: document.install_mode,
    provider: document.provider,
    isClusterWide: document.is_cluster_wide,
    installModes: document.install_modes,
    availableInNamespaces: [...operator.availableInNamespaces],
    availableCount: document.available_count,
  }
}

function clusterOperatorInfo(operator: ClusterOperatorSnapshot): Item<NonNullable<Init['clusterOperators']>> {
  const { name, version, available, progressing, degraded, upgradeable, message, reason, ...document } =
    clusterOperatorDocument(operator, null)
  return {
    name,
    version,
    available,
    progressing,
    degraded,
    upgradeable,
    message,
    reason,
    conditions: document.conditions.map(({ type, status, reason, message }) => ({ type, status, reason, message })),
    versions: document.versions,
    relatedObjects: document.related_objects,
  }
}

function clusterInfo(cluster: ClusterSnapshot): NonNullable<Init['clusterInfo']> {
  return {
    apiUrl: cluster.apiUrl,
    version: cluster.version ?? 'unknown',
    platform: cluster.platform ?? '',
    consoleUrl: cluster.consoleUrl ?? '',
    channel: cluster.channel ?? '',
    clusterId: cluster.clusterId ?? '',
  }
}

/** Bytes as the int64 of the original. */
const whole = (bytes: number) => BigInt(Math.round(Math.min(bytes, Number.MAX_SAFE_INTEGER)))
