import type { PodFacts } from '#kube'
import { parseQuantity } from '#model'

/** What of a pod the scheduler counts. */
export type PodRequests = Pick<PodFacts, 'containers' | 'initContainers' | 'overhead' | 'podRequests'>

export interface Requested {
  cpuCores: number
  memoryBytes: number
}

/**
 * What a pod takes from its node in the eyes of the scheduler: the larger of what its containers need together and what
 * starting up needs at its worst moment, plus overhead. An unreadable quantity counts as nothing and is reported.
 * @see Kubernetes documentation, "Resource sharing within containers" and KEP-753 for restartable init containers
 */
export function requestsOf(pod: PodRequests, onMalformed: (text: string) => void): Requested {
  return {
    cpuCores: amount(pod, 'cpu', onMalformed),
    memoryBytes: Math.ceil(amount(pod, 'memory', onMalformed)),
  }
}

/** Pods of a cluster ask for the same few amounts again and again. */
const known = new Map<string, number>()
const MAX_KNOWN = 4096

function quantityOf(written: string): number | undefined {
  const value = known.get(written)
  if (value !== undefined) return value
  if (known.size >= MAX_KNOWN) known.clear()
  const parsed = parseQuantity(written)
  if (parsed !== undefined) known.set(written, parsed)
  return parsed
}

function amount(pod: PodRequests, resource: 'cpu' | 'memory', onMalformed: (text: string) => void): number {
  const read = (requests: { readonly cpu: string; readonly memory: string } | null) => {
    const written = requests?.[resource] ?? ''
    if (written === '') return 0
    const value = quantityOf(written)
    if (value === undefined) onMalformed(written)
    return value ?? 0
  }
  const overhead = read(pod.overhead)
  if (pod.podRequests && pod.podRequests[resource] !== '') return read(pod.podRequests) + overhead

  let together = 0
  for (const container of pod.containers) together += read(container)
  let besideInit = 0
  let worstStart = 0
  for (const container of pod.initContainers) {
    const own = read(container)
    const isSidecar = container.restartPolicy === 'Always'
    if (isSidecar) besideInit += own
    worstStart = Math.max(worstStart, isSidecar ? besideInit : besideInit + own)
  }
  return Math.max(together + besideInit, worstStart) + overhead
}
