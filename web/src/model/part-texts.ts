import type { RowType } from '../contract.ts'

interface PartText {
  /** plural, lower case */
  readonly noun: string
  /** what has to be there for the cluster to serve it */
  readonly served: string
  /** the rule that lets us read it */
  readonly grant: string
}

/** What is told of as read or not: types with rows, and the pods, of which there are sums alone. */
export type ReadType = RowType | 'podSummary'

export const partTexts: Readonly<Record<string, PartText>> & Readonly<Record<ReadType, PartText>> = {
  node: {
    noun: 'nodes',
    served: 'nodes',
    grant: 'apiGroups: [""]\nresources: ["nodes", "pods"]\nverbs: ["get", "list"]',
  },
  podSummary: { noun: 'pods', served: 'pods', grant: 'apiGroups: [""]\nresources: ["pods"]\nverbs: ["get", "list"]' },
  namespace: {
    noun: 'namespaces',
    served: 'namespaces',
    grant: 'apiGroups: [""]\nresources: ["namespaces"]\nverbs: ["get", "list"]',
  },
  deployment: {
    noun: 'deployments',
    served: 'deployments',
    grant: 'apiGroups: ["apps"]\nresources: ["deployments"]\nverbs: ["get", "list"]',
  },
  operator: {
    noun: 'operators',
    served: 'OLM (operators.coreos.com)',
    grant:
      'apiGroups: ["operators.coreos.com"]\nresources: ["subscriptions", "clusterserviceversions"]\nverbs: ["get", "list"]',
  },
  clusterOperator: {
    noun: 'cluster operators',
    served: 'ClusterOperators (config.openshift.io, OpenShift only)',
    grant: 'apiGroups: ["config.openshift.io"]\nresources: ["clusteroperators"]\nverbs: ["get", "list"]',
  },
}
