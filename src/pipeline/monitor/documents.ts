import {
  type ClusterState,
  canonicalBytes,
  canonicalCores,
  type JsonValue,
  type NodeSnapshot,
  parseMillicores,
  parseQuantity,
  type ResourceCondition,
  type RowsState,
  type Table,
} from '#model'

/*
 * The documents of Cluster Monitor, to the key, made of one cluster's state. Pure; who may see what is decided before.
 *
 *   nodes + `node-usage` → NodeDocument          `pod-usage` + `pods` + nodes → PodDocument
 */

/** A condition of a node, as its object has it. */
export interface ConditionDocument {
  readonly type: string
  readonly status: string
}

/** One node: usage and capacity as quantity texts, percents of capacity, neither rounded nor cut. */
export interface NodeDocument {
  readonly name: string
  readonly cpu_usage: string
  readonly memory_usage: string
  readonly cpu_capacity: string
  readonly memory_capacity: string
  readonly cpu_percent: number
  readonly memory_percent: number
  /** bytes of the node's filesystem; 0: unknown */
  readonly disk_capacity: number
  readonly disk_usage: number
  readonly disk_percent: number
  /** absent where there are none */
  readonly conditions?: readonly ConditionDocument[]
  /** the metrics API does not tell of this node; absent: it does */
  readonly metrics_available?: false
}

/** One pod: nanocores and bytes; capacities are those of its whole node, 0 where unknown. */
export interface PodDocument {
  readonly name: string
  readonly namespace: string
  readonly node: string
  readonly cpu_usage: number
  readonly memory_usage: number
  readonly disk_usage: number
  readonly cpu_capacity: number
  readonly memory_capacity: number
  readonly disk_capacity: number
}

/** The newest nodes, as `/cluster-info` answers. */
export interface NodeSnapshotDocument {
  /** RFC 3339, UTC: when usage was read */
  readonly timestamp: string
  readonly nodes: readonly NodeDocument[]
  /** the newest read failed, or is overdue; absent: it did not */
  readonly stale?: true
}

/** The newest pods, as `/pod-metrics` answers. */
export interface PodSnapshotDocument {
  readonly timestamp: string
  readonly pods: readonly PodDocument[]
}

/** Tables of measured usage, by their place in the state of a cluster. */
export const NODE_USAGE = 'node-usage'
export const POD_USAGE = 'pod-usage'
const PODS = 'pods'

const CONDITIONS: ReadonlySet<string> = new Set(['MemoryPressure', 'DiskPressure', 'PIDPressure'])
const NANOCORES_PER_MILLICORE = 1_000_000

/** Those whose usage is measured, by name; then those whose usage is not, by name. @param nodes those to be told of */
export function nodeDocuments(cluster: ClusterState, nodes: Iterable<NodeSnapshot>): readonly NodeDocument[] {
  return [...eachNode(cluster, nodes)].filter((node) => node !== undefined)
}

/** The same, one after the other; undefined is a step that found one whose turn comes later. */
export function* eachNode(
  cluster: ClusterState,
  nodes: Iterable<NodeSnapshot>,
): Generator<NodeDocument | undefined, undefined> {
  const usage = nodeUsage(cluster)
  const unmeasured: NodeDocument[] = []
  for (const node of [...nodes].sort(byName)) {
    const document = nodeDocument(node, usage(node.name))
    const isMeasured = document.metrics_available === undefined
    if (!isMeasured) unmeasured.push(document)
    yield isMeasured ? document : undefined
  }
  yield* unmeasured
}

interface NodeUsage {
  readonly cpuText: string | null
  readonly memoryText: string | null
  readonly diskCapacity: number | null
  readonly diskUsed: number | null
}

function nodeUsage(cluster: ClusterState): (name: string) => NodeUsage | undefined {
  const table = cluster.tables.get(NODE_USAGE)?.rows
  if (!table) return () => undefined
  const [cpu, memory] = [textsOf(table, 'cpuText'), textsOf(table, 'memoryText')]
  const [diskCapacity, diskUsed] = [numbersOf(table, 'diskCapacity'), numbersOf(table, 'diskUsed')]
  return (name) => {
    const at = table.indexOf('', name)
    if (at < 0) return undefined
    return { cpuText: cpu(at), memoryText: memory(at), diskCapacity: diskCapacity(at), diskUsed: diskUsed(at) }
  }
}

