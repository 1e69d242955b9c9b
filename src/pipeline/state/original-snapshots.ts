import type {
  ClusterOperatorSnapshot,
  ClusterSnapshot,
  ConnectionFacts,
  FleetEvent,
  NamespaceSnapshot,
  NodeSnapshot,
  OperatorSnapshot,
  PodCounts,
  ResourceCondition,
  Source,
} from '#model'
import {
  amountIn,
  countIn,
  type Fields,
  fieldsOf,
  flagIn,
  isFields,
  listIn,
  mapIn,
  nameIn,
  objectOf,
  saidIn,
  textIn,
  textsIn,
  timeIn,
  wholeIn,
} from './original-fields.ts'

/*
 * Documents of an original manager as snapshots. Its percentages are shares of requests, so nothing here was measured; an
 * amount of 0 is one it could not read. undefined: it has no name, so it is none.
 */

const LEAST_INTERVAL_MS = 30_000
const TIMEOUT_MS = 10_000
const DAY_S = 86_400

/** The original works at least every 30 s and never waits less than it says; 0 is "not given". */
export function connectionOf(spec: Fields, mode: Source): ConnectionFacts {
  const monitoring = fieldsOf(spec.monitoring)
  const reference = fieldsOf(spec.credentialsRef)
  return {
    displayName: textIn(spec, 'displayName'),
    endpoint: textIn(spec, 'endpoint'),
    labels: mapIn(spec, 'labels'),
    mode,
    intervalMs: Math.max(LEAST_INTERVAL_MS, Math.min(countIn(monitoring, 'interval'), DAY_S) * 1000),
    timeoutMs: Math.min(countIn(monitoring, 'timeout'), DAY_S) * 1000 || TIMEOUT_MS,
    insecureSkipTlsVerify: false, // it is not stored
    credentialsRef: { name: textIn(reference, 'name'), namespace: textIn(reference, 'namespace') },
  }
}

export function nodeOf(document: Fields): NodeSnapshot | undefined {
  const name = nameIn(document, 'name')
  if (name === undefined) return undefined
  const conditions = conditionsOf(document)
  return {
    name,
    createdAt: null,
    ...readinessOf(textIn(document, 'status'), conditions),
    roles: textsIn(document, 'roles').sort(),
    conditions,
    capacity: amountsOf(document, 'capacity'),
    allocatable: amountsOf(document, 'allocatable'),
    requested:
      'cpu_requested' in document
        ? { cpuCores: countIn(document, 'cpu_requested'), memoryBytes: countIn(document, 'memory_requested') }
        : null,
    used: null,
    pods: 'pods_total' in document ? podsOf(document) : null,
    kernelVersion: textIn(document, 'kernel_version'),
    osImage: textIn(document, 'os_image'),
    containerRuntime: textIn(document, 'container_runtime'),
    kubeletVersion: textIn(document, 'kubelet_version'),
    architecture: textIn(document, 'architecture'),
    internalIp: textIn(document, 'internal_ip'),
    externalIp: textIn(document, 'external_ip'),
    hostname: textIn(document, 'hostname'),
    labels: mapIn(document, 'labels'),
    annotations: mapIn(document, 'annotations'),
    taints: listIn(document, 'taints').map((taint) => ({
      key: textIn(taint, 'key'),
      value: textIn(taint, 'value'),
      effect: textIn(taint, 'effect'),
    })),
    imagesCount: wholeIn(document, 'images_count'),
    volumesAttached: wholeIn(document, 'volumes_attached'),
  }
}

/** A cordon hides the readiness in `status`; the condition has it all the same. */
function readinessOf(
  status: string,
  conditions: readonly ResourceCondition[],
): Pick<NodeSnapshot, 'ready' | 'unschedulable'> {
  const said = status === 'SchedulingDisabled' ? conditions.find(({ type }) => type === 'Ready')?.status : undefined
  const isReady = status === 'Ready' || said === 'True'
  const isNotReady = status === 'NotReady' || said === 'False'
  return {
    ready: isReady ? 'ready' : isNotReady ? 'notReady' : 'unknown',
    unschedulable: status === 'SchedulingDisabled',
  }
}

const amountsOf = (document: Fields, what: 'capacity' | 'allocatable'): NodeSnapshot['capacity'] => ({
  cpuCores: amountIn(document, `cpu_${what}`),
  memoryBytes: amountIn(document, `memory_${what}`),
  storageBytes: amountIn(document, `storage_${what}`),
  pods: amountIn(document, `pods_${what}`) && wholeIn(document, `pods_${what}`),
})

