import type { MonitorAccessPolicySpec } from '#kinds'
import {
  type ClusterState,
  type DeploymentSnapshot,
  type FleetEvent,
  type NodeSnapshot,
  type OperatorSnapshot,
  type PodCounts,
  parseClusterName,
  type Snapshot,
  type SnapshotType,
} from '#model'
import type { PolicyDocument, PolicyObject, Principal, RuleDocument } from '../types.ts'

/** Words to build a test's world with: principals, policies, clusters. */
export const person = (username: string, ...groups: string[]): Principal => ({
  username,
  email: '',
  groups,
  isServiceAccount: false,
  method: 'trusted-proxy',
})

type Rule = NonNullable<MonitorAccessPolicySpec['scope']['clusters']['rules']>[number]
export type Resource = NonNullable<Rule['resources']>[number]

export interface PolicyWords {
  readonly name?: string
  readonly priority?: number
  readonly users?: readonly string[]
  readonly groups?: readonly string[]
  readonly serviceAccounts?: readonly { readonly name: string; readonly namespace?: string }[]
  readonly enabled?: boolean
  readonly default?: 'allow' | 'deny' | 'none'
  readonly notBefore?: string
  readonly notAfter?: string
}

let count = 0

/** For alice, unless it says for whom. */
export function policy(effect: 'Allow' | 'Deny', rules: readonly Rule[], words: PolicyWords = {}): PolicyObject {
  const { name, priority, enabled, notBefore, notAfter, ...subjects } = words
  const { users, groups, serviceAccounts } = subjects
  const isForAnybody = users ?? groups ?? serviceAccounts
  return {
    metadata: { name: name ?? `${effect.toLowerCase()}-${++count}`, namespace: 'clusterpulse' },
    spec: {
      identity: {
        subjects: {
          users: [...(users ?? (isForAnybody ? [] : ['alice']))],
          groups: [...(groups ?? [])],
          serviceAccounts: [...(serviceAccounts ?? [])],
        },
        ...(priority !== undefined && { priority }),
      },
      access: { effect, ...(enabled !== undefined && { enabled }) },
      scope: { clusters: { ...(words.default && { default: words.default }), rules: [...rules] } },
      ...((notBefore ?? notAfter) && {
        lifecycle: { validity: { ...(notBefore && { notBefore }), ...(notAfter && { notAfter }) } },
      }),
    },
  }
}

export const names = (...matchNames: string[]): { selector: Rule['selector'] } => ({ selector: { matchNames } })
export const pattern = (matchPattern: string): { selector: Rule['selector'] } => ({ selector: { matchPattern } })

/** A document by hand, for what does not compile: an Allow of every cluster to alice. */
export function aStoredDocument(over: Partial<PolicyDocument> = {}): PolicyDocument {
  return {
    policy_name: `stored-${++count}`,
    namespace: 'clusterpulse',
    priority: 100,
    effect: 'Allow',
    enabled: true,
    users: ['alice'],
    groups: [],
    service_accounts: [],
    default_cluster_access: 'none',
    cluster_rules: [aStoredRule()],
    not_before: null,
    not_after: null,
    compiled_at: '2026-01-02T03:04:05Z',
    hash: '0123456789abcdef',
    custom_resource_types: null,
    ...over,
  }
}

export const aStoredRule = (over: Partial<RuleDocument> = {}): RuleDocument => ({
  cluster_selector: { matchPattern: '.*' },
  permissions: { view: true },
  resources: null,
  ...over,
})

// ── clusters ─────────────────────────────────────────────────────────────────────────────────────────────────────────

type Rows = { readonly [T in SnapshotType]?: readonly (Snapshot & { readonly name: string })[] }

