/** Group of clusters, their sets and claims. */
export const CLUSTER_GROUP = 'cluster.open-cluster-management.io'
/** Group of add-ons. */
export const ADDON_GROUP = 'addon.open-cluster-management.io'
/** Group of works. */
export const WORK_GROUP = 'work.open-cluster-management.io'
/** Group of the operator's own objects. */
export const OPERATOR_GROUP = 'operator.open-cluster-management.io'
/** A group without kinds: it names what may be allowed about a ManagedCluster, such as `managedclusters/accept`. */
export const REGISTER_GROUP = 'register.open-cluster-management.io'

/** Label of a ManagedCluster: the exclusive set it is in. */
export { CLUSTER_SET_LABEL } from '#model'
/** The set of clusters that name none. */
export const DEFAULT_CLUSTER_SET = 'default'
/** The set of all clusters. */
export const GLOBAL_CLUSTER_SET = 'global'

/** Label of a certificate request, a namespace and what gives rights: the cluster it belongs to. */
export const CLUSTER_NAME_LABEL = 'open-cluster-management.io/cluster-name'

/** Annotation of a ManagedCluster: which of its certificates count on its stream, or since when none does. */
export const CERTIFICATES_ANNOTATION = 'clusterpulse.io/certificates'
/** Annotation of a ManagedCluster: whether its agent speaks on our stream (`stream`) or writes at the hub's API (`api`). */
export const TRANSPORT_ANNOTATION = 'clusterpulse.io/transport'

/** Annotation of a ManagedCluster: which machines wait to be accepted as it, with key and address. */
export const ASKED_ANNOTATION = 'clusterpulse.io/asked-by'

/** Seconds between two heartbeats of a cluster whose spec says 0 or nothing. */
export const DEFAULT_LEASE_SECONDS = 60
