import { fields } from '#collect'
import { claimMessage } from '#kube'
import { builtIn, defineResource } from './define.ts'
import { amountOfStorage, createdAt, listed, owner, textOf } from './read.ts'

/** Claims on storage. How full a volume is, the API does not say. */
export const persistentVolumeClaims = defineResource({
  name: 'persistentvolumeclaims',
  singular: 'persistentvolumeclaim',
  shortNames: ['pvc'],
  title: 'Volume claims',
  reads: [builtIn('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims', claimMessage)],
  access: 'namespaced',
  everyMs: 60_000,
  maxRows: 100_000,
  sort: 'status',
  columns: {
    status: {
      label: 'Status',
      kind: 'string',
      health: { Bound: 'healthy', Lost: 'unhealthy' },
      read: textOf('status', 'phase'),
    },
    capacity: {
      label: 'Capacity',
      kind: 'number',
      unit: 'bytes',
      read: ({ status }) => amountOfStorage(fields(status).capacity),
    },
    requested: {
      label: 'Requested',
      kind: 'number',
      unit: 'bytes',
      isWide: true,
      read: ({ spec }) => amountOfStorage(fields(fields(spec).resources).requests),
    },
    storageClass: { label: 'Storage class', kind: 'string', read: textOf('spec', 'storageClassName') },
    accessModes: {
      label: 'Access modes',
      kind: 'string',
      isWide: true,
      read: ({ spec }) => listed(fields(spec).accessModes),
    },
    volume: { label: 'Volume', kind: 'string', read: textOf('spec', 'volumeName') },
    volumeMode: { label: 'Volume mode', kind: 'string', isExtra: true, read: textOf('spec', 'volumeMode') },
    owner,
    createdAt,
  },
  counts: {
    byStatus: { function: 'count', field: undefined, groupBy: 'status' },
    capacity: { function: 'sum', field: 'capacity', groupBy: undefined },
  },
})
