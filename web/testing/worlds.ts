import type {
  AgentView,
  ClusterOperatorView,
  ClusterView,
  DeploymentView,
  NamespaceView,
  NodeView,
  OperatorView,
  PartView,
  RowType,
} from '../../src/contract/http/index.ts'
import type { Health } from '../../src/contract/model/index.ts'

const GiB = 2 ** 30
const minute = 60_000

/** A cluster and its rows, as one principal would be shown them. */
export interface World {
  readonly view: ClusterView
  readonly rows: {
    readonly node: NodeView[]
    readonly namespace: NamespaceView[]
    readonly deployment: DeploymentView[]
    readonly operator: OperatorView[]
    readonly clusterOperator: ClusterOperatorView[]
  }
}

interface Wish {
  readonly displayName?: string
  readonly health?: Health
  readonly labels?: Record<string, string>
  readonly nodes?: number
  readonly notReady?: number
  readonly version?: string
  readonly openshift?: boolean
  readonly reasons?: ClusterView['reasons']
  readonly message?: string
  /** the share of CPU and memory that is used; null where metrics are not served */
  readonly used?: number | null
  readonly requested?: number
  /** how long ago the facts were read */
  readonly ageMs?: number
  readonly parts?: Partial<Record<RowType, Partial<PartView>>>
  /** health of the last rounds, oldest first */
  readonly beats?: readonly Health[]
  readonly mode?: ClusterView['mode']
  /** how the facts came; as declared where not told */
  readonly source?: ClusterView['source']
  readonly agent?: AgentView
  /** never reached: nothing is known of it */
  readonly blank?: boolean
}

const noPods = { total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 }

function aNode(
  cluster: string,
  name: string,
  now: number,
  {
    ready = 'ready',
    used = 0.4,
    requested = 0.55,
    labels = {},
  }: { ready?: NodeView['ready']; used?: number | null; requested?: number; labels?: Record<string, string> } = {},
): NodeView {
  const isControlPlane = name.startsWith('control-plane')
  const at = now - 40 * 86_400_000
  const condition = (type: string, status: string, reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastTransitionAt: now - 12 * minute,
  })
  return {
    name,
    cluster,
    freshness: { observedAt: now, receivedAt: now, source: 'pull' },
    createdAt: at,
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
    labels: { 'kubernetes.io/os': 'linux', 'topology.kubernetes.io/zone': 'eu-1a', ...labels },
    annotations: { 'node.alpha.kubernetes.io/ttl': '0' },
    taints: isControlPlane ? [{ key: 'node-role.kubernetes.io/control-plane', value: '', effect: 'NoSchedule' }] : [],
    imagesCount: 31,
    volumesAttached: 4,
  }
}

/** An agent of ours that has sent everything, connected for three hours. */
export const anAgent = (now: number, wish: Partial<AgentView> = {}): AgentView => ({
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
  ...wish,
})

