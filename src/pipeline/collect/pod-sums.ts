import type { PodFacts } from '#kube'
import type { PodCounts, PodSummary } from '#model'
import { type PodRequests, type Requested, requestsOf } from './pod-requests.ts'

/** What we take from a pod. */
export type PodLoad = PodRequests & Pick<PodFacts, 'namespace' | 'nodeName' | 'phase'>

/** What a pod adds to the sums. Whole numbers of the finest unit there is: sums of such as 0.1 would drift as pods come and go. */
export interface CountedPod {
  readonly namespace: string
  /** '' while unscheduled */
  readonly nodeName: string
  readonly phase: Phase
  /** 0 of a pod that is finished */
  readonly nanoCores: number
  readonly memoryBytes: number
}

export interface NodeLoad {
  readonly pods: PodCounts
  readonly requested: Requested
}

interface Sums {
  readonly pods: PodCounts
  nanoCores: number
  memoryBytes: number
  /** as it was last told; undefined: it has changed since */
  told: NodeLoad | undefined
}

export function countedPod(pod: PodLoad, onMalformed: (text: string) => void = () => undefined): CountedPod {
  const { namespace, nodeName } = pod
  const phase = phaseOf(pod.phase)
  const isFinished = phase === 'succeeded' || phase === 'failed'
  if (isFinished || nodeName === '') return { namespace, nodeName, phase, nanoCores: 0, memoryBytes: 0 }
  const { cpuCores, memoryBytes } = requestsOf(pod, onMalformed)
  return { namespace, nodeName, phase, nanoCores: Math.round(cpuCores * 1e9), memoryBytes }
}

/** Pods added up as they come, change and go: one sum per node and namespace. */
export class PodSums {
  readonly #nodes = new Map<string, Sums>()
  readonly #namespaces = new Map<string, PodCounts>()
  #all = noPods()
  #unscheduled = 0

  reset(): void {
    this.#nodes.clear()
    this.#namespaces.clear()
    this.#all = noPods()
    this.#unscheduled = 0
  }

  changed(before: CountedPod | undefined, after: CountedPod | undefined): void {
    if (before) this.#count(before, -1)
    if (after) this.#count(after, 1)
  }

  #count({ namespace, nodeName, phase, nanoCores, memoryBytes }: CountedPod, by: 1 | -1): void {
    countIn(this.#all, phase, by)
    const counts = ownIn(this.#namespaces, namespace, noPods)
    countIn(counts, phase, by)
    if (counts.total === 0) this.#namespaces.delete(namespace)
    if (nodeName === '') {
      if (phase !== 'succeeded' && phase !== 'failed') this.#unscheduled += by
      return
    }
    const node = ownIn(this.#nodes, nodeName, noLoad)
    node.told = undefined
    countIn(node.pods, phase, by)
    if (node.pods.total === 0) this.#nodes.delete(nodeName)
    node.nanoCores += by * nanoCores
    node.memoryBytes += by * memoryBytes
  }

  /** The sums of one node, the same value until they change; zeros where no pod is on it. */
  node(name: string): NodeLoad {
    const sums = this.#nodes.get(name)
    if (!sums) return NO_LOAD
    const { pods, nanoCores, memoryBytes } = sums
    // A millionth of a core is finer than anything Kubernetes schedules by.
    sums.told ??= { pods: { ...pods }, requested: { cpuCores: Math.round(nanoCores / 1e3) / 1e6, memoryBytes } }
    return sums.told
  }

  summary(): PodSummary {
    const sorted = [...this.#namespaces].sort(([a], [b]) => (a < b ? -1 : 1))
    const byNamespace = Object.fromEntries(sorted.map(([name, counts]) => [name, { ...counts }]))
    return { name: 'pods', counts: { ...this.#all }, unscheduled: this.#unscheduled, byNamespace }
  }
}

type Phase = Exclude<keyof PodCounts, 'total'>

const noPods = (): PodCounts => ({ total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 })
const noLoad = (): Sums => ({ pods: noPods(), nanoCores: 0, memoryBytes: 0, told: undefined })
const NO_LOAD: NodeLoad = Object.freeze({ pods: noPods(), requested: { cpuCores: 0, memoryBytes: 0 } })

function countIn(counts: PodCounts, phase: Phase, by: 1 | -1): void {
  counts.total += by
  counts[phase] += by
}

function ownIn<T>(all: Map<string, T>, name: string, empty: () => T): T {
  const own = all.get(name) ?? empty()
  all.set(name, own)
  return own
}

function phaseOf(phase: string): Phase {
  switch (phase) {
    case 'Running':
      return 'running'
    case 'Pending':
      return 'pending'
    case 'Failed':
      return 'failed'
    case 'Succeeded':
      return 'succeeded'
    default:
      return 'unknown'
  }
}
