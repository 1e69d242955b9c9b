import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MemoryPolicies, openAccess, type PolicyDocument } from '#access'
import { InProcessEventBus } from '#events'
import { type IdentityConfig, openIdentity } from '#identity'
import {
  type AgentFacts,
  type Batch,
  type Clock,
  type ClusterState,
  type ConnectionFacts,
  type NodeSnapshot,
  type Part,
  parseClusterName,
  type RowsState,
  type SnapshotOf,
  type SnapshotType,
  systemClock,
} from '#model'
import { Metrics, silentLogger } from '#runtime'
import { type Availability, EmbeddedStateStore, type StateReader, type StateRecord } from '#state'
import { apiServer } from '../server.ts'
import type { ApiConfig, ApiOptions } from '../types.ts'
import { MemoryHistory } from './memory-history.ts'

// A hub's read path in one process: the real store on a temporary directory, the real bus, the real server.

export const start = Date.UTC(2026, 0, 1)

export const aNode = (name: string, changes: Partial<NodeSnapshot> = {}): NodeSnapshot => ({
  name,
  createdAt: start,
  ready: 'ready',
  unschedulable: false,
  roles: ['worker'],
  conditions: [],
  capacity: { cpuCores: 4, memoryBytes: 16e9, storageBytes: null, pods: 110 },
  allocatable: { cpuCores: 4, memoryBytes: 15e9, storageBytes: null, pods: 110 },
  requested: { cpuCores: 1, memoryBytes: 3e9 },
  used: null,
  pods: { total: 5, running: 5, pending: 0, failed: 0, succeeded: 0, unknown: 0 },
  kernelVersion: '',
  osImage: '',
  containerRuntime: '',
  kubeletVersion: 'v1.31.0',
  architecture: 'amd64',
  internalIp: '10.0.0.1',
  externalIp: '',
  hostname: name,
  labels: {},
  annotations: {},
  taints: [],
  imagesCount: 0,
  volumesAttached: 0,
  ...changes,
})

export const complete = <T extends SnapshotType>(type: T, items: readonly SnapshotOf<T>[]): Part =>
  ({ type, collector: 'test', durationMs: 1, outcome: 'complete', items }) as unknown as Part

export const failed = (type: SnapshotType, outcome: 'absent' | 'forbidden' | 'unreachable'): Part => ({
  type,
  collector: 'test',
  durationMs: 1,
  outcome,
  code: outcome,
  message: `the test says ${outcome}`,
})

export const connection = (changes: Partial<ConnectionFacts> = {}): ConnectionFacts => ({
  displayName: 'West',
  endpoint: 'https://west.example:6443',
  labels: { env: 'test' },
  mode: 'pull',
  intervalMs: 30_000,
  timeoutMs: 10_000,
  insecureSkipTlsVerify: false,
  credentialsRef: { name: 'the-secret-name', namespace: 'the-secret-namespace' },
  ...changes,
})

/** One that is connected and has sent everything. */
const anAgent: AgentFacts = {
  connected: true,
  since: start,
  reason: '',
  version: '1.2.3',
  protocol: 2,
  heartbeatAt: start,
  bufferedBatches: 0,
  bufferedBytes: 0,
  oldestBufferedAt: null,
  lostBatches: 0,
  clockOffsetMs: 0,
  tls: true,
  method: 'token',
  plan: 'the-plan',
  epoch: 4711,
}

/** Time that stands still until a test moves it; waits are real. */
export interface TestClock extends Clock {
  at: number
}

export interface World extends AsyncDisposable {
  readonly clock: TestClock
  readonly server: ReturnType<typeof apiServer>
  readonly bus: InProcessEventBus
  readonly state: StateReader
  readonly metrics: Metrics
  /** unless the test gave another */
  readonly history: MemoryHistory
  /** Says what a source saw on a cluster. */
  collected(cluster: string, state: RowsState): void
  /** what the access decision goes by; none to begin with */
  readonly policies: MemoryPolicies
  readonly told: { availability: Availability; alerts: Readonly<Record<string, string>>[] }
  connect(cluster: string, changes?: Partial<ConnectionFacts>): Promise<void>
  batch(cluster: string, parts: readonly Part[], more?: Partial<Batch>): Promise<void>
  agent(cluster: string, changes?: Partial<AgentFacts>): Promise<void>
  remove(cluster: string): Promise<void>
  get(url: string, headers?: Record<string, string>): Promise<{ status: number; body: unknown; headers: Headers }>
}
type Headers = Readonly<Record<string, string | string[] | number | undefined>>

/** Whoever asks is the administrator. */
export const localAdministrator: IdentityConfig = { localAdministrator: {} }
/** Whoever asks says who they are. */
export const proxy: IdentityConfig = { proxy: { trustedPeers: ['127.0.0.1'] } }

