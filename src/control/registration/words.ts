import { memberGroup } from '#authority'
import { CLUSTER_GROUP, TRANSPORT_ANNOTATION } from '#kinds'

/*
 * Words of Open Cluster Management, exactly as its agents, tools and manifests write them; those of its kinds are in #kinds.
 */

/** "false" on a built-in set keeps the hub from restoring it */
export const AUTO_UPDATE = `${CLUSTER_GROUP}/autoupdate`
/** On what the hub makes for members, so that it is followed by one watch. */
export const MADE_FOR_MEMBERS = 'clusterpulse.io/registration'
export const CLEANUP_PRIORITY = 'open-cluster-management.io/cleanup-priority'
export const SKIP_CLOCK_CHECK = 'registration.open-cluster-management.io/skip-clock-sync-check'
export const ACCEPTED_AUTOMATICALLY = 'open-cluster-management.io/automatically-accepted-on'
/** Who speaks for the cluster: `stream`, our agent; `api`, an agent of Open Cluster Management. Written by the hub where nobody did. */
export const TRANSPORT = TRANSPORT_ANNOTATION

export const FINALIZERS = {
  /** its roles are to be taken away */
  rights: `${CLUSTER_GROUP}/api-resource-cleanup`,
  /** its works and add-ons are to be taken away */
  resources: `${CLUSTER_GROUP}/resource-cleanup`,
  /** of a work, and of the binding that lets the agent end it */
  work: `${CLUSTER_GROUP}/manifest-work-cleanup`,
} as const

export const CONDITIONS = {
  accepted: 'HubAcceptedManagedCluster',
  joined: 'ManagedClusterJoined',
  available: 'ManagedClusterConditionAvailable',
  clock: 'ManagedClusterConditionClockSynced',
  deleting: 'Deleting',
  /** ours: whether one agent speaks for the cluster; said once two did */
  singleAgent: 'SingleAgent',
} as const

export const TAINTS = {
  unavailable: `${CLUSTER_GROUP}/unavailable`,
  unreachable: `${CLUSTER_GROUP}/unreachable`,
} as const

/** In the namespace of the cluster; renewed by its agent. */
export const LEASE_NAME = 'managed-cluster-lease'

/** Of the members of a cluster: both receive its rights. The first is in the certificate of its agent. */
export const groupsOf = (cluster: string): readonly [string, string] => [
  memberGroup(cluster),
  `open-cluster-management:${cluster}`,
]