export function cluster(name: string, rows: Rows = {}, labels: Readonly<Record<string, string>> = {}): ClusterState {
  const parts = Object.fromEntries(
    Object.entries(rows).map(([type, items]) => [
      type,
      {
        outcome: 'complete',
        code: '',
        message: '',
        attemptedAt: 0,
        freshness: { observedAt: 0, receivedAt: 0, source: 'pull' },
        items: new Map(items.map((item) => [item.name, item])),
      },
    ]),
  )
  return {
    name: parseClusterName(name),
    connection: {
      displayName: name,
      endpoint: 'https://cluster.example',
      labels,
      mode: 'pull',
      intervalMs: 30_000,
      timeoutMs: 10_000,
      insecureSkipTlsVerify: false,
      credentialsRef: { name: 'secret', namespace: 'clusterpulse' },
    },
    status: { health: 'healthy', message: '', reasons: [], checkedAt: null, lastSyncAt: null },
    sequence: 1,
    origin: '',
    agent: null,
    source: 'pull',
    parts: parts as ClusterState['parts'], // made of rows under the key of their type
    tables: new Map(),
    heartbeats: [],
    events: [],
    version: 1,
  }
}

export const pods = (total: number): PodCounts => ({
  total,
  running: total,
  pending: 0,
  failed: 0,
  succeeded: 0,
  unknown: 0,
})

export const node = (name: string, labels: Readonly<Record<string, string>> = {}): NodeSnapshot => ({
  name,
  createdAt: null,
  ready: 'ready',
  unschedulable: false,
  roles: [],
  conditions: [],
  capacity: { cpuCores: 4, memoryBytes: 8, storageBytes: null, pods: 110 },
  allocatable: { cpuCores: 4, memoryBytes: 8, storageBytes: null, pods: 110 },
  requested: { cpuCores: 1, memoryBytes: 2 },
  used: { cpuCores: 0.5, memoryBytes: 1 },
  pods: pods(3),
  kernelVersion: '',
  osImage: '',
  containerRuntime: '',
  kubeletVersion: '',
  architecture: '',
  internalIp: '',
  externalIp: '',
  hostname: name,
  labels: { ...labels },
  annotations: {},
  taints: [],
  imagesCount: 0,
  volumesAttached: 0,
})

export const namespace = (name: string, labels: Readonly<Record<string, string>> = {}): Snapshot => ({
  name,
  phase: 'Active',
  createdAt: null,
  labels: { ...labels },
})

export const deployment = (namespace: string, name: string): DeploymentSnapshot => ({
  name: `${namespace}/${name}`,
  namespace,
  replicas: 1,
  ready: 1,
  available: 1,
  updated: 1,
})

export const operator = (
  csv: string,
  availableInNamespaces: readonly string[],
  displayName = csv,
): OperatorSnapshot => ({
  name: `operators/${csv}`,
  csv,
  displayName,
  version: '1.0.0',
  provider: '',
  status: 'Succeeded',
  namespace: 'operators',
  installModes: [],
  installMode: '',
  clusterWide: availableInNamespaces[0] === '*',
  availableInNamespaces: [...availableInNamespaces],
  createdAt: null,
  updatedAt: null,
})

export const clusterOperator = (name: string, ...namespaces: string[]): Snapshot => ({
  name,
  version: '',
  available: true,
  progressing: false,
  degraded: false,
  upgradeable: true,
  message: '',
  reason: '',
  lastTransitionAt: null,
  conditions: [],
  versions: [],
  relatedObjects: namespaces.map((namespace) => ({ group: '', resource: 'namespaces', namespace, name: namespace })),
})

export const podSummary = (byNamespace: Readonly<Record<string, number>>): Snapshot => ({
  name: 'pods',
  counts: pods(Object.values(byNamespace).reduce((sum, count) => sum + count, 0)),
  unscheduled: 2,
  byNamespace: Object.fromEntries(Object.entries(byNamespace).map(([name, count]) => [name, pods(count)])),
})

export const event = (type: string, data: Readonly<Record<string, unknown>> = {}): FleetEvent => ({
  type,
  cluster: 'c1',
  at: 1,
  data,
})

export const namesOf = (rows: readonly { readonly name: string }[]): string[] => rows.map(({ name }) => name)
