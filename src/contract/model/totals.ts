import { isNotReady } from './readiness.ts'
import type { SeenNode, SeenPodSummary } from './seen.ts'
import type {
  ClusterOperatorSnapshot,
  DeploymentSnapshot,
  NamespaceSnapshot,
  OperatorSnapshot,
  PodCounts,
} from './snapshots.ts'

/** What the sums are taken over: all of a cluster, or what one principal may see. Absent or null: never read, or hidden. */
export interface TotalsInput {
  readonly nodes?: Iterable<SeenNode> | null
  readonly podSummary?: SeenPodSummary | null
  readonly namespaces?: Iterable<NamespaceSnapshot> | null
  readonly deployments?: Iterable<DeploymentSnapshot> | null
  /** of the whole cluster, from a collector that names none: counts instead of `deployments`. Not for who sees a part */
  readonly deploymentCount?: number | undefined
  readonly operators?: Iterable<OperatorSnapshot> | null
  readonly clusterOperators?: Iterable<ClusterOperatorSnapshot> | null
}

/** Sums over nodes that gave a number; null where none did. */
export interface CapacityTotals {
  readonly capacity: number | null
  readonly allocatable: number | null
  readonly requested: number | null
  readonly used: number | null
}

/** The sums of one cluster. `null`: what they are taken over was never read. */
export interface ClusterTotals {
  /** `notReady` holds nodes whose readiness is unknown as well, cordoned ones of which nothing else is told aside; `unschedulable`
   * counts beside readiness */
  readonly nodes: {
    readonly total: number
    readonly ready: number
    readonly notReady: number
    readonly unschedulable: number
  } | null
  /** of the whole cluster where it was read, else over the pods of the nodes; null where those of a node are hidden */
  readonly pods: PodCounts | null
  readonly namespaces: number | null
  /** `ready`: as many replicas ready as are wanted; null where they were only counted */
  readonly deployments: { readonly total: number; readonly ready: number | null } | null
  /** `failing`: phase Failed */
  readonly operators: { readonly total: number; readonly failing: number } | null
  readonly clusterOperators: { readonly total: number; readonly degraded: number; readonly unavailable: number } | null
  readonly cpuCores: CapacityTotals
  readonly memoryBytes: CapacityTotals
}

/** Sums of a cluster, in cores, bytes and counts. What was not read is null, never zero. */
export function clusterTotals(input: TotalsInput): ClusterTotals {
  const nodes = listOf(input.nodes)
  const deployments = listOf(input.deployments)
  const operators = listOf(input.operators)
  const clusterOperators = listOf(input.clusterOperators)
  return {
    nodes: nodes && {
      total: nodes.length,
      ready: count(nodes, (node) => node.ready === 'ready'),
      notReady: count(nodes, isNotReady),
      unschedulable: count(nodes, (node) => node.unschedulable),
    },
    pods: input.podSummary?.counts ?? (nodes && podTotals(nodes)),
    namespaces: listOf(input.namespaces)?.length ?? null,
    deployments: input.deploymentCount === undefined ? deploymentTotals(deployments) : counted(input.deploymentCount),
    operators: operators && {
      total: operators.length,
      failing: count(operators, ({ status }) => status === 'Failed'),
    },
    clusterOperators: clusterOperators && {
      total: clusterOperators.length,
      degraded: count(clusterOperators, ({ degraded }) => degraded),
      unavailable: count(clusterOperators, ({ available }) => !available),
    },
    cpuCores: capacityTotals(nodes ?? [], 'cpuCores'),
    memoryBytes: capacityTotals(nodes ?? [], 'memoryBytes'),
  }
}

function deploymentTotals(deployments: readonly DeploymentSnapshot[] | null): ClusterTotals['deployments'] {
  if (!deployments) return null
  return { total: deployments.length, ready: count(deployments, ({ ready, replicas }) => ready >= replicas) }
}

const counted = (total: number) => ({ total, ready: null })

function capacityTotals(nodes: readonly SeenNode[], what: 'cpuCores' | 'memoryBytes'): CapacityTotals {
  return {
    capacity: sum(nodes, (node) => node.capacity[what]),
    allocatable: sum(nodes, (node) => node.allocatable[what]),
    requested: sum(nodes, (node) => node.requested?.[what] ?? null),
    used: sum(nodes, (node) => node.used?.[what] ?? null),
  }
}

function podTotals(nodes: readonly SeenNode[]): PodCounts | null {
  const counts = nodes.map(({ pods }) => pods).filter((pods) => pods !== null)
  // No nodes have no pods to sum, and say nothing of those that wait for one.
  if (counts.length === 0 || counts.length < nodes.length) return null
  const of = (phase: keyof PodCounts) => counts.reduce((total, pods) => total + pods[phase], 0)
  return {
    total: of('total'),
    running: of('running'),
    pending: of('pending'),
    failed: of('failed'),
    succeeded: of('succeeded'),
    unknown: of('unknown'),
  }
}

function listOf<T>(items: Iterable<T> | null | undefined): readonly T[] | null {
  if (!items) return null
  return Array.isArray(items) ? (items as readonly T[]) : [...items]
}

function count<T>(items: readonly T[], is: (item: T) => boolean): number {
  let found = 0
  for (const item of items) if (is(item)) found++
  return found
}

function sum<T>(items: readonly T[], amount: (item: T) => number | null): number | null {
  let total: number | null = null
  for (const item of items) {
    const value = amount(item)
    if (value !== null) total = (total ?? 0) + value
  }
  return total
}

/** Pods that are not completed: what those that run are held against, on the page and in a terminal. */
export const unfinishedPods = ({ total, succeeded }: Pick<PodCounts, 'total' | 'succeeded'>): number =>
  total - succeeded
