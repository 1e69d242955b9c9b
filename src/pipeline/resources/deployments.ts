import type { DeploymentSnapshot } from '#model'
import { targetOf } from './define.ts'
import { defineSnapshotKind, placeOf } from './define-snapshot-kind.ts'

/** Deployments: how many replicas are wanted and how far they are. */
export const deployments = defineSnapshotKind({
  type: 'deployment',
  name: 'deployments',
  singular: 'deployment',
  shortNames: ['deploy'],
  title: 'Deployments',
  target: targetOf('apps/v1', 'Deployment', 'deployments', 'Namespaced'),
  place: placeOf,
  countBy: 'status',
  sort: 'status',
  columns: {
    status: {
      label: 'Status',
      kind: 'string',
      health: { Ready: 'healthy', 'Scaled to 0': 'unknown', 'None ready': 'unhealthy' },
      read: (deployment) => statusOf(deployment),
    },
    ready: { label: 'Ready', kind: 'number', read: ({ ready }) => ready },
    replicas: { label: 'Replicas', kind: 'number', read: ({ replicas }) => replicas },
    updated: { label: 'Updated', kind: 'number', read: ({ updated }) => updated },
    available: { label: 'Available', kind: 'number', read: ({ available }) => available },
  },
})

function statusOf({ ready, replicas }: DeploymentSnapshot): string {
  if (replicas === 0) return 'Scaled to 0'
  if (ready >= replicas) return 'Ready'
  return ready === 0 ? 'None ready' : 'Partly ready'
}
