import type { Principal, Semantics } from '#access'
import { NODE_USAGE, nodeUsageFields, POD_USAGE, podUsageFields } from '#collect'
import type { MonitorAccessPolicySpec } from '#kinds'
import {
  type ClusterOperatorSnapshot,
  type ClusterState,
  type DeploymentSnapshot,
  type FleetEvent,
  type NamespaceSnapshot,
  type NodeSnapshot,
  type OperatorSnapshot,
  type PodCounts,
  parseClusterName,
  type RowsState,
  type SnapshotType,
  Table,
  type TableRow,
} from '#model'
import { resources } from '#resources'
import { evaluateHealth } from '#state'
import { allSources, countsOf } from './sources.ts'

/**
 * A world is plain JSON, so that it can be printed, made smaller and built again: who asks, which policies there are, and a
 * small fleet. Every row carries a mark that stands nowhere else: where a hidden row's mark is read, it leaked.
 */
export interface World {
  readonly seed: number
  readonly semantics: Semantics
  /** ms since the Unix epoch */
  readonly now: number
  readonly administrators: { readonly users: readonly string[]; readonly groups: readonly string[] }
  readonly policies: readonly WrittenPolicy[]
  readonly principals: readonly Principal[]
  readonly clusters: readonly PlainCluster[]
  /** names of kinds that are compiled in, which MetricSources have here */
  readonly taken: readonly string[]
}

export interface WrittenPolicy {
  readonly namespace: string
  readonly name: string
  readonly spec: MonitorAccessPolicySpec
  /** put into the store as it is, past every check of the compiler */
  readonly byHand: boolean
}

export interface PlainRow {
  readonly name: string
  readonly mark: string
}
export interface PlainNode extends PlainRow {
  readonly labels: Readonly<Record<string, string>>
  readonly ready: boolean
  readonly role: string
  readonly cpu: number
  readonly used: boolean
}
export interface PlainNamespace extends PlainRow {
  readonly labels: Readonly<Record<string, string>>
}
export interface PlainDeployment extends PlainRow {
  readonly namespace: string
}
export interface PlainOperator extends PlainRow {
  /** `name` is the CSV */
  readonly namespace: string
  readonly displayName: string
  readonly availableIn: readonly string[]
  readonly failed: boolean
}
export interface PlainClusterOperator extends PlainRow {
  readonly degraded: boolean
  readonly related: readonly string[]
}
export interface PlainEvent {
  readonly type: string
  readonly data: Readonly<Record<string, string>>
}
export interface PlainCustom extends PlainRow {
  readonly type: string
  readonly namespace?: string
  readonly labels: Readonly<Record<string, string>>
  readonly values: Readonly<Record<string, unknown>>
}
export interface PlainCluster extends PlainRow {
  /** null: seen by an agent only, no ClusterConnection */
  readonly labels: Readonly<Record<string, string>> | null
  readonly nodes: readonly PlainNode[] | null
  readonly namespaces: readonly PlainNamespace[] | null
  readonly deployments: readonly PlainDeployment[] | null
  readonly operators: readonly PlainOperator[] | null
  readonly clusterOperators: readonly PlainClusterOperator[] | null
  readonly pods: {
    readonly unscheduled: number
    readonly by: readonly { readonly namespace: string; readonly running: number; readonly pending: number }[]
  } | null
  readonly events: readonly PlainEvent[]
  readonly alerts: readonly Readonly<Record<string, string>>[]
  readonly custom: readonly PlainCustom[]
  /** rows of kinds that are compiled in; `type` is the name of the kind */
  readonly resources: readonly (PlainCustom & { readonly namespace: string })[]
  /** types that were collected; of others nothing is known */
  readonly collected: readonly string[]
  /** namespaces that no type could be read in */
  readonly unread: readonly (PlainRow & { readonly type: string })[]
  readonly heartbeats: readonly ('healthy' | 'degraded' | 'unhealthy')[]
}

// ── from plain words to the state that the store would hold ──────────────────────────────────────────────────────────

export const start = Date.parse('2026-03-01T12:00:00Z')

const counts = (running: number, pending: number): PodCounts => ({
  total: running + pending,
  running,
  pending,
  failed: 0,
  succeeded: 0,
  unknown: 0,
})

