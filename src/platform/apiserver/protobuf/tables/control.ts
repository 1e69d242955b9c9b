import type { Tables } from '../table.ts'

/** k8s.io/api/coordination/v1. */
export const coordination: Tables = {
  Lease: '1 metadata: meta.ObjectMeta, 2 spec: LeaseSpec',
  LeaseSpec: `
    1 holderIdentity: string!, 2 leaseDurationSeconds: int32!, 3 acquireTime: microtime, 4 renewTime: microtime,
    5 leaseTransitions: int32!, 6 strategy: string!, 7 preferredHolder: string!`,
}

/** k8s.io/api/events/v1. */
export const events: Tables = {
  Event: `
    1 metadata: meta.ObjectMeta, 2 eventTime: microtime, 3 series: EventSeries, 4 reportingController: string,
    5 reportingInstance: string, 6 action: string, 7 reason: string, 8 regarding: core.ObjectReference,
    9 related: core.ObjectReference, 10 note: string, 11 type: string, 12 deprecatedSource: core.EventSource,
    13 deprecatedFirstTimestamp: time, 14 deprecatedLastTimestamp: time, 15 deprecatedCount: int32`,
  EventSeries: '1 count: int32!, 2 lastObservedTime: microtime',
}

/** k8s.io/api/rbac/v1. */
export const rbac: Tables = {
  Role: '1 metadata: meta.ObjectMeta, 2 rules: PolicyRule[]',
  PolicyRule: `
    1 verbs: string[], 2 apiGroups: string[], 3 resources: string[], 4 resourceNames: string[],
    5 nonResourceURLs: string[]`,
  ClusterRole: '1 metadata: meta.ObjectMeta, 2 rules: PolicyRule[], 3 aggregationRule: AggregationRule',
  AggregationRule: '1 clusterRoleSelectors: meta.LabelSelector[]',
  RoleBinding: '1 metadata: meta.ObjectMeta, 2 subjects: Subject[], 3 roleRef: RoleRef',
  Subject: '1 kind: string!, 2 apiGroup: string, 3 name: string!, 4 namespace: string',
  RoleRef: '1 apiGroup: string!, 2 kind: string!, 3 name: string!',
  ClusterRoleBinding: '1 metadata: meta.ObjectMeta, 2 subjects: Subject[], 3 roleRef: RoleRef',
}
