import type { MemberFacts } from '#model'
import { seconds } from '#model'
import { targetOf } from './define.ts'
import { defineFleetKind } from './define-snapshot-kind.ts'

/** Members of the hub, and clusters that ask to be. */
export const members = defineFleetKind<MemberFacts>({
  name: 'members',
  singular: 'member',
  title: 'Members',
  target: targetOf('cluster.open-cluster-management.io/v1', 'ManagedCluster', 'managedclusters', 'Fleet'),
  everyMs: seconds(60),
  place: ({ name }) => ({ namespace: '', name }),
  labels: ({ labels }) => labels,
  countBy: 'state',
  sort: 'state',
  columns: {
    state: {
      label: 'State',
      kind: 'string',
      health: {
        available: 'healthy',
        unavailable: 'unhealthy',
        unknown: 'unknown',
        pending: 'degraded',
        denied: 'unknown',
        leaving: 'degraded',
      },
      read: ({ state }) => state,
    },
    accepted: { label: 'Accepted', kind: 'boolean', read: ({ accepted }) => accepted },
    joined: { label: 'Joined', kind: 'boolean', read: ({ joined }) => joined },
    available: { label: 'Available', kind: 'string', absence: 'unknown', read: ({ available }) => available },
    sets: { label: 'Sets', kind: 'any', read: ({ sets }) => [...sets] },
    version: {
      ...{ label: 'Kubernetes', kind: 'string', isVersion: true, absence: 'unknown' },
      read: ({ kubernetesVersion }) => kubernetesVersion,
    },
    since: { label: 'Since', kind: 'number', unit: 'time', absence: 'unknown', read: ({ since }) => since },
    reason: { label: 'Reason', kind: 'string', isExtra: true, read: ({ reason }) => reason || null },
    message: { label: 'Message', kind: 'string', isWide: true, read: ({ message }) => message || null },
    transport: { label: 'Transport', kind: 'string', isExtra: true, read: ({ transport }) => transport },
    clockSynced: {
      ...{ label: 'Clock synced', kind: 'boolean', isExtra: true, absence: 'unknown' },
      read: ({ clockSynced }) => clockSynced,
    },
    taints: { label: 'Taints', kind: 'any', isExtra: true, read: ({ taints }) => [...taints] },
    claims: { label: 'Claims', kind: 'any', isExtra: true, read: ({ claims }) => ({ ...claims }) },
    createdAt: {
      ...{ label: 'Created', kind: 'number', unit: 'time', isExtra: true, absence: 'unknown' },
      read: ({ createdAt }) => createdAt,
    },
  },
})
