import type { PodFacts } from '#kube'
import type { PodCounts, PodSummary } from '#model'
import { type PodRequests, type Requested, requestsOf } from './pod-requests.ts'

/** What we take from a pod. */
export type PodLoad = PodRequests & Pick<PodFacts, 'namespace' | 'nodeName' | 'phase'>

export interface NodeLoad {
  readonly pods: PodCounts
  readonly requested: Requested
}

/** Adds pods up as they stream by; holds one sum per node and namespace, never a pod. */
export class PodSums {
  readonly #onMalformed: (text: string) => void
  readonly #nodes = new Map<string, NodeLoad>()
  readonly #namespaces = new Map<string, PodCounts>()
  readonly #all = noPods()
  #unscheduled = 0

  constructor(onMalformed: (text: string) => void = () => undefined) {
    this.#onMalformed = onMalformed
  }

  add(pod: PodLoad): void {
    const phase = phaseOf(pod.phase)
    const isFinished = phase === 'succeeded' || phase === 'failed'
    countIn(this.#all, phase)
    countIn(this.#namespace(pod.namespace), phase)
    if (pod.nodeName === '') {
      if (!isFinished) this.#unscheduled++
      return
    }
    const node = this.#node(pod.nodeName)
    countIn(node.pods, phase)
    if (isFinished) return
    const { cpuCores, memoryBytes } = requestsOf(pod, this.#onMalformed)
    node.requested.cpuCores += cpuCores
    node.requested.memoryBytes += memoryBytes
  }

  /** The sums of one node; zeros where no pod is on it. */
  node(name: string): NodeLoad {
    const { pods, requested } = this.#nodes.get(name) ?? { pods: noPods(), requested: noRequests() }
    return {
      pods,
      // Sums of such as 0.1 drift; a millionth of a core is finer than anything Kubernetes schedules by.
      requested: { cpuCores: Math.round(requested.cpuCores * 1e6) / 1e6, memoryBytes: requested.memoryBytes },
    }
  }

  summary(): PodSummary {
    const byNamespace = Object.fromEntries([...this.#namespaces].sort(([a], [b]) => (a < b ? -1 : 1)))
    return { name: 'pods', counts: this.#all, unscheduled: this.#unscheduled, byNamespace }
  }

  #node(name: string): NodeLoad {
    let sums = this.#nodes.get(name)
    if (!sums) {
      sums = { pods: noPods(), requested: noRequests() }
      this.#nodes.set(name, sums)
    }
    return sums
  }

  #namespace(name: string): PodCounts {
    let counts = this.#namespaces.get(name)
    if (!counts) {
      counts = noPods()
      this.#namespaces.set(name, counts)
    }
    return counts
  }
}

type Phase = Exclude<keyof PodCounts, 'total'>

const noPods = (): PodCounts => ({ total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 })
const noRequests = (): Requested => ({ cpuCores: 0, memoryBytes: 0 })

function countIn(counts: PodCounts, phase: Phase): void {
  counts.total++
  counts[phase]++
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
