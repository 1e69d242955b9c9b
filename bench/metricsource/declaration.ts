import { writeFile } from 'node:fs/promises'
import type { KubeObject } from '#kube'
import type { SourceObject } from '#metricsource'

/** 10 fields, 5 expressions, 8 aggregations: of volumes, as somebody who pays for them would ask. */
export const declaration: SourceObject = {
  metadata: { name: 'volumes', namespace: 'clusterpulse' },
  spec: {
    source: { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
    fields: [
      { name: 'phase', path: '.status.phase' },
      { name: 'storageClass', path: '.spec.storageClassName' },
      { name: 'app', path: '.metadata.labels["app.kubernetes.io/name"]', default: 'none' },
      { name: 'capacity', path: '.status.capacity.storage', type: 'bytes' },
      { name: 'requested', path: '.spec.resources.requests.storage', type: 'bytes' },
      { name: 'used', path: '.metadata.annotations["example.org/used"]', type: 'quantity' },
      { name: 'modes', path: '.spec.accessModes', type: 'arrayLength' },
      { name: 'mode', path: '.spec.accessModes[0]' },
      { name: 'createdAt', path: '.metadata.creationTimestamp', type: 'timestamp' },
      { name: 'ready', path: '.status.conditions[?(@.type=="Ready")].status', type: 'boolean' },
    ],
    computed: [
      { name: 'usedPercent', expression: 'round((used / capacity) * 100, 2)' },
      { name: 'freeBytes', expression: 'max(capacity - used, 0)' },
      { name: 'isFull', expression: 'usedPercent > 90 && phase == "Bound"' },
      { name: 'label', expression: 'concat(lower(storageClass), "/", app)' },
      { name: 'state', expression: 'if(isFull, "full", coalesce(phase, "unknown"))' },
    ],
    aggregations: [
      { name: 'volumes', function: 'count' },
      { name: 'total_bytes', function: 'sum', field: 'capacity' },
      { name: 'avg_used_percent', function: 'avg', field: 'usedPercent' },
      { name: 'p95_used_percent', function: 'percentile', field: 'usedPercent', percentile: 95 },
      { name: 'max_bytes', function: 'max', field: 'capacity' },
      { name: 'full', function: 'count', filter: { field: 'usedPercent', operator: 'greaterThan', value: '90' } },
      { name: 'bytes_by_class', function: 'sum', field: 'capacity', groupBy: 'storageClass' },
      { name: 'apps', function: 'distinct', field: 'app' },
    ],
    rbac: { resourceTypeName: 'pvc' },
  },
}

/** The i-th object in the order of an API server, with what nobody asked for: 1.5 KB of JSON. */
function volume(i: number): KubeObject {
  const gib = 1 + (i % 97)
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: `data-${String(i).padStart(6, '0')}`,
      namespace: `team-${String(Math.floor(i / 50)).padStart(5, '0')}`,
      uid: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
      resourceVersion: String(1_000_000 + i),
      creationTimestamp: new Date(1_700_000_000_000 + i * 1000).toISOString().replace('.000Z', 'Z'),
      labels: { 'app.kubernetes.io/name': `app-${i % 40}`, team: `team-${Math.floor(i / 50)}` },
      annotations: {
        'example.org/used': `${(gib * 1024 * (i % 101)) / 100}Mi`,
        'pv.kubernetes.io/bind-completed': 'yes',
        'volume.kubernetes.io/storage-provisioner': 'csi.example.org',
      },
      finalizers: ['kubernetes.io/pvc-protection'],
      managedFields: [
        {
          manager: 'kube-controller-manager',
          operation: 'Update',
          apiVersion: 'v1',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:status': { 'f:accessModes': {}, 'f:capacity': { '.': {}, 'f:storage': {} }, 'f:phase': {} } },
        },
      ],
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: `${gib}Gi` } },
      storageClassName: ['Fast', 'Standard', 'Archive'][i % 3],
      volumeMode: 'Filesystem',
      volumeName: `pvc-00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
    },
    status: {
      phase: i % 50 === 0 ? 'Pending' : 'Bound',
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: `${gib}Gi` },
      conditions: [
        { type: 'Resizing', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' },
        { type: 'Ready', status: i % 20 === 0 ? 'False' : 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
      ],
    },
  }
}

const PAGE_SIZE = 500

/** Writes pages of objects into a file, one after the other, and their sizes in bytes beside it. */
export async function writePages(file: string, objects: number): Promise<void> {
  const pages: Buffer[] = []
  for (let from = 0; from < objects; from += PAGE_SIZE) {
    const items = Array.from({ length: Math.min(PAGE_SIZE, objects - from) }, (_, i) => volume(from + i))
    pages.push(Buffer.from(JSON.stringify({ items })))
  }
  await writeFile(file, pages)
  await writeFile(`${file}.sizes`, JSON.stringify(pages.map(({ length }) => length)))
}
