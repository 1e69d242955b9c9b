import type { OperatorProduct } from './objects/operator-catalogue.ts'
import type { PodKin, PodTemplate } from './objects/pod-template.ts'
import type { NodePool } from './types.ts'

/**
 * What a world knows of its things: little, and only what changes or tells them apart. Full API objects are drawn from
 * these when they are written (objects/). Times are milliseconds since the Unix epoch.
 */
export interface NodeFacts {
  readonly name: string
  readonly uid: string
  readonly index: number
  readonly pool: NodePool
  readonly zone: string
  readonly createdAt: number
  /** lost: the kubelet does not report; failing: it reports that it is not ready */
  state: 'ready' | 'lost' | 'failing'
  cordoned: boolean
  stateSince: number
  heartbeatAt: number
  /** the scheduler's sums over pods that are not finished */
  requestedCores: number
  requestedBytes: number
  podCount: number
}

/** The phase of a pod follows from its state: see `phaseOf`. */
export type PodState =
  | 'running'
  | 'starting'
  | 'crashing'
  | 'imageMissing'
  | 'unschedulable'
  | 'succeeded'
  | 'failed'
  | 'evicted'
  | 'lost'

export interface PodFacts {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly workload: WorkloadFacts
  /** of the workload's revision when the pod was made */
  readonly kin: PodKin
  readonly revision: number
  /** of a CronJob's pods: the Job they belong to */
  readonly job: JobFacts | undefined
  readonly createdAt: number
  /** undefined until a node was found */
  node: string | undefined
  ip: string
  state: PodState
  stateSince: number
  restarts: number
  /** whether its container was killed for its memory the last time */
  outOfMemory: boolean
}

export interface WorkloadFacts {
  readonly kind: 'Deployment' | 'DaemonSet' | 'StatefulSet' | 'CronJob'
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly createdAt: number
  /** DaemonSets: runs on every node, control plane too; others: where it may be placed */
  readonly placement: NodePool['role'] | 'everywhere'
  /** what the scenario gave it; life moves around this */
  readonly usualReplicas: number
  replicas: number
  template: PodTemplate
  revision: number
  generation: number
  changedAt: number
  /** whether each of its pods has a volume of its own */
  readonly hasClaims: boolean
  /** undefined where nothing reaches it by name */
  readonly serviceUid: string | undefined
}

/** One revision of a Deployment. */
export interface ReplicaSetFacts {
  readonly workload: WorkloadFacts
  readonly revision: number
  readonly template: PodTemplate
  readonly createdAt: number
}

/** One run of a CronJob. */
export interface JobFacts {
  readonly name: string
  readonly uid: string
  readonly cronJob: WorkloadFacts
  readonly scheduledAt: number
  state: 'running' | 'complete' | 'failed'
  endedAt: number | undefined
  /** pods that failed */
  failed: number
  /** when the next pod is made after one that failed */
  retryAt: number
}

export interface ClaimFacts {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly createdAt: number
  readonly app: string
  readonly labels: Record<string, string>
  /** Pending: no pod uses it yet, or its volume is being made; Lost: its volume is gone */
  phase: 'Pending' | 'Bound' | 'Lost'
  /** whether no volume can be made for now */
  stuck: boolean
}

export interface OperatorFacts {
  readonly product: OperatorProduct
  readonly namespace: string
  readonly uid: string
  readonly createdAt: number
  version: string
  phase: 'Succeeded' | 'Installing' | 'Failed' | 'Pending' | 'InstallReady'
  reason: string
  message: string
  changedAt: number
}

export interface ClusterOperatorFacts {
  readonly name: string
  readonly uid: string
  readonly createdAt: number
  version: string
  available: boolean
  progressing: boolean
  degraded: boolean
  reason: string
  message: string
  changedAt: number
}

export interface ClusterVersionFacts {
  readonly uid: string
  readonly clusterId: string
  readonly channel: string
  readonly createdAt: number
  /** newest first */
  history: readonly {
    readonly version: string
    readonly state: 'Completed' | 'Partial'
    readonly startedAt: number
    readonly completedAt: number | undefined
  }[]
  /** versions on offer, the next one first */
  updates: readonly string[]
  /** of the running update, 0 to 1; undefined when there is none */
  progress: number | undefined
  changedAt: number
}

/** What an event is about. */
export interface EventObject {
  readonly apiVersion: string
  readonly kind: string
  /** '' where it is in none */
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** What a component said of an object; said again, it is the same one. */
export interface EventFacts {
  readonly about: EventObject
  readonly isWarning: boolean
  readonly reason: string
  readonly message: string
  readonly component: string
  /** the node it runs on; undefined: it is part of the control plane */
  readonly host: string | undefined
  readonly firstAt: number
  count: number
  lastAt: number
}

export interface NamespaceFacts {
  readonly name: string
  readonly uid: string
  readonly createdAt: number
  readonly labels: Readonly<Record<string, string>>
}

export type PodPhase = 'Running' | 'Pending' | 'Succeeded' | 'Failed' | 'Unknown'

const PHASES: Readonly<Record<PodState, PodPhase>> = {
  running: 'Running',
  crashing: 'Running', // between two restarts the phase stays
  starting: 'Pending',
  imageMissing: 'Pending',
  unschedulable: 'Pending',
  succeeded: 'Succeeded',
  failed: 'Failed',
  evicted: 'Failed',
  lost: 'Unknown',
}

export const phaseOf = (pod: PodFacts): PodPhase => PHASES[pod.state]

/** Holds its share of the node no longer. */
export const isFinished = (pod: PodFacts): boolean =>
  pod.state === 'succeeded' || pod.state === 'failed' || pod.state === 'evicted'

export const podKey = (pod: { readonly namespace: string; readonly name: string }): string =>
  `${pod.namespace}/${pod.name}`