function podsOf(document: Fields): PodCounts {
  const [running, pending, failed, succeeded] = ['running', 'pending', 'failed', 'succeeded'].map((phase) =>
    wholeIn(document, `pods_${phase}`),
  ) as [number, number, number, number]
  const total = wholeIn(document, 'pods_total')
  return {
    ...{ total, running, pending, failed, succeeded },
    unknown: Math.max(0, total - running - pending - failed - succeeded),
  }
}

const conditionsOf = (document: Fields): ResourceCondition[] =>
  listIn(document, 'conditions').map((condition) => ({
    type: textIn(condition, 'type'),
    status: textIn(condition, 'status'),
    reason: textIn(condition, 'reason'),
    message: textIn(condition, 'message'),
    lastTransitionAt: timeIn(condition, 'last_transition_time'),
  }))

/** Labels and phase are not stored. */
export const namespaceOf = (name: unknown): NamespaceSnapshot | undefined =>
  nameIn({ name }, 'name') === undefined
    ? undefined
    : { name: name as string, phase: 'Unknown', createdAt: null, labels: {} } // a text, as the line above found

export function operatorOf(document: Fields): OperatorSnapshot | undefined {
  const csv = nameIn(document, 'name')
  if (csv === undefined) return undefined
  const namespace = textIn(document, 'namespace')
  const all = textsIn(document, 'all_available_namespaces')
  return {
    name: `${namespace}/${csv}`,
    csv,
    displayName: textIn(document, 'display_name'),
    version: textIn(document, 'version'),
    provider: textIn(document, 'provider'),
    status: textIn(document, 'status') || 'Unknown',
    namespace,
    installModes: textsIn(document, 'install_modes'),
    installMode: textIn(document, 'install_mode'),
    clusterWide: flagIn(document, 'is_cluster_wide'),
    availableInNamespaces: all.length > 0 ? all : textsIn(document, 'available_in_namespaces'),
    createdAt: timeIn(document, 'created_at'),
    updatedAt: timeIn(document, 'updated_at'),
  }
}

export function clusterOperatorOf(document: Fields): ClusterOperatorSnapshot | undefined {
  const name = nameIn(document, 'name')
  if (name === undefined) return undefined
  return {
    name,
    version: textIn(document, 'version'),
    available: flagIn(document, 'available'),
    progressing: flagIn(document, 'progressing'),
    degraded: flagIn(document, 'degraded'),
    upgradeable: flagIn(document, 'upgradeable'),
    message: textIn(document, 'message'),
    reason: textIn(document, 'reason'),
    lastTransitionAt: timeIn(document, 'last_transition_time'),
    conditions: conditionsOf(document),
    versions: listIn(document, 'versions').map((one) => ({
      name: textIn(one, 'name'),
      version: textIn(one, 'version'),
    })),
    relatedObjects: listIn(document, 'related_objects').map((one) => ({
      group: textIn(one, 'group'),
      resource: textIn(one, 'resource'),
      namespace: textIn(one, 'namespace'),
      name: textIn(one, 'name'),
    })),
  }
}

const known = (text: string | null): string | null => (text === 'unknown' ? null : text)

export function clusterOf(info: Fields, hasClusterOperators: boolean): ClusterSnapshot {
  const [platform, channel, clusterId] = [saidIn(info, 'platform'), saidIn(info, 'channel'), saidIn(info, 'cluster_id')]
  const isOpenShift = hasClusterOperators || platform === 'OpenShift' || channel !== null || clusterId !== null
  return {
    name: 'cluster',
    apiUrl: textIn(info, 'api_url'),
    distribution: isOpenShift ? 'openshift' : 'kubernetes',
    version: known(saidIn(info, 'version')),
    platform: known(platform),
    channel,
    clusterId,
    image: saidIn(info, 'image'),
    updateVersion: saidIn(info, 'available_update_version'),
    versionState: saidIn(info, 'version_state'),
    versionStartedAt: timeIn(info, 'version_started_time'),
    versionCompletedAt: timeIn(info, 'version_completion_time'),
    consoleUrl: saidIn(info, 'console_url'),
    conditions: conditionsOf(info),
  }
}

/**
 * An event of the cluster's list. Those of a registry of the same name stand in it too (API-Q25) and are none of the cluster.
 * Of its data what is no scalar is left out: nothing that an original manager writes.
 */
export function eventOf(text: string, cluster: string): FleetEvent | undefined {
  const document = objectOf(text)
  const at = document && timeIn(document, 'timestamp')
  const type = document && nameIn(document, 'type')
  if (!document || !type || typeof at !== 'number' || type.startsWith('registry.')) return undefined
  const data = isFields(document.data) ? Object.entries(document.data).filter(([, value]) => !isNested(value)) : null
  return { type, cluster, at, data: data && Object.fromEntries(data) }
}

const isNested = (value: unknown): boolean => typeof value === 'object' && value !== null
