/**
 * Functions from a cluster to snapshots, and the round that runs them.
 *
 *   KubeClient → collectRound: connection test → all collectors at once → Batch (a part per type, or a failure)
 *
 * A collector declares what it reads; the role a member must grant is generated from that. The same collectors run inside
 * the hub (pull) and beside a cluster (push). Absent, empty, forbidden and unreachable stay four values.
 */
import { clusterCollector } from './cluster.ts'
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

export { clusterRoleFor, memberRoleYaml, type RoleRule } from './member-role.ts'
export { requestsOf } from './pod-requests.ts'
export { fields, instant, items, text, textMap } from './read.ts'
export { collectRound, failureOf, type RoundOptions, roundLimitMs } from './round.ts'
export type { CollectContext, Collected, Collector, Reads } from './types.ts'
