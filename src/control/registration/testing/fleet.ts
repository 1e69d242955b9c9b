import { InProcessEventBus } from '#events'
import { type AgentFacts, type ClusterSnapshot, type ClusterState, type NodeSnapshot, parseClusterName } from '#model'
import type { Availability } from '#state'

/** What agents on our stream told, as the hub's state would have it, with the events that tell of it. */
export class SomeFleet {
  readonly events = new InProcessEventBus()
  readonly #clusters = new Map<string, ClusterState>()
  availabilityNow: Availability = { state: 'available' }

  availability = (): Availability => this.availabilityNow
  cluster = (name: string): ClusterState | undefined => this.#clusters.get(name)

  async tells(name: string, over: Partial<ClusterState>): Promise<void> {
    const before = this.#clusters.get(name) ?? aCluster(name)
    this.#clusters.set(name, { ...before, ...over, version: before.version + 1 })
    await this.#publish(name, 'put')
  }

  async forgets(name: string): Promise<void> {
    this.#clusters.delete(name)
    await this.#publish(name, 'remove')
  }

  #publish(name: string, op: 'put' | 'remove'): Promise<void> {
    return this.events.publish([{ kind: 'cluster', cluster: parseClusterName(name), op, at: Date.now() }])
  }
}

export function aCluster(name: string): ClusterState {
  return {
    name: parseClusterName(name),
    connection: null,
    status: { health: 'healthy', message: '', reasons: [], checkedAt: null, lastSyncAt: null },
    sequence: 1,
    origin: 'buffer',
    source: 'push',
    agent: null,
    parts: {},
    tables: new Map(),
    heartbeats: [],
    events: [],
    version: 1,
  }
}

export const anAgent = (at: number, over: Partial<AgentFacts> = {}): AgentFacts => ({
  connected: true,
  since: at,
  reason: '',
  version: '1.2.3',
  protocol: 1,
  heartbeatAt: at,
  bufferedBatches: 0,
  bufferedBytes: 0,
  oldestBufferedAt: null,
  lostBatches: 0,
  clockOffsetMs: 0,
  tls: true,
  method: 'certificate',
  plan: '',
  epoch: 1,
  ...over,
})

const amounts = (cpuCores: number | null, memoryBytes: number | null) => ({
  ...{ cpuCores, memoryBytes, storageBytes: 100 * 2 ** 30, pods: 110 },
})

export const aNode = (name: string, over: Partial<NodeSnapshot> = {}): NodeSnapshot => ({
  name,
  createdAt: null,
  ready: 'ready',
  unschedulable: false,
  roles: [],
  conditions: [],
  capacity: amounts(8, 32 * 2 ** 30),
  allocatable: amounts(7.5, 30 * 2 ** 30),
  requested: null,
  used: null,
  pods: null,
  kernelVersion: '',
  osImage: '',
  containerRuntime: '',
  kubeletVersion: 'v1.33.1',
  architecture: 'amd64',
  internalIp: '',
  externalIp: '',
  hostname: name,
  labels: {},
  annotations: {},
  taints: [],
  imagesCount: 0,
  volumesAttached: 0,
  ...over,
})

/** What a round of an agent left in state. */
export function parts(
  nodes: readonly NodeSnapshot[],
  over: Partial<ClusterSnapshot> = {},
  outcome: 'complete' | 'unreachable' = 'complete',
): ClusterState['parts'] {
  const at = Date.now()
  const part = {
    ...{ outcome, code: '', message: outcome === 'complete' ? '' : 'connection refused', attemptedAt: at },
    freshness: { observedAt: at, receivedAt: at, source: 'push' as const },
  }
  return {
    node: { ...part, items: new Map(nodes.map((node) => [node.name, node])) },
    cluster: { ...part, items: new Map([['cluster', { ...clusterSnapshot(), ...over }]]) },
  }
}

const clusterSnapshot = (): ClusterSnapshot => ({
  name: 'cluster',
  apiUrl: '',
  distribution: 'kubernetes',
  version: 'v1.33.1',
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
})
