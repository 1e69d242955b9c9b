import { MemoryPolicies, openAccess } from '#access'
import { apiServer } from '#api'
import { openEvents } from '#events'
import { type IdentityConfig, openIdentity } from '#identity'
import { type ClusterState, type Part, parseClusterName, systemClock, Table, type TableRow } from '#model'
import { resourceNamed } from '#resources'
import { Metrics, silentLogger } from '#runtime'
import { applyRecord, type StateReader, type StateRecord } from '#state'
import { allowed } from '../access/hub.ts'
import { batchOf, connectionOf } from '../baseline/fleet.ts'
import { hex, mixed } from '../table/pods.ts'

const NODES = 100
const NAMESPACES = 40

const kind = requirePods()
const fields = kind.columns.map(({ name }) => name)

const statuses = ['CrashLoopBackOff', 'Pending', 'ImagePullBackOff', 'Completed', 'Terminating'] as const

function requirePods() {
  const pods = resourceNamed('pods')
  if (!pods) throw new Error('pods are a kind of row')
  return pods
}

/** As a Deployment of ten replicas has it; of a hundred pods three do not run. */
function pod(cluster: number, i: number, turn: number): TableRow {
  const [workload, chance] = [Math.floor(i / 10), mixed(cluster * 1e5 + i + turn * 7919) % 1000]
  const namespace = `team-${workload % NAMESPACES}`
  const app = `${['api', 'web', 'worker', 'cart', 'search', 'billing'][workload % 6]}-${Math.floor(workload / NAMESPACES)}`
  const status = chance < 30 ? (statuses[chance % statuses.length] ?? 'Pending') : 'Running'
  const runs = status === 'Running'
  const name = `${app}-${hex(cluster * 1000 + workload, 8)}-${hex(cluster * 1e5 + i, 5)}`
  const values: Record<string, TableRow['values'][string]> = {
    ...{ status, ready: runs ? 1 : 0, containers: 1 },
    restarts: status === 'CrashLoopBackOff' ? 5 + (mixed(i + turn) % 200) : chance % 50 === 7 ? chance % 5 : 0,
    ...{ oomKills: 0, node: `worker-${mixed(cluster * 1e5 + i) % NODES}`, workload: `Deployment/${app}` },
    ...{ cpuRequest: (workload % 8) / 4, memoryRequest: (workload % 16) * 2 ** 28 },
    ...{ createdAt: 1.7e12 + (mixed(i) % 1e6) * 1000, phase: status === 'Pending' ? 'Pending' : 'Running' },
    ...{
      reason: null,
      message: null,
      lastTermination: null,
      owner: `ReplicaSet/${app}-${hex(cluster * 1000 + workload, 8)}`,
    },
    ...{
      qos: ['Burstable', 'Guaranteed', 'BestEffort'][workload % 3] ?? null,
      ip: `10.${cluster % 250}.${i >> 8}.${i & 255}`,
    },
    startedAt: 1.7e12 + (mixed(i) % 1e6) * 1000 + 2000,
  }
  return { namespace, name, labels: { app, team: namespace, 'pod-template-hash': hex(workload, 8) }, values }
}

/** What the process that is measured keeps, as the hub does: state without a store behind it. */
class MemoryState implements StateReader {
  #version = 0
  readonly #clusters = new Map<string, ClusterState>()
  #sorted: readonly ClusterState[] | undefined

