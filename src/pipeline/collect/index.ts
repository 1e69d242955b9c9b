/**
 * From objects of a cluster to snapshots and rows, and the rounds in which that is done.
 *
 *   KubeClient → Rounds: connection test → all reads at once → folds of the collectors → Batch (a part per type, rows by kind, or a failure)
 *              → CollectorLoop: one collector by its own times → its reads → its fold ⇄ watches → Batch (a step: rows)
 *
 * A collector declares what it reads and opens a fold, which is fed by events: those of a list that is polled, or of a watch.
 * One read feeds every collector that names it; the role a member must grant is generated from the reads. Rounds and loops
 * are those of the hub (pull) and of an agent beside a cluster (push). Absent, empty, forbidden and unreachable stay four values.
 */
import { clusterCollector, memberClusterCollector } from './cluster.ts'
import { clusterOperatorCollector } from './cluster-operators.ts'
import { deploymentCollector } from './deployments.ts'
import { namespaceCollector } from './namespaces.ts'
import { nodeCollector } from './nodes.ts'
import { operatorCollector } from './operators.ts'
import type { Collector } from './types.ts'

/** The built-in collectors. Adding one is one line here. */
export const collectors: readonly Collector[] = [
  nodeCollector,
  clusterCollector,
  namespaceCollector,
  deploymentCollector,
  operatorCollector,
  clusterOperatorCollector,
]

/** Those of an agent whose cluster is a member: it says as well what the cluster claims. @param own claims of the agent itself */
export const memberCollectors = (own: Readonly<Record<string, string>>): readonly Collector[] =>
  collectors.map((one) => (one === clusterCollector ? memberClusterCollector(own) : one))

export { collectOne } from './collect-one.ts'
export { saidOf } from './collection.ts'
export { CollectorLoop, type CollectorLoopOptions, type SourceStatus } from './collector-loop.ts'
export { allDeployments } from './deployments.ts'
export { fed, foldOf, isForbidden, listOf, type Taker } from './fold.ts'
export { isKubeletWay, Kubelets, type KubeletWay, kubeletWays, type ReadSummary, summaryByProxy } from './kubelets.ts'
export { clusterRoleFor, memberRoleYaml, type RoleRule } from './member-role.ts'
export type { Relisting } from './mirror.ts'
export { allPods } from './nodes.ts'
export { requestsOf } from './pod-requests.ts'
export { Pulses } from './pulses.ts'
export { fields, instant, items, text, textMap } from './read.ts'
export { collectRound, failureOf, type RoundOptions, silentRound } from './round.ts'
export { Rounds, type RoundsOptions } from './rounds.ts'
export { nextOnGrid } from './schedule.ts'
export { batchesOf, stepOf } from './steps.ts'
export type { Collected, Collector, Fold, FoldContext, OwnCollector, Read, ReadEvent, Times } from './types.ts'
export {
  NODE_USAGE,
  nodeUsageFields,
  POD_USAGE,
  podUsageFields,
  usageCollectors,
  usageNames,
  usageRights,
} from './usage.ts'
export { MAX_WATCHES, WatchBudget } from './watch-budget.ts'
