import type { ClusterStatus, ConnectionFacts, FleetEvent } from './fleet.ts'
import type { Readiness } from './readiness.ts'
import type { SeenNode } from './seen.ts'
import type {
  ClusterOperatorSnapshot,
  ClusterSnapshot,
  NamespaceSnapshot,
  NodeSnapshot,
  OperatorSnapshot,
  ResourceCondition,
} from './snapshots.ts'
import type { ClusterTotals } from './totals.ts'

/*
 * The documented documents of /api/v1 and of the shared Redis: snake case (specs in camel case), never a null where a list
 * or map belongs, times in RFC 3339 with whole seconds, percent instead of ratios. What is not known is 0 or empty there.
 */

/** What stands for "no time" in a document that must have one. */
export const ZERO_TIME = '0001-01-01T00:00:00Z'

// RFC 3339 knows the years 0001 to 9999.
const FIRST_TIME = Date.parse(ZERO_TIME)
const LAST_TIME = Date.parse('9999-12-31T23:59:59Z')

/** RFC 3339 in UTC with whole seconds; the zero time where it is not known or beyond what that can say. */
export function documentTime(at: number | null): string {
  if (at === null || !(at >= FIRST_TIME && at <= LAST_TIME)) return ZERO_TIME
  return new Date(Math.floor(at / 1000) * 1000).toISOString().replace('.000Z', 'Z')
}

