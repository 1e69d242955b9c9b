import { deploymentMessage, kubeletMessage, podMessage } from './messages.ts'
import { type NamespaceFacts, namespaceFromJson, namespaceFromProtobuf } from './namespace-facts.ts'
import { type NodeFacts, nodeFromJson, nodeFromProtobuf } from './node-facts.ts'
import { projected } from './projection.ts'
import type { KubeObject, Resource } from './types.ts'

const core = { group: '', version: 'v1' } as const
const olm = { group: 'operators.coreos.com', version: 'v1alpha1', namespaced: true } as const
const openshift = { group: 'config.openshift.io', version: 'v1', namespaced: false } as const

/** Nodes, as facts. */
export const nodes: Resource<NodeFacts> = {
  ...core,
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
  fromJson: nodeFromJson,
  fromProtobuf: nodeFromProtobuf,
}

/** Pods, as far as sums and rows need them. */
export const pods: Resource = {
  ...core,
  plural: 'pods',
  kind: 'Pod',
  namespaced: true,
  fromProtobuf: projected(podMessage),
}

/** Namespaces, as facts. */
export const namespaces: Resource<NamespaceFacts> = {
  ...core,
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
  fromJson: namespaceFromJson,
  fromProtobuf: namespaceFromProtobuf,
}

/** Deployments, as far as snapshots and rows need them. */
export const deployments: Resource = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
  fromProtobuf: projected(deploymentMessage),
}

/** Kube events, whole. */
export const events: Resource = { ...core, plural: 'events', kind: 'Event', namespaced: true }
/** Secrets, whole. */
export const secrets: Resource = { ...core, plural: 'secrets', kind: 'Secret', namespaced: true }
/** Leases, for leader election. */
export const leases: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
}
/** OLM's subscriptions. */
export const subscriptions: Resource = { ...olm, plural: 'subscriptions', kind: 'Subscription' }
/** OLM's ClusterServiceVersions. */
export const clusterServiceVersions: Resource = {
  ...olm,
  plural: 'clusterserviceversions',
  kind: 'ClusterServiceVersion',
}
/** OpenShift's ClusterVersion, of which there is one, "version". */
export const clusterVersions: Resource = { ...openshift, plural: 'clusterversions', kind: 'ClusterVersion' }
/** OpenShift's ClusterOperators. */
export const clusterOperators: Resource = { ...openshift, plural: 'clusteroperators', kind: 'ClusterOperator' }
/** OpenShift's routes. */
export const routes: Resource = {
  group: 'route.openshift.io',
  version: 'v1',
  plural: 'routes',
  kind: 'Route',
  namespaced: true,
}
/** Measured usage of nodes, where a metrics server runs. */
export const nodeMetrics: Resource = {
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  plural: 'nodes',
  kind: 'NodeMetrics',
  namespaced: false,
}
/** Measured usage of pods, as that of nodes. */
export const podMetrics: Resource = {
  group: 'metrics.k8s.io',
  version: 'v1beta1',
  plural: 'pods',
  kind: 'PodMetrics',
  namespaced: true,
}
/** Nodes, as far as their kubelets are reached by them. */
export const kubeletAddresses: Resource = {
  ...core,
  plural: 'nodes',
  kind: 'Node',
  namespaced: false,
  fromProtobuf: projected(kubeletMessage),
}
/** Names the right to reach all of a kubelet through the API server. Nothing is listed by it. */
export const nodesProxy = {
  ...core,
  plural: 'nodes/proxy',
  kind: 'NodeProxyOptions',
  namespaced: false,
} as const satisfies Resource
/** Names the right to read what a kubelet measures. Nothing is listed by it. */
export const nodesStats = {
  ...core,
  plural: 'nodes/stats',
  kind: 'NodeStats',
  namespaced: false,
} as const satisfies Resource
/** Definitions of custom resources. */
export const customResourceDefinitions: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  plural: 'customresourcedefinitions',
  kind: 'CustomResourceDefinition',
  namespaced: false,
}

/** The same resource with its objects whole, as JSON. */
export function whole(resource: Resource<unknown>): Resource<KubeObject> {
  const { group, version, plural, kind, namespaced } = resource
  return { group, version, plural, kind, namespaced }
}