/** What a test may choose besides: how people sign in, and the policies at the start. */
export interface WorldConfig extends Omit<Partial<ApiConfig>, 'identity'> {
  readonly identity?: IdentityConfig
  readonly policies?: readonly PolicyDocument[]
}

const noResult = { status: 'success', data: { resultType: 'vector', result: [] } }

export async function aWorld(
  { identity: ways = localAdministrator, policies: given = [], ...config }: WorldConfig = {},
  options: Partial<ApiOptions> = {},
): Promise<World> {
  const directory = await mkdtemp(join(tmpdir(), 'api-test-'))
  const clock: TestClock = { at: start, now: () => clock.at, sleep: systemClock.sleep }
  const store = await EmbeddedStateStore.open({ directory, clock })
  const bus = new InProcessEventBus({ capacity: 200 })
  const metrics = new Metrics({}, { processMetrics: false })
  const history = new MemoryHistory()
  history.promql = { ask: async () => ({ status: 200, body: noResult }) }
  let position = 0
  const sequences = new Map<string, number>()
  // What a test says of the store and its alerts, besides what the store itself knows.
  const told: { availability: Availability; alerts: Readonly<Record<string, string>>[] } = {
    availability: { state: 'available' },
    alerts: [],
  }
  // By cluster; a new map with everything that is told.
  const custom = new Map<string, ReadonlyMap<string, RowsState>>()
  const whole = new WeakMap<ClusterState, { readonly custom: unknown; readonly state: ClusterState }>()
  let tellings = 0
  function withCustom(state: ClusterState): ClusterState {
    const collected = custom.get(state.name)
    if (!collected) return state
    const known = whole.get(state)
    if (known?.custom === collected) return known.state
    const made = { ...state, tables: collected }
    whole.set(state, { custom: collected, state: made })
    return made
  }
  const state: StateReader = {
    availability: () => told.availability,
    version: () => store.version() + tellings,
    clusters: () => store.clusters().map(withCustom),
    cluster: (name) => {
      const found = store.cluster(name)
      return found && withCustom(found)
    },
    alerts: (name) => told.alerts.filter(({ cluster = name }) => cluster === name),
  }
  const policies = new MemoryPolicies()
  await policies.resync(given.map((document) => ({ document, status: {} })))
  const administrators = { users: ['admin'], groups: ['admins'] }
  const identity = await openIdentity({ config: ways, clock, logger: silentLogger, metrics })
  const server = apiServer({
    state,
    events: bus,
    identity,
    access: openAccess({ source: policies, semantics: config.semantics ?? 'strict', administrators, clock }),
    logger: silentLogger,
    clock,
    version: '1.2.3',
    metrics,
    history,
    ...options,
    config: {
      host: '127.0.0.1',
      port: 0,
      identity: ways,
      streamGatherMs: 0,
      // A test asks as one person for all that it wants to know.
      streamOpens: { perSecond: 1000, burst: 10_000 },
      ...config,
    },
  })
  async function apply(record: StateRecord): Promise<void> {
    position += 1
    await bus.publish(await store.apply([record], position))
  }
  return {
    clock,
    server,
    bus,
    state,
    metrics,
    history,
    policies,
    told,
    connect: (cluster, changes) =>
      apply({
        kind: 'connection',
        cluster: parseClusterName(cluster),
        connection: connection(changes),
        at: clock.at,
      }),
    batch: (cluster, parts, more = {}) => {
      const sequence = (sequences.get(cluster) ?? 0) + 1
      sequences.set(cluster, sequence)
      const batch: Batch = {
        cluster: parseClusterName(cluster),
        sequence,
        source: 'pull',
        collectedAt: clock.at,
        durationMs: 100,
        parts,
        ...more,
      }
      return apply({ kind: 'batch', batch, receivedAt: clock.at + 5 })
    },
    agent: (cluster, changes) =>
      apply({ kind: 'agent', cluster: parseClusterName(cluster), agent: { ...anAgent, ...changes }, at: clock.at }),
    collected: (cluster, seen) => {
      tellings += 1
      custom.set(cluster, new Map([...(custom.get(cluster) ?? []), [seen.source, seen]]))
    },
    remove: (cluster) => apply({ kind: 'removed', cluster: parseClusterName(cluster), at: clock.at }),
    get: async (url, headers = {}) => {
      const response = await server.app.inject({ method: 'GET', url, headers: { host: 'localhost', ...headers } })
      const isJson = String(response.headers['content-type']).includes('json')
      const body: unknown = isJson && response.body !== '' ? response.json() : response.body
      return { status: response.statusCode, body, headers: response.headers }
    },
    [Symbol.asyncDispose]: async () => {
      await server.stop()
      await identity[Symbol.asyncDispose]()
      await bus[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
}
