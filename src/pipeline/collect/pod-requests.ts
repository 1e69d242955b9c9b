import { parseQuantity } from '#model'

/** What one container asks for, as written; undefined: it does not ask. */
export interface ContainerRequests {
  readonly cpu?: string | undefined
  readonly memory?: string | undefined
  /** An init container with restart policy Always: it goes on running beside the main containers. */
  readonly restartable?: boolean
}

/** What the scheduler looks at in a pod. */
export interface PodRequests {
  readonly containers: readonly ContainerRequests[]
  readonly initContainers: readonly ContainerRequests[]
  readonly overhead?: ContainerRequests | undefined
  /** requests of the pod as a whole; where given they replace the sum of its containers */
  readonly pod?: ContainerRequests | undefined
}

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

function amount(pod: PodRequests, resource: 'cpu' | 'memory', onMalformed: (text: string) => void): number {
  const read = (requests: ContainerRequests | undefined) => {
    const written = requests?.[resource]
    if (written === undefined || written === '') return 0
    const value = parseQuantity(written)
    if (value === undefined) onMalformed(written)
    return value ?? 0
  }
  const overhead = read(pod.overhead)
  if (pod.pod?.[resource]) return read(pod.pod) + overhead

  let together = 0
  for (const container of pod.containers) together += read(container)
  let besideInit = 0
  let worstStart = 0
  for (const container of pod.initContainers) {
    const own = read(container)
    if (container.restartable) besideInit += own
    worstStart = Math.max(worstStart, container.restartable ? besideInit : besideInit + own)
  }
  return Math.max(together + besideInit, worstStart) + overhead
}