  availability() {
    return { state: 'available' } as const
  }
  version(): number {
    return this.#version
  }
  clusters(): readonly ClusterState[] {
    this.#sorted ??= [...this.#clusters.values()].sort((left, right) => (left.name < right.name ? -1 : 1))
    return this.#sorted
  }
  cluster(name: string): ClusterState | undefined {
    return this.#clusters.get(name)
  }
  alerts(): readonly never[] {
    return []
  }
  apply(name: string, record: StateRecord): void {
    this.#version += 1
    const { next } = applyRecord(this.#clusters.get(name), record, this.#version)
    if (next) this.#clusters.set(name, next)
    this.#sorted = undefined
  }
}

/** The API server over so many pods, with an administrator `admin` and, of group `filtered`, somebody who sees a part of every cluster. */
export async function startFleet({ clusters, pods }: { readonly clusters: number; readonly pods: number }) {
  const state = new MemoryState()
  const nameOf = (index: number) => parseClusterName(`cluster-${String(index).padStart(4, '0')}`)
  const sequences = new Array<number>(clusters).fill(1)
  for (let index = 0; index < clusters; index++) {
    // Texts as they are when they were read, and not put together of parts.
    const written = JSON.stringify(Array.from({ length: pods }, (_, i) => pod(index, i, 0)))
    const rows = Table.of(fields, JSON.parse(written) as readonly TableRow[])
    const name = nameOf(index)
    state.apply(name, { kind: 'connection', cluster: name, connection: connectionOf(index), at: Date.now() })
    const batch = batchOf(index, NODES, 1, Date.now())
    const part = {
      source: kind.id,
      hash: kind.hash,
      durationMs: 9,
      outcome: 'complete' as const,
      rows,
      ...factsOf(rows),
    }
    const parts = [...batch.parts, namespacePart()]
    state.apply(name, { kind: 'batch', batch: { ...batch, parts, tables: [part] }, receivedAt: Date.now() })
  }
  /** One pod of a cluster moves, as a step tells it. */
  const change = (index: number, i: number, turn: number): void => {
    const name = nameOf(index)
    const before = state.cluster(name)?.tables.get(kind.id)
    if (!before) throw new Error(`${name} has pods`)
    const sequence = (sequences[index] ?? 0) + 1
    const put = Table.of(fields, [JSON.parse(JSON.stringify(pod(index, i, turn))) as TableRow])
    const { aggregations, truncated, errors, errorCount, reports } = before
    const part = { source: kind.id, hash: kind.hash, durationMs: 1, outcome: 'changed' as const, put, removed: [] }
    const facts = { aggregations, truncated, errors, errorCount, reports }
    const batch = { ...batchOf(index, 0, sequence, Date.now()), parts: [], partial: true, base: sequence - 1 }
    state.apply(name, { kind: 'batch', batch: { ...batch, tables: [{ ...part, ...facts }] }, receivedAt: Date.now() })
    if (state.cluster(name)?.tables.get(kind.id) === before)
      throw new Error(`the step ${sequence} of ${name} was not taken`)
    sequences[index] = sequence
  }
  return { server: await serverOf(state), change, state }
}

const factsOf = (rows: Table) => ({
  aggregations: kind.aggregate(rows),
  ...{ truncated: false, errors: [], errorCount: 0, reports: [] },
})

function namespacePart(): Part {
  const items = Array.from({ length: NAMESPACES }, (_, i) => ({
    name: `team-${i}`,
    phase: 'Active',
    createdAt: 0,
    labels: {},
  }))
  return { type: 'namespace', collector: 'bench', durationMs: 20, outcome: 'complete', items } as unknown as Part
}

async function serverOf(state: StateReader) {
  const source = new MemoryPolicies()
  const filtered = [
    { type: 'nodes', visibility: 'filtered', denied_names: ['worker-3'], deny_name_patterns: [['*-7', '^.*-7$']] },
    { type: 'namespaces', visibility: 'filtered', name_patterns: [['team-*', '^team-.*$']] },
    { type: 'pods', visibility: 'filtered', deny_ns_patterns: [['team-1?', '^team-1.$']] },
  ] as const
  await source.resync([{ document: allowed('a-part-of-all', 'filtered', ['*'], filtered), status: {} }])
  const metrics = new Metrics()
  const identity: IdentityConfig = { proxy: { trustedPeers: ['127.0.0.1'] } }
  const server = apiServer({
    state,
    events: openEvents({ kind: 'in-process' }),
    identity: await openIdentity({ config: identity, clock: systemClock, logger: silentLogger, metrics }),
    access: openAccess({
      source,
      semantics: 'strict',
      administrators: { users: ['admin'], groups: [] },
      clock: systemClock,
    }),
    config: { host: '127.0.0.1', port: 0, identity, rateLimit: { perSecond: 1e6, burst: 1e6 } },
    logger: silentLogger,
    clock: systemClock,
    version: 'bench',
    metrics,
  })
  await server.app.ready()
  return server
}
