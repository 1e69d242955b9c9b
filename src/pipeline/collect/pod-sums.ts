import type { PodFacts } from '#kube'
import type { PodCounts, PodSummary } from '#model'
import { isForbidden, type Taker } from './fold.ts'
import { type PodRequests, type Requested, requestsOf } from './pod-requests.ts'

/** What we take from a pod. */
export type PodLoad = PodRequests & Pick<PodFacts, 'namespace' | 'nodeName' | 'phase'>

export interface NodeLoad {
  readonly pods: PodCounts
  readonly requested: Requested
}

/** Whole numbers of the finest unit there is: sums of such as 0.1 would drift as pods come and go, and end below zero. */
interface Sums {
  readonly pods: PodCounts
  nanoCores: number
  memoryBytes: number
}

/** Pods added up as they come, change and go: one sum per node and namespace is kept, never a pod. */
export class PodSums implements Taker<PodLoad> {
  readonly #onMalformed: (text: string) => void
  readonly #nodes = new Map<string, Sums>()
  readonly #namespaces = new Map<string, PodCounts>()
  #all = noPods()
  #unscheduled = 0
  /** why pods may not be read */
  error: unknown

  constructor(onMalformed: (text: string) => void = () => undefined) {
    this.#onMalformed = onMalformed
  }

  reset(): void {
    this.#nodes.clear()
    this.#namespaces.clear()
    this.#all = noPods()
    this.#unscheduled = 0
    this.error = undefined
  }

  changed(before: PodLoad | undefined, after: PodLoad | undefined): void {
    if (before) this.#count(before, -1)
    if (after) this.#count(after, 1)
  }

  failed(error: unknown): void {
    if (!isForbidden(error)) throw error
    this.error = error
  }

  #count(pod: PodLoad, by: 1 | -1): void {
    const phase = phaseOf(pod.phase)
    const isFinished = phase === 'succeeded' || phase === 'failed'
    countIn(this.#all, phase, by)
    const counts = ownIn(this.#namespaces, pod.namespace, noPods)
    countIn(counts, phase, by)
    if (counts.total === 0) this.#namespaces.delete(pod.namespace)
    if (pod.nodeName === '') {
      if (!isFinished) this.#unscheduled += by
      return
    }
    const node = ownIn(this.#nodes, pod.nodeName, noLoad)
    countIn(node.pods, phase, by)
    if (node.pods.total === 0) this.#nodes.delete(pod.nodeName)
    if (isFinished) return
    const { cpuCores, memoryBytes } = requestsOf(pod, by > 0 ? this.#onMalformed : () => undefined)
    node.nanoCores += by * Math.round(cpuCores * 1e9)
    node.memoryBytes += by * memoryBytes
  }

  /** The sums of one node; zeros where no pod is on it. */
  node(name: string): NodeLoad {
    const { pods, nanoCores, memoryBytes } = this.#nodes.get(name) ?? noLoad()
    // A millionth of a core is finer than anything Kubernetes schedules by.
    return { pods: { ...pods }, requested: { cpuCores: Math.round(nanoCores / 1e3) / 1e6, memoryBytes } }
  }

  summary(): PodSummary {
    const sorted = [...this.#namespaces].sort(([a], [b]) => (a < b ? -1 : 1))
    const byNamespace = Object.fromEntries(sorted.map(([name, counts]) => [name, { ...counts }]))
    return { name: 'pods', counts: { ...this.#all }, unscheduled: this.#unscheduled, byNamespace }
  }
}

type Phase = Exclude<keyof PodCounts, 'total'>

const noPods = (): PodCounts => ({ total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 })
const noLoad = (): Sums => ({ pods: noPods(), nanoCores: 0, memoryBytes: 0 })

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
