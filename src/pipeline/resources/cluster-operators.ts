import type { ClusterOperatorSnapshot } from '#model'
import { targetOf } from './define.ts'
import { defineSnapshotKind } from './define-snapshot-kind.ts'

/** The parts an OpenShift cluster is made of. */
export const clusterOperators = defineSnapshotKind({
  type: 'clusterOperator',
  name: 'cluster-operators',
  singular: 'cluster-operator',
  shortNames: ['co'],
  title: 'Cluster operators',
  target: targetOf('config.openshift.io/v1', 'ClusterOperator', 'clusteroperators', 'Cluster'),
  countBy: 'status',
  sort: 'status',
  columns: {
    status: {
      label: 'Status',
      kind: 'string',
      health: { Available: 'healthy', Progressing: 'healthy', 'Not available': 'unhealthy' },
      read: (operator) => statusOf(operator),
    },
    version: { label: 'Version', kind: 'string', isVersion: true, read: ({ version }) => version || null },
    since: { label: 'Since', kind: 'number', unit: 'time', read: ({ lastTransitionAt }) => lastTransitionAt },
    available: { label: 'Available', kind: 'boolean', isWide: true, read: ({ available }) => available },
    progressing: { label: 'Progressing', kind: 'boolean', isWide: true, read: ({ progressing }) => progressing },
    degraded: { label: 'Degraded', kind: 'boolean', isWide: true, read: ({ degraded }) => degraded },
    upgradeable: { label: 'Upgradeable', kind: 'boolean', read: ({ upgradeable }) => upgradeable },
    message: { label: 'Message', kind: 'string', read: ({ message }) => message || null },
    reason: { label: 'Reason', kind: 'string', isExtra: true, read: ({ reason }) => reason || null },
    conditions: { label: 'Conditions', kind: 'any', isExtra: true, read: ({ conditions }) => conditions },
    versions: { label: 'Versions', kind: 'any', isExtra: true, read: ({ versions }) => versions },
    relatedObjects: {
      ...{ label: 'Related objects', kind: 'any', isExtra: true },
      read: ({ relatedObjects }) => relatedObjects,
    },
  },
})

function statusOf({ available, degraded, progressing }: ClusterOperatorSnapshot): string {
  if (!available) return 'Not available'
  if (degraded) return 'Degraded'
  return progressing ? 'Progressing' : 'Available'
}
