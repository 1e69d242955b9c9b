import { isKubeError, type KubeObject, type NodeFacts, nodeMetrics, nodes, pods } from '#kube'
import { type NodeSnapshot, parseBytes, parseQuantity, type ResourceAmounts, sameJson } from '#model'
import { fed, foldOf, isForbidden, Kept, keptWhole, listOf } from './fold.ts'
import { type Used, usedBy } from './node-metrics.ts'
import { PodLoads } from './pod-loads.ts'
import { type NodeLoad, PodSums } from './pod-sums.ts'
import type { Collector } from './types.ts'

const allNodes = listOf(nodes)
/** Shared with whoever wants pods as well. */
export const allPods = listOf(pods)
const measured = listOf(nodeMetrics, { isOptional: true, verbs: ['get', 'list'] })

/**
 * Nodes of one cluster with the sums of their pods, and the pods of the whole cluster: memory is linear in nodes and
 * namespaces, and some 150 bytes for each pod.
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
    const found = new Kept({ key: ({ name }: NodeFacts) => name, of: (facts) => facts, canDoWithout: isForbidden })
    const sums = new PodSums()
    const pods = new PodLoads(sums, onMalformed)
    const usage = keptWhole((error) => isKubeError(error))
    const made = new MadeOnce(onMalformed)
    return foldOf([fed(allNodes, found), fed(allPods, pods), fed(measured, usage)], () => {
      const load = (name: string) => (pods.error ? unread : sums.node(name))
      return {
        node: found.error ? { refused: found.error } : made.of(found.values(), load, usage.values()),
        podSummary: pods.error ? { refused: pods.error } : [sums.summary()],
      }
    })
  },
}

/** Snapshots of nodes: each stays the very same until something of its node moves. */
class MadeOnce {
  readonly #onMalformed: (text: string) => void
  #made = new Map<
    string,
    { readonly facts: NodeFacts; readonly load: Load; readonly used: Used | undefined; readonly node: NodeSnapshot }
  >()
  #usage: readonly KubeObject[] = []
  #used: ReadonlyMap<string, Used> = new Map()

  constructor(onMalformed: (text: string) => void) {
    this.#onMalformed = onMalformed
  }

  of(
    nodes: readonly NodeFacts[],
    loadOf: (name: string) => Load,
    usage: readonly KubeObject[],
  ): readonly NodeSnapshot[] {
    if (usage !== this.#usage) this.#used = usedBy(usage)
    this.#usage = usage
    const before = this.#made
    this.#made = new Map(
      nodes.map((facts) => {
        const [load, used, known] = [loadOf(facts.name), this.#used.get(facts.name), before.get(facts.name)]
        if (known?.facts === facts && known.load === load && sameJson(known.used, used)) return [facts.name, known]
        const node = nodeSnapshot(facts, load, used, this.#onMalformed)
        return [facts.name, { facts, load, used, node }]
      }),
    )
    return [...this.#made.values()].map(({ node }) => node)
  }
}

type Load = NodeLoad | typeof unread

const unread = { pods: null, requested: null }

const ROLE = 'node-role.kubernetes.io/'

/** A node with what its pods and the metrics server add. */
export function nodeSnapshot(
  { addresses, capacity, allocatable, conditions, taints, ...facts }: NodeFacts,
  load: Load,
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
