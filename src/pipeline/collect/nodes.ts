import { isKubeError, type KubeObject, type NodeFacts, nodeMetrics, nodes, podFacts, pods } from '#kube'
import { type NodeSnapshot, parseBytes, parseQuantity, type ResourceAmounts } from '#model'
import { fed, foldOf, isForbidden, Kept, listOf, type Taker } from './fold.ts'
import { type Used, usedBy } from './node-metrics.ts'
import { type NodeLoad, PodSums } from './pod-sums.ts'
import type { Collector } from './types.ts'

const allNodes = listOf(nodes)
/** Shared with whoever wants pods as well. */
export const allPods = listOf(pods)
const measured = listOf(nodeMetrics, { isOptional: true })

/**
 * Nodes of one cluster with the sums of their pods, and the pods of the whole cluster: memory is linear in nodes and namespaces.
 * Without nodes a cluster is not known, so the round fails without them. Where only one of both may be read the other says so:
 * nodes without their pods have no sums, which is not 0. A metrics server that is missing, refuses or fails leaves nodes without
 * usage, never without themselves.
 */
export const nodeCollector: Collector = {
  name: 'nodes',
  types: ['node', 'podSummary'],
  reads: [allNodes, allPods, measured],
  critical: true,
  open({ onMalformed }) {
    const found = new Kept<NodeFacts>(isForbidden)
    const sums = new PodSums(onMalformed)
    const usage = new Kept<KubeObject>((error) => isKubeError(error))
    return foldOf([fed(allNodes, found), fed(allPods, factsInto(sums)), fed(measured, usage)], () => {
      const used = usedBy(usage.values())
      const load = (name: string) => (sums.error ? unread : sums.node(name))
      const snapshot = (node: NodeFacts) => nodeSnapshot(node, load(node.name), used.get(node.name), onMalformed)
      return {
        node: found.error ? { refused: found.error } : found.values().map(snapshot),
        podSummary: sums.error ? { refused: sums.error } : [sums.summary()],
      }
    })
  },
}

const factsInto = (sums: PodSums): Taker<KubeObject> => ({
  reset: () => sums.reset(),
  changed: (before, after) => sums.changed(before && podFacts(before), after && podFacts(after)),
  failed: (error) => sums.failed(error),
})

const unread = { pods: null, requested: null }

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