function nodeDocument(node: NodeSnapshot, usage: NodeUsage | undefined): NodeDocument {
  const millicores = usage?.cpuText == null ? undefined : parseMillicores(usage.cpuText)
  const memoryBytes = usage?.memoryText == null ? undefined : wholeBytes(usage.memoryText)
  const isMeasured = millicores !== undefined && memoryBytes !== undefined
  const { cpuCores, memoryBytes: memoryCapacity } = node.capacity
  const [diskCapacity, diskUsed] = [usage?.diskCapacity ?? 0, usage?.diskUsed ?? 0]
  const conditions = conditionsOf(node.conditions)
  return {
    name: node.name,
    cpu_usage: isMeasured ? (usage?.cpuText ?? '0') : '0',
    memory_usage: isMeasured ? (usage?.memoryText ?? '0') : '0',
    cpu_capacity: canonicalCores(cpuCores ?? 0),
    memory_capacity: canonicalBytes(memoryCapacity ?? 0),
    cpu_percent: isMeasured ? percentOf(millicores, millicoresOf(cpuCores)) : 0,
    memory_percent: isMeasured ? percentOf(memoryBytes, memoryCapacity ?? 0) : 0,
    disk_capacity: diskCapacity,
    disk_usage: diskUsed,
    disk_percent: percentOf(diskUsed, diskCapacity),
    ...(conditions.length > 0 && { conditions }),
    ...(!isMeasured && { metrics_available: false as const }),
  }
}

/** In the order of the object. A node that is not ready has a condition of that name, though Kubernetes has none. */
function conditionsOf(conditions: readonly ResourceCondition[]): readonly ConditionDocument[] {
  return conditions.flatMap(({ type, status }) => {
    if (type === 'Ready') return status === 'True' ? [] : [{ type: 'NotReady', status: 'True' }]
    return CONDITIONS.has(type) ? [{ type, status }] : []
  })
}

/**
 * Pods whose usage is measured, by namespace and name.
 * @param wants whether pods of a namespace are told of; asked once per namespace
 * @param shows whether this one is
 */
export function* podDocuments(
  cluster: ClusterState,
  wants: (namespace: string) => boolean,
  shows: (namespace: string, name: string) => boolean = () => true,
): Generator<PodDocument> {
  const usage = cluster.tables.get(POD_USAGE)?.rows
  if (!usage) return
  const pod = podReader(cluster, usage)
  let [at, namespace, isWanted] = [0, undefined as string | undefined, false]
  while (at < usage.size) {
    const next = usage.namespaceAt(at)
    if (next !== namespace) [namespace, isWanted] = [next, wants(next)]
    if (!isWanted) at = usage.firstNotBefore(`${next}\0`, '')
    else {
      const document = shows(next, usage.nameAt(at)) ? pod(at) : undefined
      if (document) yield document
      at++
    }
  }
}

/** A pod that no list of usage tells of. */
export interface UnmeasuredPod {
  readonly namespace: string
  readonly name: string
}

/**
 * Pods that are there and whose usage is not known, as of finished ones, by namespace and name; undefined is a step that found none.
 * @param isMeasured whether there is a document of it
 */
export function* unmeasuredPods(
  cluster: ClusterState,
  wants: (namespace: string) => boolean,
  isMeasured: (namespace: string, name: string) => boolean,
): Generator<UnmeasuredPod | undefined> {
  const pods = cluster.tables.get(PODS)?.rows
  if (!pods) return
  let [at, namespace, isWanted] = [0, undefined as string | undefined, false]
  while (at < pods.size) {
    const next = pods.namespaceAt(at)
    if (next !== namespace) [namespace, isWanted] = [next, wants(next)]
    if (!isWanted) at = pods.firstNotBefore(`${next}\0`, '')
    else {
      const name = pods.nameAt(at++)
      yield isMeasured(next, name) ? undefined : { namespace: next, name }
    }
  }
}

function podReader(cluster: ClusterState, usage: Table): (at: number) => PodDocument | undefined {
  const pods = cluster.tables.get(PODS)?.rows
  const nodeOfPod = pods ? textsOf(pods, 'node') : () => null
  const [cpu, memory, disk] = (['cpuMillicores', 'memoryUsed', 'diskUsed'] as const).map((field) =>
    numbersOf(usage, field),
  ) as [NumberAt, NumberAt, NumberAt]
  const capacity = capacities(cluster)
  return (at) => {
    const [millicores, memoryUsed] = [cpu(at), memory(at)]
    // What could not be read is not nothing: such a pod is left out.
    if (millicores === null || memoryUsed === null) return undefined
    const [namespace, name] = [usage.namespaceAt(at), usage.nameAt(at)]
    const place = pods?.indexOf(namespace, name) ?? -1
    const node = place < 0 ? '' : (nodeOfPod(place) ?? '')
    return {
      name,
      namespace,
      node,
      cpu_usage: millicores * NANOCORES_PER_MILLICORE,
      memory_usage: memoryUsed,
      disk_usage: disk(at) ?? 0,
      ...capacity(node),
    }
  }
}