export function aCluster(name: string, now: number, wish: Wish = {}): World {
  const {
    health = 'healthy',
    nodes: nodeCount = 5,
    notReady = 0,
    used = 0.42,
    requested = 0.61,
    ageMs = 4000,
    openshift = false,
    blank = false,
  } = wish
  const at = now - ageMs
  const { mode = 'pull' } = wish
  const { source = mode } = wish
  const freshness = { observedAt: at, receivedAt: at + 200, source }
  const node = blank
    ? []
    : Array.from({ length: nodeCount }, (_, index) =>
        aNode(name, index < 3 ? `control-plane-${index + 1}` : `worker-${index - 2}`, at, {
          ready: index >= nodeCount - notReady ? 'notReady' : 'ready',
          used: used === null ? null : Math.min(1.1, used * (0.7 + 0.15 * (index % 5))),
          requested,
        }),
      )
  const spaces = blank ? [] : ['default', 'kube-system', 'payments', 'shop', 'monitoring', 'ingress']
  const namespace = spaces.map(
    (space, index): NamespaceView => ({
      name: space,
      cluster: name,
      freshness,
      phase: space === 'ingress' ? 'Terminating' : 'Active',
      createdAt: now - (40 - index) * 86_400_000,
      labels: { team: index % 2 ? 'core' : 'web' },
      pods: {
        ...noPods,
        total: 12 + index,
        running: 11 + index,
        pending: index === 3 ? 1 : 0,
        succeeded: index === 3 ? 0 : 1,
      },
      deployments: 2,
    }),
  )
  const deployment = spaces.flatMap((space) =>
    ['api', 'worker'].map(
      (app): DeploymentView => ({
        name: `${space}/${space}-${app}`,
        namespace: space,
        cluster: name,
        freshness,
        replicas: 3,
        ready: space === 'shop' && app === 'api' ? 1 : 3,
        available: 3,
        updated: 3,
      }),
    ),
  )
  const operator =
    blank || !openshift
      ? []
      : ['cert-manager', 'elasticsearch-operator', 'pipelines'].map(
          (csv, index): OperatorView => ({
            name: `operators/${csv}.v1.${index}.0`,
            csv: `${csv}.v1.${index}.0`,
            cluster: name,
            freshness,
            displayName: ['cert-manager Operator', 'Elasticsearch', 'Pipelines'][index] ?? csv,
            version: `1.${index}.0`,
            provider: 'Example',
            status: index === 1 && health !== 'healthy' ? 'Failed' : 'Succeeded',
            namespace: 'operators',
            installModes: ['AllNamespaces'],
            installMode: 'AllNamespaces',
            clusterWide: true,
            availableInNamespaces: ['*'],
            createdAt: now - 86_400_000,
            updatedAt: null,
          }),
        )
  const clusterOperator =
    blank || !openshift
      ? []
      : ['authentication', 'console', 'dns', 'etcd', 'ingress', 'monitoring'].map(
          (each): ClusterOperatorView => ({
            name: each,
            cluster: name,
            freshness,
            version: '4.15.12',
            available: true,
            progressing: false,
            degraded: each === 'monitoring' && health !== 'healthy',
            upgradeable: true,
            message:
              each === 'monitoring' && health !== 'healthy'
                ? 'Prometheus has lost two of its volumes and cannot keep samples.'
                : 'All is well',
            reason: 'AsExpected',
            lastTransitionAt: now - 3 * 3_600_000,
            conditions: [],
            versions: [],
            relatedObjects: [],
          }),
        )
  const part = (count: number, over: Partial<PartView> | undefined): PartView => ({
    outcome: 'complete',
    code: '',
    message: '',
    attemptedAt: at,
    freshness: over?.outcome === 'absent' ? null : freshness,
    count,
    ...over,
  })
  const absent: Partial<PartView> = { outcome: 'absent', code: 'absent', message: 'the cluster does not serve it' }
  const parts = blank
    ? {}
    : {
        node: part(node.length, wish.parts?.node),
        namespace: part(namespace.length, wish.parts?.namespace),
        deployment: part(deployment.length, wish.parts?.deployment),
        operator: part(operator.length, wish.parts?.operator ?? (openshift ? undefined : absent)),
        clusterOperator: part(clusterOperator.length, wish.parts?.clusterOperator ?? (openshift ? undefined : absent)),
      }
  const beats = wish.beats ?? Array.from({ length: 60 }, (_, index): Health => (index > 54 ? health : 'healthy'))
  const total = (key: 'cpuCores' | 'memoryBytes') => {
    const sum = (read: (one: NodeView) => number | null) =>
      node.length === 0 ? null : node.reduce((all, one) => all + (read(one) ?? 0), 0)
    return {
      capacity: sum((one) => one.capacity[key]),
      allocatable: sum((one) => one.allocatable[key]),
      requested: sum((one) => one.requested?.[key] ?? null),
      used: used === null ? null : sum((one) => one.used?.[key] ?? null),
    }
  }
  const view: ClusterView = {
    name,
    displayName: wish.displayName ?? name,
    endpoint: `https://api.${name}.example:6443`,
    labels: wish.labels ?? { env: 'prod', region: 'eu' },
    mode,
    source,
    agent: wish.agent ?? null,
    insecureSkipTlsVerify: false,
    health,
    message:
      wish.message ??
      (health === 'healthy' ? 'Cluster is reachable' : (wish.reasons ?? []).map(({ message }) => message).join('; ')),
    reasons: wish.reasons ?? [],
    stale: false,
    staleAfterMs: 100_000,
    intervalMs: 30_000,
    operatorIntervalMs: 300_000,
    // Only a round that failed is newer than what was read.
    checkedAt: blank && health === 'unknown' ? null : now - (health === 'unhealthy' ? Math.min(ageMs, 9000) : ageMs),
    lastSyncAt: blank ? null : at,
    facts: blank
      ? null
      : {
          name: 'cluster',
          apiUrl: `https://api.${name}.example:6443`,
          distribution: openshift ? 'openshift' : 'kubernetes',
          version: wish.version ?? (openshift ? '4.15.12' : 'v1.29.4'),
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
        },
    nodes: blank ? null : { total: nodeCount, ready: nodeCount - notReady, notReady, unschedulable: 0 },
    pods: blank
      ? null
      : { ...noPods, total: nodeCount * 42, running: nodeCount * 40, pending: nodeCount, succeeded: nodeCount },
    namespaces: blank ? null : namespace.length,
    deployments: blank ? null : { total: deployment.length, ready: deployment.length - 1 },
    operators:
      openshift && !blank
        ? { total: operator.length, failing: operator.filter(({ status }) => status === 'Failed').length }
        : null,
    clusterOperators:
      openshift && !blank
        ? {
            total: clusterOperator.length,
            degraded: clusterOperator.filter(({ degraded }) => degraded).length,
            unavailable: 0,
          }
        : null,
    cpuCores: total('cpuCores'),
    memoryBytes: total('memoryBytes'),
    filtered: false,
    heartbeats:
      blank && health === 'unknown'
        ? []
        : beats.map((each, index) => ({ at: now - (beats.length - index) * 30_000, health: each, durationMs: 800 })),
    parts,
  }
  return { view, rows: { node, namespace, deployment, operator, clusterOperator } }
}
