import { fields, text } from '#collect'
import { type CustomValue, parseBytes } from '#model'
import { builtIn, defineResource } from './define.ts'
import { createdAt, ownerOf, textOf } from './read.ts'

/** Claims on storage. How full a volume is, the API does not say. */
export const persistentVolumeClaims = defineResource({
  name: 'persistentvolumeclaims',
  singular: 'persistentvolumeclaim',
  shortNames: ['pvc'],
  title: 'Volume claims',
  targets: [builtIn('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims')],
  access: 'namespaced',
  everyMs: 60_000,
  maxRows: 100_000,
  columns: {
    status: { label: 'Status', kind: 'string', read: textOf('status', 'phase') },
    capacity: {
      label: 'Capacity',
      kind: 'number',
      unit: 'bytes',
      read: ({ status }) => bytes(fields(fields(status).capacity).storage),
    },
    requested: {
      label: 'Requested',
      kind: 'number',
      unit: 'bytes',
      read: ({ spec }) => bytes(fields(fields(fields(spec).resources).requests).storage),
    },
    storageClass: { label: 'Storage class', kind: 'string', read: textOf('spec', 'storageClassName') },
    accessModes: { label: 'Access modes', kind: 'string', read: ({ spec }) => listed(fields(spec).accessModes) },
    volume: { label: 'Volume', kind: 'string', read: textOf('spec', 'volumeName') },
    volumeMode: { label: 'Volume mode', kind: 'string', isExtra: true, read: textOf('spec', 'volumeMode') },
    owner: { label: 'Owner', kind: 'string', isExtra: true, read: ownerOf },
    createdAt,
  },
  counts: {
    byStatus: { function: 'count', field: undefined, groupBy: 'status' },
    capacity: { function: 'sum', field: 'capacity', groupBy: undefined },
  },
})

const bytes = (quantity: unknown): number | null => parseBytes(text(quantity)) ?? null

const listed = (list: unknown): CustomValue => (Array.isArray(list) ? list.map(text).filter(Boolean).join(', ') : null)
