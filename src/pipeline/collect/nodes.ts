import { isKubeError, type KubeClient, type NodeFacts, nodeMetrics, nodes, pods } from '#kube'
import { type NodeSnapshot, parseBytes, parseQuantity, type ResourceAmounts } from '#model'
import { measuredUsage, type Used } from './node-metrics.ts'
import { type NodeLoad, PodSums } from './pod-sums.ts'
import type { Collector, Refused } from './types.ts'

/**
 * Nodes of one cluster with the sums of their pods, and the pods of the whole cluster. Paged lists, no watch: time is
 * linear in pods, memory in nodes and namespaces. Without nodes a cluster is not known, so the round fails without them. Where
 * only one of both may be read the other says so: nodes without their pods have no sums, which is not 0.
 */
export const nodeCollector: Collector = {
  name: 'nodes',
  types: ['node', 'podSummary'],
  reads: [nodes, pods, nodeMetrics],
  critical: true,
  everyMs: 0,
  async collect({ kube, onMalformed }, signal) {
    const [found, sums, usage] = await Promise.all([
      unlessRefused(kube.listAll(nodes, { signal })),
      unlessRefused(podSums(kube, onMalformed, signal)),
      measuredUsage(kube, signal),
    ])
    const load = (name: string) => ('refused' in sums ? unread : sums.node(name))
    return {
      node:
        'refused' in found
          ? found
          : found.map((node) => nodeSnapshot(node, load(node.name), usage.get(node.name), onMalformed)),
      podSummary: 'refused' in sums ? sums : [sums.summary()],
    }
  },
}

const unread = { pods: null, requested: null }

function unlessRefused<T>(reading: Promise<T>): Promise<T | Refused> {
  return reading.catch((error: unknown) => {
    if (isKubeError(error, 'forbidden')) return { refused: error }
    throw error
  })
}

/** A list may expire between two pages (a slow cluster, a compacted store): then it is added up anew, twice at most. */
async function podSums(
  kube: KubeClient,
  onMalformed: ((text: string) => void) | undefined,
  signal: AbortSignal,
): Promise<PodSums> {
  for (let attempt = 0; ; attempt++) {
    const sums = new PodSums(onMalformed)
    try {
      for await (const page of kube.list(pods, { signal })) for (const pod of page.items) sums.add(pod)
      return sums
    } catch (error) {
      if (attempt === 2 || !isKubeError(error, 'expired')) throw error
    }
  }
}

const ROLE = 'node-role.kubernetes.io/'

/** A node with what its pods and the metrics server add. */
export function nodeSnapshot(
  { addresses, capacity, allocatable, conditions, taints, ...facts }: NodeFacts,
  load: NodeLoad | typeof unread,
  used: Used | undefined,
  onMalformed: (text: string) => void = () => undefined,
): NodeSnapshot {
  const address = (type: string) => addresses.findLast((entry) => entry.type === type)?.address ?? ''
  return {
    ...facts,
    ready: readiness(conditions.findLast(({ type }) => type === 'Ready')?.status),
    roles: rolesOf(facts.labels),
    conditions: [...conditions],
    taints: [...taints],
    capacity: amounts(capacity, onMalformed),
    allocatable: amounts(allocatable, onMalformed),
    ...load,
    used: used ?? null,
    internalIp: address('InternalIP'),
    externalIp: address('ExternalIP'),
    hostname: address('Hostname'),
  }
}

/** A kubelet that stopped reporting has condition status Unknown: that node is not ready. No condition: nobody knows. */
export function readiness(status: string | undefined): NodeSnapshot['ready'] {
  if (status === undefined) return 'unknown'
  return status === 'True' ? 'ready' : 'notReady'
}

/** The roles that labels name, sorted; `node-role.kubernetes.io/` with nothing behind it names none. */
export function rolesOf(labels: Readonly<Record<string, string>>): string[] {
  return Object.keys(labels)
    .filter((label) => label.startsWith(ROLE) && label.length > ROLE.length)
    .map((label) => label.slice(ROLE.length))
    .sort()
}

/** Amounts of a capacity in base units; what is missing or unreadable is null, never 0. */
export function amounts(written: NodeFacts['capacity'], onMalformed: (text: string) => void): ResourceAmounts {
  const read = (quantity: string, parse: (text: string) => number | undefined) => {
    if (quantity === '') return null
    const amount = parse(quantity)
    if (amount === undefined) onMalformed(quantity)
    return amount ?? null
  }
  return {
    cpuCores: read(written.cpu, parseQuantity),
    memoryBytes: read(written.memory, parseBytes),
    storageBytes: read(written.ephemeralStorage, parseBytes),
    pods: read(written.pods, parseBytes),
  }
}