const nodeOf = (node: PlainNode, order: number): NodeSnapshot => ({
  name: node.name,
  createdAt: start,
  ready: node.ready ? 'ready' : 'notReady',
  unschedulable: false,
  roles: [node.role],
  conditions: [],
  capacity: { cpuCores: node.cpu, memoryBytes: node.cpu * 1e9, storageBytes: null, pods: 110 },
  allocatable: { cpuCores: node.cpu, memoryBytes: node.cpu * 1e9, storageBytes: null, pods: 110 },
  requested: { cpuCores: node.cpu / 2, memoryBytes: node.cpu * 1e8 },
  used: node.used ? { cpuCores: node.cpu / 4, memoryBytes: node.cpu * 1e7 } : null,
  pods: counts(3 + order, 1),
  kernelVersion: '',
  osImage: '',
  containerRuntime: '',
  kubeletVersion: 'v1.31.0',
  architecture: 'amd64',
  internalIp: '10.0.0.1',
  externalIp: '',
  hostname: node.mark,
  labels: node.labels,
  annotations: {},
  taints: [],
  imagesCount: 0,
  volumesAttached: 0,
})

const namespaceOf = (namespace: PlainNamespace): NamespaceSnapshot => ({
  name: namespace.name,
  phase: 'Active',
  createdAt: start,
  labels: { ...namespace.labels, mark: namespace.mark },
})

const deploymentOf = ({ namespace, name, mark }: PlainDeployment): DeploymentSnapshot => ({
  name: `${namespace}/${name}-${mark}`,
  namespace,
  replicas: 2,
  ready: 1,
  available: 1,
  updated: 2,
})

const operatorOf = (operator: PlainOperator): OperatorSnapshot => ({
  name: `${operator.namespace}/${operator.name}`,
  csv: operator.name,
  displayName: operator.displayName,
  version: '1.0.0',
  provider: operator.mark,
  status: operator.failed ? 'Failed' : 'Succeeded',
  namespace: operator.namespace,
  installModes: [],
  installMode: '',
  clusterWide: operator.availableIn.length === 1 && operator.availableIn[0] === '*',
  availableInNamespaces: [...operator.availableIn],
  createdAt: null,
  updatedAt: null,
})

const clusterOperatorOf = (operator: PlainClusterOperator): ClusterOperatorSnapshot => ({
  name: operator.name,
  version: '4.18.1',
  available: true,
  progressing: false,
  degraded: operator.degraded,
  upgradeable: true,
  message: operator.mark,
  reason: '',
  lastTransitionAt: null,
  conditions: [],
  versions: [],
  // As OpenShift lists them: what is in a namespace, and the namespace itself.
  relatedObjects: operator.related.flatMap((namespace) => [
    { group: 'apps', resource: 'deployments', namespace, name: 'thing' },
    ...(namespace === '' ? [] : [{ group: '', resource: 'namespaces', namespace: '', name: namespace }]),
  ]),
})

export function stateOf(cluster: PlainCluster, version = 1): ClusterState {
  const name = parseClusterName(cluster.name)
  const part = (items: readonly { readonly name: string }[]) => ({
    outcome: 'complete',
    code: '',
    message: '',
    attemptedAt: start,
    freshness: { observedAt: start, receivedAt: start, source: 'pull' },
    items: new Map(items.map((item) => [item.name, item])),
  })
  const parts: Record<string, unknown> = {
    cluster: part([
      {
        ...{ apiUrl: `https://${cluster.mark}:6443`, distribution: 'openshift', version: '4.18.1', platform: null },
        ...{ channel: null, clusterId: cluster.mark, image: null, updateVersion: null, versionState: null },
        ...{ versionStartedAt: null, versionCompletedAt: null, consoleUrl: null, conditions: [] },
        name: 'cluster',
      },
    ]),
    ...(cluster.nodes && { node: part(cluster.nodes.map(nodeOf)) }),
    ...(cluster.namespaces && { namespace: part(cluster.namespaces.map(namespaceOf)) }),
    ...(cluster.deployments && { deployment: part(cluster.deployments.map(deploymentOf)) }),
    ...(cluster.operators && { operator: part(cluster.operators.map(operatorOf)) }),
    ...(cluster.clusterOperators && { clusterOperator: part(cluster.clusterOperators.map(clusterOperatorOf)) }),
    ...(cluster.pods && { podSummary: part([podSummaryOf(cluster.pods)]) }),
  }
  const known = parts as ClusterState['parts'] // built above, one part per type
  const verdict = evaluateHealth({ parts: known, failure: undefined, source: 'pull', checked: true })
  return {
    name,
    connection: cluster.labels && {
      displayName: `Cluster ${cluster.name}`,
      endpoint: `https://${cluster.mark}:6443`,
      labels: cluster.labels,
      mode: 'pull',
      intervalMs: 30_000,
      timeoutMs: 10_000,
      insecureSkipTlsVerify: false,
      credentialsRef: { name: 'the-secret-name', namespace: 'the-secret-namespace' },
    },
    status: { ...verdict, checkedAt: start, lastSyncAt: start },
    sequence: version,
    origin: '',
    source: 'pull',
    agent: null,
    parts: known,
    tables: customOf(cluster),
    heartbeats: cluster.heartbeats.map((health, index) => ({ at: start - index * 1000, health, durationMs: 7 })),
    events: eventsOf(cluster),
    version,
  }
}

