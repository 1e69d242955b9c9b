import type { AccessFilter, Principal } from '#access'
import type { AgentView, ClusterView, PartView, RowType } from '#http'
import type {
  AgentFacts,
  ClusterState,
  DeploymentSnapshot,
  Freshness,
  NamespaceSnapshot,
  PartState,
  PodCounts,
  SnapshotOf,
  SnapshotType,
} from '#model'
import { clusterTotals, seconds, snapshotTypes } from '#model'

export const rowTypes: readonly RowType[] = ['node', 'namespace', 'deployment', 'operator', 'clusterOperator']

const defaultIntervalMs = seconds(30)
const defaultTimeoutMs = seconds(10)

/** Above this age what was read is of the past: three rounds were missed. */
export function staleAfterMs({ connection }: ClusterState): number {
  return 3 * (connection?.intervalMs ?? defaultIntervalMs) + (connection?.timeoutMs ?? defaultTimeoutMs)
}

/** When time alone makes the facts of this cluster stale; Infinity for one of which nothing was ever heard. */
export function staleAt(cluster: ClusterState): number {
  const { lastSyncAt, checkedAt } = cluster.status
  const since = lastSyncAt ?? checkedAt
  return since === null ? Number.POSITIVE_INFINITY : since + staleAfterMs(cluster)
}

/** When even the health is of the past: not one round ended since, well or badly. */
export function silentAt(cluster: ClusterState): number {
  const { checkedAt } = cluster.status
  return checkedAt === null ? Number.POSITIVE_INFINITY : checkedAt + staleAfterMs(cluster)
}

/** The next moment at which the view changes by time alone. */
export function steadyUntil(cluster: ClusterState, now: number): number {
  const moments = [staleAt(cluster), silentAt(cluster)].filter((at) => at > now)
  return Math.min(Number.POSITIVE_INFINITY, ...moments)
}

/** At most this many sorts of principals are remembered per state of a cluster; the oldest makes room. */
const maxFingerprints = 64

/** Everything of one cluster as one sort of principal may see it; each view is made once per state of the cluster. */
export class Views {
  readonly #access: AccessFilter
  readonly #known = new WeakMap<ClusterState, Map<string, VisibleCluster>>()

  constructor(access: AccessFilter) {
    this.#access = access
  }

  /** undefined: the principal may not know that the cluster exists */
  of(principal: Principal, cluster: ClusterState): VisibleCluster | undefined {
    if (!this.#access.canSee(principal, cluster)) return undefined
    const fingerprint = this.#access.fingerprint(principal)
    const byFingerprint = this.#known.get(cluster) ?? new Map<string, VisibleCluster>()
    this.#known.set(cluster, byFingerprint)
    const known = byFingerprint.get(fingerprint)
    if (known) return known
    const oldest = byFingerprint.keys().next()
    if (byFingerprint.size >= maxFingerprints && !oldest.done) byFingerprint.delete(oldest.value)
    const made = new VisibleCluster(cluster, <T extends SnapshotType>(type: T) =>
      this.#access.visible(principal, cluster, type),
    )
    byFingerprint.set(fingerprint, made)
    return made
  }
}

type Visible = <T extends SnapshotType>(type: T) => readonly SnapshotOf<T>[]

/** One row with its text. */
export interface Row<T extends RowType = RowType> {
  readonly name: string
  readonly snapshot: SnapshotOf<T>
  readonly json: string
  /** of a namespace */
  readonly pods: PodCounts | null
  readonly deployments: number | null
}

export class VisibleCluster {
  readonly state: ClusterState
  /** what the principal may see, in no order */
  readonly visible: Visible
  readonly #rows = new Map<RowType, ReadonlyMap<string, Row>>()
  readonly #memo = new Map<string, unknown>()
  #fresh: { readonly view: ClusterView; readonly json: string } | undefined
  #stale: { readonly view: ClusterView; readonly json: string } | undefined

  constructor(state: ClusterState, visible: Visible) {
    this.state = state
    this.visible = visible
  }

  isStale(now: number): boolean {
    return now >= staleAt(this.state)
  }

  view(now: number): ClusterView {
    return this.#made(now).view
  }

  json(now: number): string {
    return this.#made(now).json
  }

  /** Keeps anything that depends on this state and these eyes alone. */
  memo<T>(key: string, make: () => T): T {
    if (!this.#memo.has(key)) this.#memo.set(key, make())
    return this.#memo.get(key) as T // set above, by the same key
  }

  #made(now: number): { readonly view: ClusterView; readonly json: string } {
    if (this.isStale(now)) {
      this.#stale ??= withJson({ ...this.#made(Number.NEGATIVE_INFINITY).view, stale: true })
      return this.#stale
    }
    this.#fresh ??= withJson(clusterView(this.state, this.visible))
    return this.#fresh
  }

  /** Sorted by name. */
  rows<T extends RowType>(type: T): ReadonlyMap<string, Row<T>> {
    let rows = this.#rows.get(type)
    if (!rows) {
      rows = makeRows(this.state, type, this.visible)
      this.#rows.set(type, rows)
    }
    return rows as ReadonlyMap<string, Row<T>> // kept under its type
  }

