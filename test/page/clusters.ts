import type {
  AgentFacts,
  Batch,
  BufferCause,
  ConnectionFacts,
  NodeSnapshot,
  Part,
  PodCounts,
  SnapshotOf,
  SnapshotType,
  Source,
} from '#model'

const GiB = 2 ** 30
const minute = 60_000
const day = 86_400_000

/** What a collector sent once. */
export interface Round
  extends Pick<Batch, 'source'>,
    Partial<Pick<Batch, 'parts' | 'tables' | 'failure' | 'durationMs' | 'backfill'>> {
  /** by the clock of the collector, ms since the Unix epoch */
  readonly at: number
  /** what its agent gave up just before */
  readonly gone?: Gone
}

/** Batches that will never come; times in ms. */
export interface Gone {
  readonly from: number
  readonly to: number
  readonly cause: BufferCause
  readonly count: number
  readonly keptEveryMs?: number
}

/** A connection that is declared, the agent beside it, and its rounds, oldest first. */
export interface Cluster {
  readonly name: string
  readonly connection: ConnectionFacts
  readonly agent: AgentFacts | null
  readonly rounds: readonly Round[]
}

type Fault = Omit<
  Extract<Part, { outcome: 'absent' | 'forbidden' | 'unreachable' }>,
  'type' | 'collector' | 'durationMs'
>

export interface Wish {
  readonly displayName?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly nodes?: number
  /** a list of nodes in the place of a number of them */
  readonly nodeList?: readonly NodeSnapshot[]
  /** how many are not ready, in the last five rounds */
  readonly notReady?: number
  readonly version?: string
  readonly openshift?: boolean
  /** cluster operators and operators that fail, in the last five rounds */
  readonly failing?: boolean
  /** the share of CPU and memory that is used; null where metrics are not served */
  readonly used?: number | null
  readonly requested?: number
  /** how long ago it was read last */
  readonly ageMs?: number
  /** no round got through since then: why */
  readonly failure?: Batch['failure']
  /** types that cannot be read */
  readonly faults?: Partial<Record<SnapshotType, Fault>>
  /** in how many rounds it was read; default 8 */
  readonly rounds?: number
  /** which of them found it degraded; default those in which a node is not ready */
  readonly isDegraded?: (round: number) => boolean
  readonly mode?: Source
  /** how the rounds come; as declared where not told */
  readonly source?: Source
  readonly agent?: AgentFacts
  readonly intervalMs?: number
  readonly timeoutMs?: number
  /** never reached: nothing is known of it */
  readonly blank?: boolean
}

const noPods: PodCounts = { total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 }
const spaces = ['default', 'kube-system', 'payments', 'shop', 'monitoring', 'ingress']

export function aNode(
  name: string,
  now: number,
  wish: { ready?: NodeSnapshot['ready']; used?: number | null; requested?: number } = {},
): NodeSnapshot {
  const { ready = 'ready', used = 0.4, requested = 0.55 } = wish
  const isControlPlane = name.startsWith('control-plane')
  const lastTransitionAt = now - 12 * minute
  const condition = (type: string, status: string, reason: string, message: string) => ({
    ...{ type, status, reason, message, lastTransitionAt },
  })
  return {
    name,
    createdAt: now - 40 * day,
    ready,
    unschedulable: false,
    roles: [isControlPlane ? 'control-plane' : 'worker'],
    conditions: [
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
      condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
      ready === 'ready'
        ? condition('Ready', 'True', 'KubeletReady', 'kubelet is posting ready status')
        : condition('Ready', 'Unknown', 'NodeStatusUnknown', 'Kubelet stopped posting node status.'),
    ],
    capacity: { cpuCores: 16, memoryBytes: 64 * GiB, storageBytes: 200 * GiB, pods: 110 },
    allocatable: { cpuCores: 15.5, memoryBytes: 62 * GiB, storageBytes: 180 * GiB, pods: 110 },
    requested: { cpuCores: 15.5 * requested, memoryBytes: 62 * GiB * requested },
    used: used === null ? null : { cpuCores: 15.5 * used, memoryBytes: 62 * GiB * used * 1.2 },
    pods: { ...noPods, total: 42, running: 40, pending: 1, succeeded: 1 },
    kernelVersion: '6.1.0-18-amd64',
    osImage: 'Debian GNU/Linux 12',
    containerRuntime: 'containerd://1.7.13',
    kubeletVersion: 'v1.29.4',
    architecture: 'amd64',
    internalIp: '10.0.4.17',
    externalIp: '',
    hostname: name,
    labels: { 'kubernetes.io/os': 'linux', 'topology.kubernetes.io/zone': 'eu-1a' },
    annotations: { 'node.alpha.kubernetes.io/ttl': '0' },
    taints: isControlPlane ? [{ key: 'node-role.kubernetes.io/control-plane', value: '', effect: 'NoSchedule' }] : [],
    imagesCount: 31,
    volumesAttached: 4,
  }
}

