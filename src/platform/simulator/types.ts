import type { ApiObject, ResourceName } from '#apiserver'

/** Machines of one sort. */
export interface NodePool {
  readonly role: 'control-plane' | 'worker' | 'infra' | 'gpu'
  readonly count: number
  readonly cpuCores: number
  readonly memoryGiB: number
  /** NVIDIA devices per machine */
  readonly gpus?: number
  /** of the cloud, such as `m6i.2xlarge` */
  readonly machineType: string
}

/** What one simulated cluster is at its start. */
export interface ClusterScenario {
  /** DNS label: name of the context and of the path on the listener */
  readonly name: string
  readonly displayName: string
  readonly labels: Readonly<Record<string, string>>
  /** false: nothing listens at its address, and no world is built */
  readonly reachable: boolean
  /** what its nodes and services look like; OLM may be present on each */
  readonly distribution: 'openshift' | 'kubernetes' | 'k3s'
  /** as /version says it, such as v1.33.6 */
  readonly kubernetesVersion: string
  /** for `openshift` only, such as 4.20.14 */
  readonly openshiftVersion?: string
  readonly architecture: 'amd64' | 'arm64'
  readonly region: string
  readonly pools: readonly NodePool[]
  /** of the whole cluster, the system's own included, exactly as many at the start */
  readonly pods: number
  /** share of its workers that pods ask for, about; 0.1 to 0.85 */
  readonly load: number
  /** of OLM, by their names in the catalogue (objects/operators.ts) */
  readonly operators: readonly string[]
  /** whether metrics.k8s.io is served */
  readonly metrics: boolean
  /** how many of its Deployments and StatefulSets have a Service, at most; default: all of them */
  readonly services?: number
  readonly storage?: {
    /** of StatefulSets, at most; default: one for each of their pods */
    readonly claims?: number
    /** how many of them have lost their volume */
    readonly lost?: number
    /** further ones that wait, as no pod uses them */
    readonly unused?: number
  }
}

/** What the simulated clusters contain and how fast they live. */
export interface Scenario {
  readonly name: string
  readonly clusters: readonly ClusterScenario[]
  /** where `simulateFleet` is given none; default 1 */
  readonly seed?: number
  /** absent: nothing ever happens by itself, and the worlds need little memory */
  readonly pace?: Pace
}

/** How lively a simulated fleet is. */
export interface Pace {
  /** between two small changes of pods in one cluster, ms, on average */
  readonly churnMs: number
  /** between two happenings anywhere in the fleet, ms: shortest and longest */
  readonly happeningMs: readonly [number, number]
  /** stages that begin at fixed times after the start, so that there is something to see at once */
  readonly opening: readonly { readonly afterMs: number; readonly cluster: string; readonly stage: string }[]
}

/** Where a world writes its objects: an API store, or a map in tests. */
export interface ObjectSink {
  put(resource: ResourceName, object: ApiObject): unknown
  delete(resource: ResourceName, key: { readonly name: string; readonly namespace?: string }): unknown
}
