import {
  type AgentFacts,
  type Batch,
  type ClusterName,
  type ClusterOperatorSnapshot,
  type ClusterSnapshot,
  type ConnectionFacts,
  type DeploymentSnapshot,
  type NamespaceSnapshot,
  type NodeSnapshot,
  type OperatorSnapshot,
  type Part,
  type PodSummary,
  parseClusterName,
  type RowsPart,
  type SnapshotOf,
  type SnapshotType,
  Table,
} from '#model'
import type { StateRecord } from '../types.ts'

// Words to build worlds with in tests of state and its neighbours.
export const T0 = Date.UTC(2026, 0, 1)
export const west: ClusterName = parseClusterName('west')
export const east: ClusterName = parseClusterName('east')

export const aNode = (name: string, changes: Partial<NodeSnapshot> = {}): NodeSnapshot => ({
  name,
  createdAt: T0,
  ready: 'ready',
  unschedulable: false,
  roles: ['worker'],
  conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastTransitionAt: T0 }],
  capacity: { cpuCores: 4, memoryBytes: 16 * 2 ** 30, storageBytes: 100 * 2 ** 30, pods: 110 },
  allocatable: { cpuCores: 3.5, memoryBytes: 15 * 2 ** 30, storageBytes: 90 * 2 ** 30, pods: 110 },
  requested: { cpuCores: 1.75, memoryBytes: 3 * 2 ** 30 },
  used: null,
  pods: { total: 5, running: 3, pending: 1, failed: 0, succeeded: 1, unknown: 0 },
  kernelVersion: '6.1',
  osImage: 'Linux',
  containerRuntime: 'containerd://1.7',
  kubeletVersion: 'v1.31.0',
  architecture: 'amd64',
  internalIp: '10.0.0.1',
  externalIp: '',
  hostname: name,
  labels: { b: '2', a: '<1>' },
  annotations: {},
  taints: [],
  imagesCount: 12,
  volumesAttached: 1,
  ...changes,
})

export const aCluster = (changes: Partial<ClusterSnapshot> = {}): ClusterSnapshot => ({
  name: 'cluster',
  apiUrl: 'https://west.example:6443',
  distribution: 'kubernetes',
  version: 'v1.31.0',
  platform: 'linux/amd64',
  channel: null,
  clusterId: null,
  image: null,
  updateVersion: null,
  versionState: null,
  versionStartedAt: null,
  versionCompletedAt: null,
  consoleUrl: null,
  conditions: [],
  ...changes,
})

export const aNamespace = (name: string): NamespaceSnapshot => ({ name, phase: 'Active', createdAt: T0, labels: {} })

export const aPodSummary = (running: number): PodSummary => ({
  name: 'pods',
  counts: { total: running, running, pending: 0, failed: 0, succeeded: 0, unknown: 0 },
  unscheduled: 0,
  byNamespace: {},
})

export const aDeployment = (name: string): DeploymentSnapshot => ({
  name: `default/${name}`,
  namespace: 'default',
  replicas: 2,
  ready: 2,
  available: 2,
  updated: 2,
})

export const anOperator = (csv: string, changes: Partial<OperatorSnapshot> = {}): OperatorSnapshot => ({
  name: `operators/${csv}`,
  csv,
  displayName: csv.split('.')[0] ?? csv,
  version: '1.0.0',
  provider: 'Example',
  status: 'Succeeded',
  namespace: 'operators',
  installModes: ['AllNamespaces'],
  installMode: 'AllNamespaces',
  clusterWide: true,
  availableInNamespaces: ['*'],
  createdAt: T0,
  updatedAt: T0,
  ...changes,
})

export const aClusterOperator = (
  name: string,
  changes: Partial<ClusterOperatorSnapshot> = {},
): ClusterOperatorSnapshot => ({
  name,
  version: '4.16.3',
  available: true,
  progressing: false,
  degraded: false,
  upgradeable: true,
  message: '',
  reason: '',
  lastTransitionAt: T0,
  conditions: [],
  versions: [{ name: 'operator', version: '4.16.3' }],
  relatedObjects: [],
  ...changes,
})