/** An agent of ours that has sent everything, connected for three hours. */
export const anAgent = (now: number, wish: Partial<AgentFacts> = {}): AgentFacts => ({
  connected: true,
  since: now - 3 * 60 * minute,
  reason: '',
  version: '0.1.0',
  protocol: 1,
  heartbeatAt: now - 2000,
  bufferedBatches: 0,
  bufferedBytes: 0,
  oldestBufferedAt: null,
  lostBatches: 0,
  clockOffsetMs: 12,
  tls: true,
  method: 'token',
  plan: 'plan-1',
  epoch: 1,
  ...wish,
})

export function aCluster(name: string, now: number, wish: Wish = {}): Cluster {
  const { mode = 'pull', intervalMs = 30_000, timeoutMs = 10_000, ageMs = 4000, blank = false, rounds = 8 } = wish
  const { source = mode, failure, nodes = 5, notReady = 0 } = wish
  const readAt = now - ageMs
  const nodesOf = (at: number, ill: number): readonly NodeSnapshot[] =>
    wish.nodeList ?? Array.from({ length: nodes }, (_, index) => nodeAt(index, nodes - ill, wish, at))
  const read = Array.from({ length: blank ? 0 : rounds }, (_, index): Round => {
    const at = readAt - (rounds - 1 - index) * intervalMs
    const isLate = index >= rounds - 5
    const ill = wish.isDegraded?.(index) ? Math.max(1, notReady) : isLate ? notReady : 0
    return { at, source, parts: partsOf(nodesOf(at, ill), wish, { name, now: at, fails: isLate && !!wish.failing }) }
  })
  // Since then nobody got through, once per interval; the last time a moment ago.
  const since = blank ? now - 9000 : readAt + intervalMs
  const last = Math.max(now - 9000, readAt + 1)
  const failed: Round[] = []
  if (failure) {
    for (let at = since; at < last; at += intervalMs) failed.push({ at, source: 'pull', failure })
    failed.push({ at: last, source: 'pull', failure })
  }
  return {
    name,
    connection: {
      displayName: wish.displayName ?? name,
      endpoint: `https://api.${name}.example:6443`,
      labels: wish.labels ?? { env: 'prod', region: 'eu' },
      mode,
      intervalMs,
      timeoutMs,
      insecureSkipTlsVerify: false,
      credentialsRef: { name: `${name}-token`, namespace: 'clusterpulse' },
    },
    agent: wish.agent ?? null,
    rounds: [...read, ...failed],
  }
}

function nodeAt(index: number, firstIll: number, { used = 0.42, requested = 0.61 }: Wish, now: number): NodeSnapshot {
  return aNode(index < 3 ? `control-plane-${index + 1}` : `worker-${index - 2}`, now, {
    ready: index >= firstIll ? 'notReady' : 'ready',
    used: used === null ? null : Math.min(1.1, used * (0.7 + 0.15 * (index % 5))),
    requested,
  })
}

interface At {
  readonly name: string
  readonly now: number
  readonly fails: boolean
}

function partsOf(nodes: readonly NodeSnapshot[], { faults = {}, ...wish }: Wish, at: At): readonly Part[] {
  const absent: Fault = { outcome: 'absent', code: 'absent', message: 'the cluster does not serve it' }
  const said = <T extends SnapshotType>(type: T, items: readonly SnapshotOf<T>[], unless?: Fault): Part => {
    const fault = faults[type] ?? unless
    const head = { type, collector: type, durationMs: 20 }
    // A list under the name of a type holds that type.
    return (fault ? { ...head, ...fault } : { ...head, outcome: 'complete', items }) as Part
  }
  const unless = wish.openshift ? undefined : absent
  return [
    said('cluster', [factsOf(wish, at)]),
    said('node', nodes),
    said('podSummary', [podsOf(nodes.length)]),
    said('namespace', namespacesOf(at.now)),
    said('deployment', deployments),
    said('operator', wish.openshift ? operatorsOf(at) : [], unless),
    said('clusterOperator', wish.openshift ? clusterOperatorsOf(at) : [], unless),
  ]
}

function factsOf({ openshift = false, version }: Wish, { name }: At): SnapshotOf<'cluster'> {
  return {
    name: 'cluster',
    apiUrl: `https://api.${name}.example:6443`,
    distribution: openshift ? 'openshift' : 'kubernetes',
    version: version ?? (openshift ? '4.15.12' : 'v1.29.4'),
    platform: openshift ? 'OpenShift' : 'linux/amd64',
    channel: openshift ? 'stable-4.15' : null,
    clusterId: openshift ? '7b7f4f3c-0000-4000-8000-1d2e3f405162' : null,
    image: null,
    updateVersion: openshift ? '4.15.18' : null,
    versionState: null,
    versionStartedAt: null,
    versionCompletedAt: null,
    consoleUrl: openshift ? `https://console.${name}.example` : null,
    conditions: [],
  }
}