/** JSON as the documented writers write it: `<`, `>`, `&` and the line separators escaped inside texts. */
export function documentText(document: unknown): string {
  return JSON.stringify(document).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/** `credentialsRef` is for the documented Redis key only: nothing else may show it. */
export type SpecDocument = ReturnType<typeof specDocument>
/** The connection of a cluster as documented; intervals in seconds. */
export function specDocument(connection: ConnectionFacts) {
  const { displayName, endpoint, credentialsRef, labels, intervalMs, timeoutMs } = connection
  return {
    displayName,
    endpoint,
    credentialsRef: { name: credentialsRef.name, namespace: credentialsRef.namespace },
    labels: sorted(labels),
    monitoring: { interval: intervalMs / 1000, timeout: timeoutMs / 1000 },
  }
}

/** `last_check` is left out before the first round. */
export type StatusDocument = ReturnType<typeof statusDocument>
/** Health of a cluster as documented. */
export function statusDocument({ health, message, checkedAt }: ClusterStatus) {
  return { health, message, ...(checkedAt !== null && { last_check: documentTime(checkedAt) }) }
}

/** Keys only where the cluster said so. `endpoint` stands in for an address the cluster did not give. */
export function infoDocument(cluster: ClusterSnapshot, endpoint: string): Record<string, unknown> {
  const isTrue = (type: string) => cluster.conditions.some((c) => c.type === type && c.status === 'True') || null
  const time = (at: number | null) => at !== null && documentTime(at)
  const conditions = cluster.conditions.map(({ type, status, message, reason }) => ({ type, status, message, reason }))
  const all: Record<string, unknown> = {
    api_url: cluster.apiUrl || endpoint,
    available_update_version: cluster.updateVersion,
    channel: cluster.channel,
    cluster_id: cluster.clusterId,
    conditions: conditions.length > 0 && conditions,
    console_url: cluster.consoleUrl,
    image: cluster.image,
    is_available: isTrue('Available'),
    is_degraded: isTrue('Degraded'),
    is_progressing: isTrue('Progressing'),
    platform: cluster.platform,
    version: cluster.version ?? 'unknown',
    version_completion_time: time(cluster.versionCompletedAt),
    version_started_time: time(cluster.versionStartedAt),
    version_state: cluster.versionState,
  }
  const known = Object.entries(all).filter(([, value]) => value !== null && value !== false)
  // What a collector of the original tells of OpenShift says nothing of updates.
  const isStatusRead = [cluster.image, cluster.versionState, cluster.updateVersion].some((said) => said !== null)
  if (cluster.distribution === 'openshift' && isStatusRead)
    known.push(['update_available', cluster.updateVersion !== null])
  return sorted(Object.fromEntries(known))
}

/**
 * Totals of a cluster. `nodes_ready` counts nodes whose documented status is Ready: cordoned ones are not among them. A count of
 * what could not be read is left out: 0 would be an answer.
 * @param nodes null: not read
 */
export type MetricsDocument = ReturnType<typeof metricsDocument>
/**
 * The Redis document `cluster:<name>:metrics`: cores, bytes and counts, as the original writes it. `at` in ms since the Unix
 * epoch.
 */
export function metricsDocument(totals: ClusterTotals, nodes: Iterable<Readiness> | null, at: number | null) {
  const { namespaces, pods, deployments } = totals
  return {
    timestamp: documentTime(at),
    ...(nodes && {
      nodes: totals.nodes?.total ?? 0,
      nodes_ready: [...nodes].filter((node) => nodeStatus(node) === 'Ready').length,
    }),
    ...(namespaces !== null && { namespaces }),
    ...(pods && { pods: pods.total, pods_running: pods.running }),
    ...(nodes && {
      cpu_capacity: totals.cpuCores.capacity ?? 0,
      memory_capacity: totals.memoryBytes.capacity ?? 0,
    }),
    ...(deployments && { deployments: deployments.total }),
  }
}

/** Names of namespaces as documented. */
export type NamespacesDocument = ReturnType<typeof namespacesDocument>
/** Names of namespaces, sorted, as documented. */
export function namespacesDocument(namespaces: Iterable<NamespaceSnapshot>, at: number | null) {
  const names = [...namespaces].map(({ name }) => name).sort()
  return { namespaces: names, count: names.length, timestamp: documentTime(at) }
}

/** One word for a node, as the documents have it. NotReady is never hidden by a cordon. */
export function nodeStatus(node: Readiness): 'Ready' | 'NotReady' | 'SchedulingDisabled' | 'Unknown' {
  if (node.ready === 'notReady') return 'NotReady'
  if (node.unschedulable) return 'SchedulingDisabled'
  return node.ready === 'ready' ? 'Ready' : 'Unknown'
}

/**
 * Percent of what is allocatable: measured where metrics.k8s.io is served, else the share that pods requested.
 * @returns null where neither is known
 */
export function nodeUsagePercent(node: NodeSnapshot): { readonly cpu: number; readonly memory: number } | null {
  const amounts = node.used ?? node.requested
  if (!amounts) return null
  return {
    cpu: percent(amounts.cpuCores, node.allocatable.cpuCores),
    memory: percent(amounts.memoryBytes, node.allocatable.memoryBytes),
  }
}

/** What comes from pods that may not be read, or seen, is left out. */
export type NodeDocument = ReturnType<typeof nodeDocument>
/** One node as documented: percent instead of ratios. @param observedAt ms since the Unix epoch; null: not known */
export function nodeDocument(node: NodeSnapshot, observedAt: number | null) {
  const { pods, requested } = node
  const usage = nodeUsagePercent(node)
  return {
    name: node.name,
    timestamp: documentTime(observedAt),
    status: nodeStatus(node),
    roles: [...node.roles],
    conditions: node.conditions.map(conditionDocument),
    cpu_capacity: node.capacity.cpuCores ?? 0,
    memory_capacity: node.capacity.memoryBytes ?? 0,
    storage_capacity: node.capacity.storageBytes ?? 0,
    pods_capacity: node.capacity.pods ?? 0,
    cpu_allocatable: node.allocatable.cpuCores ?? 0,
    memory_allocatable: node.allocatable.memoryBytes ?? 0,
    storage_allocatable: node.allocatable.storageBytes ?? 0,
    pods_allocatable: node.allocatable.pods ?? 0,
    ...(requested && { cpu_requested: requested.cpuCores, memory_requested: requested.memoryBytes }),
    ...(usage && { cpu_usage_percent: usage.cpu, memory_usage_percent: usage.memory }),
    ...(pods && {
      pods_running: pods.running,
      pods_pending: pods.pending,
      pods_failed: pods.failed,
      pods_succeeded: pods.succeeded,
      pods_total: pods.total,
    }),
    kernel_version: node.kernelVersion,
    os_image: node.osImage,
    container_runtime: node.containerRuntime,
    kubelet_version: node.kubeletVersion,
    architecture: node.architecture,
    labels: sorted(node.labels),
    annotations: sorted(node.annotations),
    taints: node.taints.map(({ key, value, effect }) => ({ key, value, effect })),
    internal_ip: node.internalIp,
    external_ip: node.externalIp,
    hostname: node.hostname,
    images_count: node.imagesCount,
    volumes_attached: node.volumesAttached,
    // Beyond the documented fields, which readers ignore: what `status` and the percentages mean here.
    unschedulable: node.unschedulable,
    ...(usage && { usage_source: node.used ? 'measured' : 'requested' }),
  }
}

/**
 * The document of a node for somebody who may not see all of it: fields of what is hidden are not there at all.
 * @param usage whether they may see measurements
 */
export function seenNodeDocument(node: SeenNode, observedAt: number | null, usage: boolean): Partial<NodeDocument> {
  const document: Partial<NodeDocument> = nodeDocument(node, observedAt)
  if (usage) return document
  const { cpu_usage_percent, memory_usage_percent, usage_source, ...rest } = document
  return rest
}

/** One point of a node's documented series. */
export type NodeSampleDocument = ReturnType<typeof nodeSampleDocument>
/** One sample of a node as documented. @param at ms since the Unix epoch */
export function nodeSampleDocument(node: NodeSnapshot, at: number) {
  const { pods, requested } = node
  const usage = nodeUsagePercent(node)
  return {
    timestamp: documentTime(at),
    ...(usage && { cpu_usage: usage.cpu, memory_usage: usage.memory }),
    ...(requested && { cpu_requested: requested.cpuCores, memory_requested: requested.memoryBytes }),
    ...(pods && { pods_running: pods.running, pods_pending: pods.pending, pods_total: pods.total }),
  }
}

/** Summary of the nodes of a cluster as documented. */
export type NodesSummaryDocument = ReturnType<typeof nodesSummaryDocument>
/** Summary of the nodes of a cluster as documented. */
export function nodesSummaryDocument(nodes: readonly NodeSnapshot[], totals: ClusterTotals, at: number | null) {
  const having = (status: string) => nodes.filter((node) => nodeStatus(node) === status).length
  const usage = nodes.map(nodeUsagePercent).filter((known) => known !== null)
  const mean = (what: 'cpu' | 'memory') =>
    usage.length === 0 ? 0 : usage.reduce((sum, known) => sum + known[what], 0) / usage.length
  const isUsageKnown = nodes.length === 0 || usage.length > 0
  return {
    total: nodes.length,
    ready: having('Ready'),
    not_ready: having('NotReady'),
    scheduling_disabled: having('SchedulingDisabled'),
    by_role: tally(nodes.flatMap(({ roles }) => roles)),
    total_cpu_capacity: totals.cpuCores.capacity ?? 0,
    total_memory_capacity: totals.memoryBytes.capacity ?? 0,
    ...(isUsageKnown && { avg_cpu_usage: mean('cpu'), avg_memory_usage: mean('memory') }),
    timestamp: documentTime(at),
  }
}

/** Namespaces named in a document; the rest only in `all_available_namespaces`. */
const NAMESPACES_SHOWN = 20

/** @param arrivedAt stands for times that the collector does not tell, as those of the original do not */
export type OperatorDocument = ReturnType<typeof operatorDocument>
/** One operator of OLM as documented. @param arrivedAt ms since the Unix epoch; null: not known */
export function operatorDocument(operator: OperatorSnapshot, arrivedAt: number | null) {
  const all = [...operator.availableInNamespaces]
  const everywhere = operator.clusterWide || (all.length === 1 && all[0] === '*')
  const isCut = !everywhere && all.length > NAMESPACES_SHOWN
  return {
    name: operator.csv,
    display_name: operator.displayName,
    version: operator.version,
    status: operator.status,
    namespace: operator.namespace,
    installed_namespace: operator.namespace,
    install_modes: [...operator.installModes],
    install_mode: operator.installMode,
    provider: operator.provider,
    created_at: documentTime(operator.createdAt ?? arrivedAt),
    updated_at: documentTime(operator.updatedAt ?? operator.createdAt ?? arrivedAt),
    is_cluster_wide: operator.clusterWide,
    available_in_namespaces: isCut ? all.slice(0, NAMESPACES_SHOWN) : all,
    available_count: all.length,
    available_namespaces_detail: everywhere
      ? 'All namespaces'
      : isCut
        ? `${all.length} namespaces (showing first ${NAMESPACES_SHOWN})`
        : all.join(', '),
    ...(isCut && { all_available_namespaces: all }),
  }
}

/** Summary of the operators of a cluster as documented. */
export type OperatorsSummaryDocument = ReturnType<typeof operatorsSummaryDocument>
/** Summary of the operators of a cluster as documented. */
export function operatorsSummaryDocument(operators: readonly OperatorSnapshot[]) {
  const scoped = operators.filter((operator) => !operator.clusterWide)
  return {
    total: operators.length,
    by_status: tally(operators.map(({ status }) => status || 'Unknown')),
    by_namespace: tally(scoped.map(({ namespace }) => namespace).filter((namespace) => namespace !== '')),
    by_install_mode: { cluster_wide: operators.length - scoped.length, namespace_scoped: scoped.length },
  }
}

/** @param arrivedAt stands for a time that the collector does not tell; conditions have the zero time then, as documented */
export type ClusterOperatorDocument = ReturnType<typeof clusterOperatorDocument>
/** One OpenShift cluster operator as documented. @param arrivedAt ms since the Unix epoch; null: not known */
export function clusterOperatorDocument(operator: ClusterOperatorSnapshot, arrivedAt: number | null) {
  return {
    name: operator.name,
    version: operator.version,
    available: operator.available,
    progressing: operator.progressing,
    degraded: operator.degraded,
    upgradeable: operator.upgradeable,
    message: operator.message,
    reason: operator.reason,
    last_transition_time: documentTime(operator.lastTransitionAt ?? arrivedAt),
    conditions: operator.conditions.map(({ type, status, lastTransitionAt, reason, message }) => ({
      type,
      status,
      last_transition_time: documentTime(lastTransitionAt),
      reason,
      message,
    })),
    versions: operator.versions.map(({ name, version }) => ({ name, version })),
    related_objects: operator.relatedObjects.map(({ group, resource, namespace, name }) => ({
      group,
      resource,
      namespace,
      name,
    })),
  }
}

/** The short document of one ClusterOperator, under a key of its own. */
export type ClusterOperatorStateDocument = ReturnType<typeof clusterOperatorStateDocument>
/** The state of one OpenShift cluster operator as documented. */
export function clusterOperatorStateDocument(operator: ClusterOperatorSnapshot, at: number | null) {
  const { available, degraded, progressing, version, message } = operator
  return { available, degraded, progressing, version, message, timestamp: documentTime(at) }
}

/** Summary of the OpenShift cluster operators of a cluster as documented. */
export type ClusterOperatorsSummaryDocument = ReturnType<typeof clusterOperatorsSummaryDocument>
/** Summary of the OpenShift cluster operators of a cluster as documented. */
export function clusterOperatorsSummaryDocument(operators: readonly ClusterOperatorSnapshot[], at: number | null) {
  const issues = operators.flatMap(({ name, degraded, available, message }) => {
    if (degraded) return [`${name}: degraded - ${message}`]
    return available ? [] : [`${name}: not available - ${message}`]
  })
  const having = (what: 'available' | 'degraded' | 'progressing' | 'upgradeable') =>
    operators.filter((operator) => operator[what]).length
  return {
    total: operators.length,
    available: having('available'),
    degraded: having('degraded'),
    progressing: having('progressing'),
    upgradeable: having('upgradeable'),
    timestamp: documentTime(at),
    all_healthy: issues.length === 0,
    has_issues: issues.length > 0,
    ...(issues.length > 0 && { issues }),
  }
}

/** One event as documented. */
export type EventDocument = ReturnType<typeof eventDocument>
/** One event as documented. */
export function eventDocument({ type, cluster, at, data }: FleetEvent) {
  return { type, cluster, timestamp: documentTime(at), data: data && sorted(data) }
}

function conditionDocument({ type, status, reason, message, lastTransitionAt }: ResourceCondition) {
  return { type, status, reason, message, last_transition_time: documentTime(lastTransitionAt) }
}

function percent(amount: number, of: number | null): number {
  return of !== null && of > 0 ? (amount / of) * 100 : 0
}

// Null prototype: a label or role may be called like something every object has.
function sorted<V>(map: Readonly<Record<string, V>>): Record<string, V> {
  const copy: Record<string, V> = Object.create(null)
  for (const key of Object.keys(map).sort()) copy[key] = map[key] as V
  return copy
}

function tally(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = Object.create(null)
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return sorted(counts)
}