type Capacity = Pick<PodDocument, 'cpu_capacity' | 'memory_capacity' | 'disk_capacity'>
const NO_CAPACITY: Capacity = { cpu_capacity: 0, memory_capacity: 0, disk_capacity: 0 }

function capacities(cluster: ClusterState): (node: string) => Capacity {
  const usage = nodeUsage(cluster)
  const known = new Map<string, Capacity>()
  for (const [name, { capacity }] of cluster.parts.node?.items ?? []) {
    known.set(name, {
      cpu_capacity: millicoresOf(capacity.cpuCores) * NANOCORES_PER_MILLICORE,
      memory_capacity: capacity.memoryBytes ?? 0,
      disk_capacity: usage(name)?.diskCapacity ?? 0,
    })
  }
  return (node) => known.get(node) ?? NO_CAPACITY
}

/** What a snapshot says of its age. */
export interface SnapshotTimes {
  /** told as the time of a snapshot before the first read; ms since the Unix epoch */
  readonly startedAt: number
  readonly now: number
  /** a read is overdue after that long, ms */
  readonly staleAfterMs: number
}

/** When usage was read, as the documents tell it. @param source `NODE_USAGE` or `POD_USAGE` */
export const timestampOf = (cluster: ClusterState | undefined, source: string, startedAt: number): string =>
  rfc3339(cluster?.tables.get(source)?.freshness?.observedAt ?? startedAt)

/** Whether the newest read of usage, or of the nodes, failed or is overdue. */
export function isStale(cluster: ClusterState | undefined, source: string, times: SnapshotTimes): boolean {
  const usage = cluster?.tables.get(source)
  const { node } = cluster?.parts ?? {}
  if (!usage && times.now - times.startedAt < times.staleAfterMs) return false // nobody had the time yet
  return isOld(usage, times) || node?.outcome !== 'complete'
}

/** By the hub's clock: that of a collector may be wrong. */
const isOld = (usage: RowsState | undefined, { now, staleAfterMs }: SnapshotTimes): boolean =>
  usage?.outcome !== 'complete' || now - (usage.freshness?.receivedAt ?? 0) > staleAfterMs

/** The node document of a cluster; undefined: the cluster is not known yet. */
export function nodeSnapshot(
  cluster: ClusterState | undefined,
  nodes: Iterable<NodeSnapshot>,
  times: SnapshotTimes,
): NodeSnapshotDocument {
  return {
    timestamp: timestampOf(cluster, NODE_USAGE, times.startedAt),
    nodes: cluster ? nodeDocuments(cluster, nodes) : [],
    ...(isStale(cluster, NODE_USAGE, times) && { stale: true as const }),
  }
}

/** RFC 3339 in UTC, without zeros at the end of a fraction. @param ms since the Unix epoch */
export const rfc3339 = (ms: number): string => new Date(ms).toISOString().replace(/\.?0+Z$/, 'Z')

type NumberAt = (place: number) => number | null

function numbersOf(table: Table, field: string): NumberAt {
  const column = table.column(field)
  return (place) => ofType(column?.(place), 'number')
}

function textsOf(table: Table, field: string): (place: number) => string | null {
  const column = table.column(field)
  return (place) => ofType(column?.(place), 'string')
}

function ofType(value: JsonValue | undefined, type: 'number'): number | null
function ofType(value: JsonValue | undefined, type: 'string'): string | null
function ofType(value: JsonValue | undefined, type: 'number' | 'string'): unknown {
  return typeof value === type ? value : null
}

const millicoresOf = (cores: number | null): number => Math.ceil(Math.round((cores ?? 0) * 1e9) / 1e6)
const percentOf = (used: number, capacity: number): number => (capacity === 0 ? 0 : (used / capacity) * 100)
const byName = (a: NodeSnapshot, b: NodeSnapshot): number => (a.name < b.name ? -1 : 1)

function wholeBytes(text: string): number | undefined {
  const amount = parseQuantity(text)
  return amount === undefined ? undefined : amount < 0 ? Math.floor(amount) : Math.ceil(amount)
}