/** As many as the nodes say, spread over the namespaces. */
function podsOf(nodes: number): SnapshotOf<'podSummary'> {
  const of = (count: number, index: number) => ({
    ...noPods,
    total: count,
    running: index === 3 ? count - 1 : count,
    pending: index === 3 ? 1 : 0,
  })
  return {
    name: 'pods',
    counts: { ...noPods, total: nodes * 42, running: nodes * 40, pending: nodes, succeeded: nodes },
    unscheduled: 0,
    byNamespace: Object.fromEntries(spaces.map((space, index) => [space, of(12 + index, index)])),
  }
}

const namespacesOf = (now: number): SnapshotOf<'namespace'>[] =>
  spaces.map((name, index) => ({
    name,
    phase: name === 'ingress' ? 'Terminating' : 'Active',
    createdAt: Math.floor(now / day) * day - (40 - index) * day,
    labels: { team: index % 2 ? 'core' : 'web' },
  }))

const deployments: readonly SnapshotOf<'deployment'>[] = spaces.flatMap((namespace) =>
  ['api', 'worker'].map((app) => ({
    name: `${namespace}/${namespace}-${app}`,
    namespace,
    replicas: 3,
    ready: namespace === 'shop' && app === 'api' ? 1 : 3,
    available: 3,
    updated: 3,
  })),
)

const operatorsOf = ({ now, fails }: At): SnapshotOf<'operator'>[] =>
  ['cert-manager', 'elasticsearch-operator', 'pipelines'].map((csv, index) => ({
    name: `operators/${csv}.v1.${index}.0`,
    csv: `${csv}.v1.${index}.0`,
    displayName: ['cert-manager Operator', 'Elasticsearch', 'Pipelines'][index] ?? csv,
    version: `1.${index}.0`,
    provider: 'Example',
    status: index === 1 && fails ? 'Failed' : 'Succeeded',
    namespace: 'operators',
    installModes: ['AllNamespaces'],
    installMode: 'AllNamespaces',
    clusterWide: true,
    availableInNamespaces: ['*'],
    createdAt: Math.floor(now / day) * day - day,
    updatedAt: null,
  }))

const clusterOperatorsOf = ({ now, fails }: At): SnapshotOf<'clusterOperator'>[] =>
  ['authentication', 'console', 'dns', 'etcd', 'ingress', 'monitoring'].map((name) => {
    const degraded = name === 'monitoring' && fails
    return {
      name,
      version: '4.15.12',
      available: true,
      progressing: false,
      degraded,
      upgradeable: true,
      message: degraded ? 'Prometheus has lost two of its volumes and cannot keep samples.' : 'All is well',
      reason: 'AsExpected',
      lastTransitionAt: Math.floor(now / day) * day - 3 * 60 * minute,
      conditions: [],
      versions: [],
      relatedObjects: [],
    }
  })

/** One that does not answer any more, since a quarter of an hour. */
export const aDeadCluster = (name: string, now: number, wish: Wish = {}): Cluster =>
  aCluster(name, now, {
    ageMs: 14 * minute,
    rounds: 5,
    failure: { code: 'cluster_unreachable', message: `${name} did not answer within 10 s` },
    ...wish,
  })

/** Six clusters in the states that a person meets. */
export function demoFleet(now: number): readonly Cluster[] {
  return [
    aCluster('eu-prod-1', now, {
      displayName: 'Europe production 1',
      nodes: 12,
      openshift: true,
      mode: 'push',
      rounds: 20,
      agent: anAgent(now, {
        bufferedBatches: 120,
        bufferedBytes: 3.4 * 2 ** 20,
        oldestBufferedAt: now - 2 * 60 * minute,
      }),
    }),
    aCluster('eu-prod-2', now, {
      displayName: 'Europe production 2',
      nodes: 9,
      notReady: 1,
      failing: true,
      openshift: true,
      used: 0.78,
      requested: 0.93,
      mode: 'push',
      source: 'pull',
      rounds: 20,
      agent: anAgent(now, { connected: false, since: now - 12 * minute, reason: 'the stream broke off' }),
      version: '4.14.30',
    }),
    aCluster('us-stage', now, {
      labels: { env: 'stage', region: 'us' },
      nodes: 4,
      used: null,
      requested: 0.35,
      version: 'v1.30.1',
    }),
    aDeadCluster('edge-07', now, {
      displayName: 'Edge 07',
      labels: { env: 'edge', region: 'eu' },
      nodes: 3,
      version: 'v1.27.9',
    }),
    aCluster('lab', now, {
      mode: 'push',
      agent: anAgent(now, { tls: false, lostBatches: 6, clockOffsetMs: -94_000 }),
      labels: { env: 'lab' },
      nodes: 1,
      version: 'v1.31.0',
      faults: {
        deployment: {
          outcome: 'forbidden',
          code: 'forbidden',
          message: 'deployments.apps is forbidden for this account.',
        },
      },
    }),
    aCluster('new-one', now, { blank: true, labels: {} }),
  ]
}
