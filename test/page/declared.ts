import { MemoryCatalog } from '#catalog'
import { type CompiledSource, compileMetricSource } from '#metricsource'
import { type RowsFacts, type RowsPart, Table, type TableRow } from '#model'
import type { Cluster } from './clusters.ts'

const GiB = 2 ** 30
const hour = 3_600_000

type Spec = Parameters<typeof compileMetricSource>[0]['spec']

function compiled(name: string, spec: Spec): CompiledSource {
  const metadata = { name, namespace: 'clusterpulse' }
  const object = { apiVersion: 'clusterpulse.io/v1alpha1', kind: 'MetricSource', metadata, spec }
  const { source, findings } = compileMetricSource(object)
  if (!source) throw new Error(JSON.stringify(findings))
  return source
}

export const claims = compiled('pvc', {
  source: { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  fields: [
    { name: 'phase', path: '.status.phase' },
    { name: 'capacity', path: '.status.capacity.storage', type: 'bytes' },
    { name: 'requested', path: '.spec.resources.requests.storage', type: 'bytes' },
    { name: 'storageClass', path: '.spec.storageClassName' },
    { name: 'accessMode', path: '.spec.accessModes[0]' },
    { name: 'createdAt', path: '.metadata.creationTimestamp', type: 'timestamp' },
  ],
  computed: [
    { name: 'usedPercent', expression: 'round(requested / capacity * 100, 1)', type: 'float' },
    { name: 'pending', expression: 'phase != "Bound"', type: 'boolean' },
  ],
  aggregations: [
    { name: 'total_pvcs', function: 'count' },
    { name: 'total_capacity_bytes', function: 'sum', field: 'capacity' },
    { name: 'avg_used_percent', function: 'avg', field: 'usedPercent' },
    { name: 'max_capacity_bytes', function: 'max', field: 'capacity' },
    { name: 'pending_count', function: 'count', filter: { field: 'phase', operator: 'equals', value: 'Pending' } },
    { name: 'by_storage_class', function: 'count', groupBy: 'storageClass' },
    { name: 'capacity_by_storage_class', function: 'sum', field: 'capacity', groupBy: 'storageClass' },
  ],
  collection: { intervalSeconds: 120, maxResources: 10_000 },
  rbac: { resourceTypeName: 'pvc' },
})

export const certificates = compiled('certificates', {
  source: { apiVersion: 'cert-manager.io/v1', kind: 'Certificate' },
  fields: [
    { name: 'ready', path: '.status.ready', type: 'boolean' },
    { name: 'notAfter', path: '.status.notAfter', type: 'timestamp' },
    { name: 'issuer', path: '.spec.issuerRef.name' },
  ],
  computed: [{ name: 'daysLeft', expression: 'round(-age(notAfter) / 86400, 1)', type: 'float' }],
  aggregations: [
    { name: 'certificates', function: 'count' },
    { name: 'min_days_left', function: 'min', field: 'daysLeft' },
  ],
  collection: { intervalSeconds: 300 },
  rbac: { resourceTypeName: 'certificate' },
})

/** These sources are in force. */
export async function aCatalog(...sources: readonly CompiledSource[]): Promise<MemoryCatalog> {
  const catalog = new MemoryCatalog()
  await catalog.resync(sources.map(({ definition }) => definition))
  return catalog
}

const classes = ['gp3-csi', 'gp3-csi', 'gp3-csi', 'efs', 'efs', 'local-block', 'ceph-rbd', 'ceph-rbd', '']

/** So many claims, the same each time. */
export function claimRows(count: number, now: number): readonly TableRow[] {
  return Array.from({ length: count }, (_, place): TableRow => {
    const namespace = ['payments', 'checkout', 'ledger', 'search', 'ml-training'][place % 5] ?? 'payments'
    const isPending = place % 17 === 3
    const capacity = [1, 5, 10, 20, 50, 100, 500][place % 7] ?? 1
    return {
      namespace,
      name: `data-${namespace}-${String(place).padStart(5, '0')}`,
      labels: { app: namespace, 'app.kubernetes.io/managed-by': 'helm' },
      values: {
        phase: isPending ? 'Pending' : 'Bound',
        capacity: isPending ? null : capacity * GiB,
        requested: capacity * GiB,
        storageClass: classes[place % classes.length] || null,
        accessMode: place % 3 === 0 ? 'ReadWriteMany' : 'ReadWriteOnce',
        createdAt: new Date(now - (place + 1) * 7 * hour).toISOString(),
        usedPercent: isPending ? null : ((place * 37) % 1000) / 10,
        pending: isPending,
      },
    }
  })
}

export const certificateRows = (now: number): readonly TableRow[] =>
  Array.from({ length: 14 }, (_, place): TableRow => {
    const daysLeft = [-2, 3, 12, 29, 45, 60, 88][place % 7] ?? 1
    const notAfter = new Date(now + daysLeft * 24 * hour).toISOString()
    const issuer = place % 3 === 0 ? 'letsencrypt' : 'corporate-ca'
    return {
      namespace: 'ingress',
      name: `tls-${place}`,
      labels: {},
      values: { ready: daysLeft > 0, notAfter, issuer, daysLeft },
    }
  })

/** A complete collection of these rows. */
export function collected(
  source: CompiledSource,
  rows: readonly TableRow[],
  said: Partial<RowsFacts & Pick<RowsPart, 'hash' | 'durationMs'>> = {},
): RowsPart {
  const fields = source.columns.map(({ name }) => name)
  const known = rows.map((row) => ({
    ...row,
    values: Object.fromEntries(fields.map((field) => [field, row.values[field] ?? null])),
  }))
  const table = Table.of(fields, known)
  const facts = { aggregations: source.aggregate(table), truncated: false, errors: [], errorCount: 0, reports: [] }
  return { source: source.id, hash: source.hash, durationMs: 84, outcome: 'complete', rows: table, ...facts, ...said }
}

export const failed = (
  { id, hash }: CompiledSource,
  outcome: 'absent' | 'forbidden' | 'unreachable',
  code: string,
  message: string,
): RowsPart => ({ source: id, hash, durationMs: 84, outcome, code, message })

/** Its newest round holds these tables too. */
export const withTables = (cluster: Cluster, ...tables: readonly RowsPart[]): Cluster => ({
  ...cluster,
  rounds: cluster.rounds.map((round, place, all) => (place === all.length - 1 ? { ...round, tables } : round)),
})

/** What both sources see in the fleet of `demoFleet`. */
export function withDeclared(fleet: readonly Cluster[], now: number): readonly Cluster[] {
  const errors: RowsFacts['errors'] = [
    {
      namespace: 'vault',
      outcome: 'forbidden',
      code: 'kube_forbidden',
      message: 'persistentvolumeclaims is forbidden in namespace vault',
    },
    { namespace: 'batch', outcome: 'unreachable', code: 'kube_timeout', message: 'no answer within 10 s' },
  ]
  const inPart = { truncated: true, errorCount: 2, errors }
  const noList = 'persistentvolumeclaims is forbidden: no list at the cluster scope'
  const tables: Readonly<Record<string, readonly RowsPart[]>> = {
    'eu-prod-1': [
      collected(claims, claimRows(5000, now)),
      collected(certificates, certificateRows(now), { hash: 'fedcba9876543210' }),
    ],
    'eu-prod-2': [
      collected(claims, claimRows(240, now), inPart),
      failed(certificates, 'absent', 'kind_not_served', 'cert-manager.io/v1 Certificate is not served'),
    ],
    lab: [collected(claims, [])],
    'us-stage': [
      failed(claims, 'forbidden', 'kube_forbidden', noList),
      failed(certificates, 'unreachable', 'cluster_unreachable', 'connection refused'),
    ],
  }
  return fleet.map((cluster) => withTables(cluster, ...(tables[cluster.name] ?? [])))
}
