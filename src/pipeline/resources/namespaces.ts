import { targetOf } from './define.ts'
import { defineSnapshotKind } from './define-snapshot-kind.ts'
import { snapshotCreatedAt } from './read.ts'

/** Namespaces with what is counted in them. */
export const namespaces = defineSnapshotKind({
  type: 'namespace',
  name: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  title: 'Namespaces',
  target: targetOf('v1', 'Namespace', 'namespaces', 'Cluster'),
  labels: ({ labels }) => labels,
  countBy: 'phase',
  sort: 'phase',
  columns: {
    phase: {
      label: 'Phase',
      kind: 'string',
      health: { Active: 'healthy' },
      read: ({ phase }) => phase || null,
    },
    pods: { label: 'Pods running', kind: 'number', isRestricted: true, read: ({ pods }) => pods?.running ?? null },
    deployments: { label: 'Deployments', kind: 'number', isRestricted: true, read: ({ deployments }) => deployments },
    createdAt: snapshotCreatedAt,
    podPhases: { label: 'Pods by phase', kind: 'any', isExtra: true, read: ({ pods }) => pods },
  },
})
