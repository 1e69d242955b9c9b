/**
 * One client per cluster: credentials, TLS, connections, rate, deadline, circuit breaker, discovery, paged lists, watches
 * that go on by themselves, writes and server-side apply. Also where accesses come from: kubeconfig files and the pod we run in.
 *
 * Built-in kinds that are read by the thousand (pods, nodes, namespaces, deployments) come as facts: small projections,
 * read from protobuf without decoding the rest. Everything else is JSON, whole. Every failure is a KubeError whose `reason`
 * tells absent, forbidden and unreachable apart. TLS is verified unless an access says otherwise.
 */
export { type ReviewedAttributes, type ReviewedSubject, reviewAccess } from './access-review.ts'
export { Breaker, type BreakerOptions, type BreakerState } from './breaker.ts'
export { createKubeClient, type OwnedKubeClient } from './client.ts'
export { deploymentFacts } from './deployment-facts.ts'
export {
  isClusterTrouble,
  isConnectionTrouble,
  isKubeError,
  isUnanswered,
  KubeError,
  type KubeErrorReason,
  outcomeOf,
  throwOwnClose,
} from './errors.ts'
export { type InCluster, inClusterAccess } from './in-cluster.ts'
export {
  accessForContext,
  type KubeContext,
  type Kubeconfig,
  KubeconfigError,
  kubeconfigPaths,
  loadKubeconfig,
  mergeKubeconfigs,
} from './kubeconfig.ts'
export { kubeletSummaries } from './kubelet.ts'
export {
  claimMessage,
  cronJobMessage,
  daemonSetMessage,
  eventMessage,
  jobMessage,
  serviceMessage,
  statefulSetMessage,
  volumeMessage,
} from './messages.ts'
export type { NamespaceFacts } from './namespace-facts.ts'
export type { ConditionFacts, NodeAmounts, NodeFacts } from './node-facts.ts'
export { type InitRequests, type PodFacts, podFacts, type Requests } from './pod-facts.ts'
export { ClientPool, type ClientPoolOptions } from './pool.ts'
export { type Message, message, objectMeta, projected } from './projection.ts'
export {
  clusterOperators,
  clusterServiceVersions,
  clusterVersions,
  customResourceDefinitions,
  deployments,
  events,
  kubeletAddresses,
  leases,
  namespaces,
  nodeMetrics,
  nodes,
  nodesProxy,
  nodesStats,
  podMetrics,
  pods,
  routes,
  secrets,
  subscriptions,
  whole,
} from './resources.ts'
export type { KubeClientOptions } from './transport.ts'
export * from './types.ts'
export { isOlder } from './versions.ts'