  /** null: never read so far */
  part(type: SnapshotType): PartView | null {
    const part = this.state.parts[type]
    return part ? partView(part, this.visible(type).length) : null
  }
}

const withJson = (view: ClusterView) => ({ view, json: JSON.stringify(view) })

// Views are written by name: what a state object may carry besides does not leak into an answer.
function partView(part: PartState<SnapshotType>, count: number): PartView {
  const { outcome, code, message, attemptedAt, freshness } = part
  return { outcome, code, message, attemptedAt, freshness: freshness && freshnessView(freshness), count }
}

const freshnessView = ({ observedAt, receivedAt, source }: Freshness): Freshness => ({ observedAt, receivedAt, source })

/** How it proved who it is, its plan and its turn are the hub's own business. */
const agentView = (agent: AgentFacts): AgentView => ({
  connected: agent.connected,
  since: agent.since,
  reason: agent.reason,
  version: agent.version,
  protocol: agent.protocol,
  heartbeatAt: agent.heartbeatAt,
  bufferedBatches: agent.bufferedBatches,
  bufferedBytes: agent.bufferedBytes,
  oldestBufferedAt: agent.oldestBufferedAt,
  lostBatches: agent.lostBatches,
  clockOffsetMs: agent.clockOffsetMs,
  tls: agent.tls,
})

function clusterView(state: ClusterState, visible: Visible): ClusterView {
  const { connection, status } = state
  const wasRead = (type: SnapshotType): boolean => (state.parts[type]?.freshness ?? null) !== null
  const totals = clusterTotals({
    nodes: wasRead('node') ? visible('node') : null,
    podSummary: visible('podSummary')[0] ?? null,
    namespaces: wasRead('namespace') ? visible('namespace') : null,
    deployments: wasRead('deployment') ? visible('deployment') : null,
    operators: wasRead('operator') ? visible('operator') : null,
    clusterOperators: wasRead('clusterOperator') ? visible('clusterOperator') : null,
  })
  const parts: Record<string, PartView> = {}
  for (const type of snapshotTypes) {
    const part = state.parts[type]
    if (part) parts[type] = partView(part, visible(type).length)
  }
  return {
    name: state.name,
    displayName: connection?.displayName || state.name,
    endpoint: connection?.endpoint ?? '',
    labels: { ...connection?.labels },
    mode: connection?.mode ?? state.source,
    source: state.source,
    agent: state.agent && agentView(state.agent),
    insecureSkipTlsVerify: connection?.insecureSkipTlsVerify ?? false,
    health: status.health,
    message: status.message,
    reasons: status.reasons.map(({ code, message }) => ({ code, message })),
    stale: false,
    staleAfterMs: staleAfterMs(state),
    intervalMs: connection?.intervalMs ?? defaultIntervalMs,
    checkedAt: status.checkedAt,
    lastSyncAt: status.lastSyncAt,
    facts: visible('cluster')[0] ?? null,
    ...totals,
    heartbeats: state.heartbeats.map(({ at, health, durationMs }) => ({ at, health, durationMs })),
    parts,
  }
}

function makeRows<T extends RowType>(state: ClusterState, type: T, visible: Visible): ReadonlyMap<string, Row<T>> {
  const freshness = state.parts[type]?.freshness
  if (!freshness) return new Map()
  const ending = `,"cluster":${JSON.stringify(state.name)},"freshness":${JSON.stringify(freshnessView(freshness))}`
  const extras = type === 'namespace' ? namespaceExtras(state, visible) : noExtras
  const rows = visible(type)
    .map((snapshot): Row<T> => {
      const { pods, deployments } = extras(snapshot.name)
      const more = type === 'namespace' ? `,"pods":${JSON.stringify(pods)},"deployments":${deployments}` : ''
      return {
        name: snapshot.name,
        snapshot,
        pods,
        deployments,
        get json() {
          return `${snapshotJson(snapshot).slice(0, -1)}${ending}${more}}`
        },
      }
    })
    .sort((left, right) => byText(left.name, right.name))
  return new Map(rows.map((row) => [row.name, row]))
}

// An unchanged snapshot stays the same object through many batches; only its freshness moves.
const snapshotTexts = new WeakMap<object, string>()

function snapshotJson(snapshot: object): string {
  const known = snapshotTexts.get(snapshot)
  if (known !== undefined) return known
  const text = JSON.stringify(snapshot)
  snapshotTexts.set(snapshot, text)
  return text
}

type Extras = (name: string) => Pick<Row, 'pods' | 'deployments'>
const noExtras: Extras = () => ({ pods: null, deployments: null })
const noPods: PodCounts = { total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 }

function namespaceExtras(state: ClusterState, visible: Visible): Extras {
  const summary = visible('podSummary')[0]
  const deploymentsRead = (state.parts.deployment?.freshness ?? null) !== null
  const deployments = countBy(visible('deployment'))
  return (name) => ({
    pods: summary ? (ownValue(summary.byNamespace, name) ?? noPods) : null,
    deployments: deploymentsRead ? (deployments.get(name) ?? 0) : null,
  })
}

function countBy(deployments: readonly DeploymentSnapshot[]): ReadonlyMap<NamespaceSnapshot['name'], number> {
  const counts = new Map<string, number>()
  for (const { namespace } of deployments) counts.set(namespace, (counts.get(namespace) ?? 0) + 1)
  return counts
}

// A namespace may be called "constructor".
const ownValue = <V>(record: Readonly<Record<string, V>>, key: string): V | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined

/** Order by code units: the same everywhere, whatever the locale. */
export const byText = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0)