export const complete = <T extends SnapshotType>(type: T, ...items: SnapshotOf<T>[]): Part =>
  ({ type, collector: 'test', durationMs: 1, outcome: 'complete', items }) as unknown as Part

export const failed = (type: SnapshotType, outcome: 'absent' | 'forbidden' | 'unreachable', message = 'no'): Part => ({
  type,
  collector: 'test',
  durationMs: 1,
  outcome,
  code: outcome,
  message,
})

/** Rows with one field `size`, by `namespace/name`. */
export const sizes = (all: Readonly<Record<string, number | string | null>>): Table =>
  Table.of(
    ['size'],
    Object.entries(all).map(([id, size]) => {
      const [namespace = '', name = ''] = id.includes('/') ? id.split('/') : ['', id]
      return { namespace, name, labels: { app: 'x' }, values: { size } }
    }),
  )

type Complete = Extract<RowsPart, { outcome: 'complete' }>
/** What the MetricSource `team/sizes` saw. */
export const seen = (rows: Table, more: Partial<Complete> = {}): Complete => ({
  source: 'team/sizes',
  hash: '0123456789abcdef',
  durationMs: 7,
  outcome: 'complete',
  rows,
  aggregations: { total: rows.size },
  truncated: false,
  errors: [],
  errorCount: 0,
  reports: [{ field: 'size', missing: 0, malformed: 0, example: '' }],
  ...more,
})

/** The same told as a difference to rows before. */
export const seenSince = (rows: Table, before: Table, more: Partial<Complete> = {}): RowsPart => {
  const { rows: _, ...part } = seen(rows, more)
  return { ...part, outcome: 'changed', ...rows.diff(before) }
}

export const unseen = (message = 'no', source = 'team/sizes'): RowsPart => ({
  source,
  hash: 'fedcba9876543210',
  durationMs: 3,
  outcome: 'forbidden',
  code: 'forbidden',
  message,
})

/** Between two rounds. */
export const partial = (
  cluster: ClusterName,
  sequence: number,
  tables: readonly RowsPart[],
  more: Partial<Batch> = {},
): Batch => aBatch(cluster, sequence, [], { tables, partial: true, ...more })

export const aBatch = (cluster: ClusterName, sequence: number, parts: Part[], more: Partial<Batch> = {}): Batch => ({
  cluster,
  sequence,
  source: 'pull',
  collectedAt: T0 + sequence * 30_000,
  durationMs: 120,
  parts,
  ...more,
})

export const batchRecord = (batch: Batch): StateRecord => ({
  kind: 'batch',
  batch,
  receivedAt: batch.collectedAt + 50,
})

export const facts = (changes: Partial<ConnectionFacts> = {}): ConnectionFacts => ({
  displayName: 'West',
  endpoint: 'https://west.example:6443',
  labels: { env: 'test' },
  mode: 'pull',
  intervalMs: 30_000,
  timeoutMs: 10_000,
  insecureSkipTlsVerify: false,
  credentialsRef: { name: 'west-token', namespace: '' },
  ...changes,
})

export const connected = (cluster: ClusterName, changes: Partial<ConnectionFacts> = {}): StateRecord => ({
  kind: 'connection',
  cluster,
  connection: facts(changes),
  at: T0,
})

export const removed = (cluster: ClusterName, at = T0 + 3_600_000): StateRecord => ({ kind: 'removed', cluster, at })

export const anAgent = (more: Partial<AgentFacts> = {}): AgentFacts => ({
  connected: true,
  since: T0,
  reason: '',
  version: '1.0.0',
  protocol: 1,
  heartbeatAt: T0,
  bufferedBatches: 0,
  bufferedBytes: 0,
  oldestBufferedAt: null,
  lostBatches: 0,
  clockOffsetMs: 0,
  tls: true,
  method: 'token',
  plan: '',
  epoch: 1,
  ...more,
})