function customOf(cluster: PlainCluster): ClusterState['tables'] {
  const { custom, collected, unread } = cluster
  const states = allSources
    .filter(({ typeName }) => collected.includes(typeName))
    .map((source): RowsState => {
      const own = custom.filter(({ type }) => type === source.typeName)
      const rows = Table.of(
        source.columns.map(({ name }) => name),
        own.map(({ name, namespace = '', labels, values, mark }) => ({
          name,
          namespace,
          labels: { ...labels, mark },
          values: { ...values, note: mark } as TableRow['values'], // scalars, as they were made
        })),
      )
      const errors = unread.filter(({ type }) => type === source.typeName)
      return {
        source: source.id,
        hash: source.hash,
        durationMs: 5,
        outcome: 'complete',
        code: '',
        message: '',
        attemptedAt: start,
        freshness: { observedAt: start, receivedAt: start, source: 'pull' },
        rows,
        aggregations: source.aggregate(rows),
        truncated: false,
        errors: errors.map(({ name, mark }) => ({
          namespace: name,
          outcome: 'forbidden',
          code: 'forbidden',
          message: mark,
        })),
        errorCount: errors.length,
        reports: [],
      }
    })
  return new Map([...states, ...resourcesOf(cluster), ...usageOf(cluster)].map((state) => [state.source, state]))
}

/** Every kind that is compiled in is read of every cluster. */
const resourcesOf = (cluster: PlainCluster): RowsState[] =>
  resources.map((kind) => {
    const rows = Table.of(
      kind.columns.map(({ name }) => name).filter((name) => !kind.measured?.fields.includes(name)),
      cluster.resources
        .filter(({ type }) => type === kind.typeName)
        .map(({ name, namespace, labels, values, mark }) => ({
          ...{ name, namespace, labels: { ...labels, mark } },
          values: values as TableRow['values'], // scalars, as they were made
        })),
    )
    return {
      ...{ source: kind.id, hash: kind.hash, durationMs: 5, outcome: 'complete', code: '', message: '' },
      attemptedAt: start,
      freshness: { observedAt: start, receivedAt: start, source: 'pull' },
      rows,
      aggregations: countsOf(kind, rows),
      ...{ truncated: false, errors: [], errorCount: 0, reports: [] },
    }
  })

/** What is measured of most pods and nodes: numbers that add up without a rest, taken from their marks. */
function usageOf(cluster: PlainCluster): RowsState[] {
  const measured = ({ namespace = '', name, mark }: { namespace?: string; name: string; mark: string }): TableRow[] => {
    const number = Number(/x(\d+)/.exec(mark)?.[1])
    const values = {
      ...{ cpuUsed: number / 8, memoryUsed: number * 1024, cpuText: `${number * 125}m`, memoryText: `${number}Ki` },
      ...{ cpuMillicores: number * 125, diskUsed: number % 3 === 0 ? null : number, diskCapacity: 1000 },
    }
    return number % 4 === 0 ? [] : [{ namespace, name, labels: {}, values }]
  }
  const pods = cluster.resources.filter(({ type }) => type === 'pods')
  return [
    usageState(NODE_USAGE, Table.of(nodeUsageFields, (cluster.nodes ?? []).flatMap(measured))),
    usageState(POD_USAGE, Table.of(podUsageFields, pods.flatMap(measured))),
  ]
}

const usageState = (source: string, rows: Table): RowsState => ({
  ...{ source, hash: source, durationMs: 5, outcome: 'complete', code: '', message: '', attemptedAt: start },
  freshness: { observedAt: start, receivedAt: start, source: 'pull' },
  ...{ rows, aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] },
})

function podSummaryOf({ unscheduled, by }: NonNullable<PlainCluster['pods']>) {
  const byNamespace = Object.fromEntries(
    by.map(({ namespace, running, pending }) => [namespace, counts(running, pending)] as const),
  )
  const all = Object.values(byNamespace)
  const sum = (of: keyof PodCounts) => all.reduce((total, one) => total + one[of], 0)
  const pending = sum('pending') + unscheduled
  return { name: 'pods', counts: { ...counts(sum('running'), pending) }, unscheduled, byNamespace }
}

const eventsOf = (cluster: PlainCluster): FleetEvent[] =>
  cluster.events.map(({ type, data }, index) => ({
    type,
    cluster: cluster.name,
    at: start - Math.floor(index / 2) * 1000, // two of one moment, as they come
    data,
  }))

export const snapshotTypesOfRows: readonly SnapshotType[] = [
  'cluster',
  'node',
  'podSummary',
  'namespace',
  'deployment',
  'operator',
  'clusterOperator',
]
