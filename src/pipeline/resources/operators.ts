import { targetOf } from './define.ts'
import { defineSnapshotKind, placeOf } from './define-snapshot-kind.ts'
import { snapshotCreatedAt } from './read.ts'

/** Operators that OLM installed, each under the name of its ClusterServiceVersion. */
export const operators = defineSnapshotKind({
  type: 'operator',
  name: 'operators',
  singular: 'operator',
  shortNames: ['csv'],
  title: 'Operators',
  target: targetOf('operators.coreos.com/v1alpha1', 'ClusterServiceVersion', 'clusterserviceversions', 'Namespaced'),
  place: placeOf,
  countBy: 'status',
  sort: 'status',
  columns: {
    displayName: { label: 'Operator', kind: 'string', read: ({ displayName, csv }) => displayName || csv },
    status: {
      label: 'Status',
      kind: 'string',
      health: { Succeeded: 'healthy', Failed: 'unhealthy', Unknown: 'unknown' },
      read: ({ status }) => status,
    },
    version: { label: 'Version', kind: 'string', isVersion: true, read: ({ version }) => version || null },
    scope: {
      label: 'Scope',
      kind: 'any',
      read: ({ clusterWide, availableInNamespaces }) => (clusterWide ? 'cluster-wide' : availableInNamespaces),
    },
    provider: { label: 'Provider', kind: 'string', isWide: true, read: ({ provider }) => provider || null },
    createdAt: snapshotCreatedAt,
    updatedAt: {
      ...{ label: 'Updated', kind: 'number', unit: 'time', isExtra: true },
      read: ({ updatedAt }) => updatedAt,
    },
    installMode: {
      label: 'Install mode',
      kind: 'string',
      isExtra: true,
      read: ({ installMode }) => installMode || null,
    },
    installModes: {
      ...{ label: 'Install modes', kind: 'any', isExtra: true },
      read: ({ installModes }) => installModes,
    },
  },
})
