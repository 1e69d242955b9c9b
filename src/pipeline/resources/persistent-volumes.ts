import { fields, text } from '#collect'
import { volumeMessage } from '#kube'
import { builtIn, defineResource } from './define.ts'
import { amountOfStorage, createdAt, listed, textOf } from './read.ts'

/** Volumes of a cluster. Each stands in the namespace of its claim, so that who sees the namespace sees the volume. */
export const persistentVolumes = defineResource({
  name: 'persistentvolumes',
  singular: 'persistentvolume',
  shortNames: ['pv'],
  title: 'Volumes',
  reads: [builtIn('v1', 'PersistentVolume', 'persistentvolumes', volumeMessage, 'Cluster')],
  namespaceOf: ({ spec }) => text(fields(fields(spec).claimRef).namespace),
  access: 'namespaced',
  everyMs: 60_000,
  maxRows: 100_000,
  sort: 'status',
  columns: {
    status: {
      label: 'Status',
      kind: 'string',
      health: { Bound: 'healthy', Available: 'healthy', Failed: 'unhealthy' },
      read: textOf('status', 'phase'),
    },
    capacity: {
      label: 'Capacity',
      kind: 'number',
      unit: 'bytes',
      read: ({ spec }) => amountOfStorage(fields(spec).capacity),
    },
    claim: {
      label: 'Claim',
      kind: 'string',
      refersTo: 'object',
      reverse: { title: 'Volumes', kinds: ['PersistentVolumeClaim'] },
      read: ({ spec }) => text(fields(fields(spec).claimRef).name) || null,
    },
    reclaim: { label: 'Reclaim policy', kind: 'string', read: textOf('spec', 'persistentVolumeReclaimPolicy') },
    storageClass: { label: 'Storage class', kind: 'string', read: textOf('spec', 'storageClassName') },
    accessModes: {
      label: 'Access modes',
      kind: 'string',
      isWide: true,
      read: ({ spec }) => listed(fields(spec).accessModes),
    },
    driver: {
      label: 'Driver',
      kind: 'string',
      isExtra: true,
      // Protobuf keeps the source of a volume in a message of its own.
      read: ({ spec }) => driverOf(spec) ?? driverOf(fields(spec).persistentVolumeSource),
    },
    reason: { label: 'Reason', kind: 'string', isExtra: true, read: textOf('status', 'reason') },
    createdAt,
  },
  counts: {
    byStatus: { function: 'count', field: undefined, groupBy: 'status' },
    capacity: { function: 'sum', field: 'capacity', groupBy: undefined },
  },
})

const driverOf = (source: unknown): string | null => text(fields(fields(source).csi).driver) || null
