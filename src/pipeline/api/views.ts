import type { AccessView } from '#access'
import type { AgentView, ClusterView, PartView, RowType } from '#http'
import type {
  AgentFacts,
  ClusterName,
  ClusterState,
  DeploymentSnapshot,
  FleetEvent,
  Freshness,
  Health,
  NamespaceSnapshot,
  PartState,
  PodCounts,
  SeenOf,
  SnapshotType,
} from '#model'
import { awaitedUntil, clusterTotals, minutes, seconds, snapshotTypes } from '#model'
import { EVENTS_KEPT, HEARTBEATS_KEPT } from '#state'
import { plainFault, type SeenStatus, seenFacts, seenStatus } from './seen-status.ts'

export const rowTypes: readonly RowType[] = ['node', 'namespace', 'deployment', 'operator', 'clusterOperator']

const defaultIntervalMs = seconds(30)
const defaultTimeoutMs = seconds(10)
const defaultScanIntervalMs = seconds(300)

/** Time between two reads of these snapshots; not all are due in every round. */
export function readIntervalMs({ connection }: ClusterState, type?: SnapshotType): number {
  const intervalMs = connection?.intervalMs ?? defaultIntervalMs
  if (type !== 'operator') return intervalMs
  return Math.max(intervalMs, connection?.operatorScanIntervalMs ?? defaultScanIntervalMs)
}

/** Above this age what was read is of the past: three rounds were missed. */
export function staleAfterMs(cluster: ClusterState): number {
  return 3 * readIntervalMs(cluster) + (cluster.connection?.timeoutMs ?? defaultTimeoutMs)
}

/** When time alone makes the facts of this cluster stale; Infinity for one of which nothing was ever heard. */
export function staleAt(cluster: ClusterState): number {
  const { lastSyncAt, checkedAt } = cluster.status
  const since = lastSyncAt ?? checkedAt
  return since === null ? Number.POSITIVE_INFINITY : since + staleAfterMs(cluster)
}

/** When even the health is of the past: not one round ended since, well or badly, though the hub was there to hear of it. */
export function silentAt(cluster: ClusterState): number {
  const { agent, status } = cluster
  if (status.checkedAt === null) return Number.POSITIVE_INFINITY
  return Math.max(status.checkedAt + staleAfterMs(cluster), agent ? awaitedUntil(agent) : 0)
}

/** The next moment at which the view changes by time alone. */
export function steadyUntil(cluster: ClusterState, now: number): number {
  const moments = [staleAt(cluster), silentAt(cluster)].filter((at) => at > now)
  return Math.min(Number.POSITIVE_INFINITY, ...moments)
}

/** At most this many access views are remembered per state of a cluster; the oldest makes room. */
const maxAccessViews = 64

/** Everything of one cluster as one access view shows it; each view is made once per state of the cluster. */
export class Views {
  readonly #known = new WeakMap<ClusterState, Map<string, VisibleCluster>>()

  /** undefined: nobody with this access view may know that the cluster exists */
  of(accessView: AccessView, cluster: ClusterState): VisibleCluster | undefined {
    const byAccessView = this.#known.get(cluster) ?? new Map<string, VisibleCluster>()
    const known = byAccessView.get(accessView.fingerprint)
    if (known) return known
    if (!accessView.canSee(cluster)) return undefined
    // Whoever sees all of a cluster and its measurements sees the same, and does not push others out.
    const isWhole = accessView.whole(cluster) && accessView.usage(cluster)
    const key = isWhole ? `whole, ${accessView.history(cluster) ? 'with' : 'without'} history` : accessView.fingerprint
    const shared = byAccessView.get(key)
    if (shared) return shared
    const made = new VisibleCluster(cluster, accessView)
    this.#known.set(cluster, byAccessView)
    this.#keep(byAccessView, key, made)
    return made
  }

  #keep(byAccessView: Map<string, VisibleCluster>, key: string, made: VisibleCluster): void {
    const oldest = byAccessView.keys().next()
    if (byAccessView.size >= maxAccessViews && !oldest.done) byAccessView.delete(oldest.value)
    byAccessView.set(key, made)
  }
}

type Visible = <T extends SnapshotType>(type: T) => readonly SeenOf<T>[]

/** One row with its text. */
export interface Row<T extends RowType = RowType> {
  readonly name: string
  readonly snapshot: SeenOf<T>
  /** of a namespace; '' of other rows */
  readonly extras: string
  readonly json: string
  readonly pods: PodCounts | null
  readonly deployments: number | null
}

export class VisibleCluster {
  readonly state: ClusterState
  readonly accessView: AccessView
  /** nothing of it is hidden, so that sums over all of it may be shown */
  readonly whole: boolean
  /** deployments that were counted and not read, for who sees the whole cluster; undefined for others */
  readonly deploymentCount: number | undefined
  /** measurements may be shown */
  readonly usage: boolean
  /** values over time may be shown */
  readonly history: boolean
  readonly #visible = new Map<SnapshotType, readonly unknown[]>()
  readonly #rows = new Map<RowType, ReadonlyMap<string, Row>>()
  readonly #memo = new Map<string, unknown>()
  #fresh: { readonly view: ClusterView; readonly json: string } | undefined
  #stale: { readonly view: ClusterView; readonly json: string } | undefined

  constructor(state: ClusterState, accessView: AccessView) {
    this.state = state
    this.accessView = accessView
    this.whole = accessView.whole(state)
    this.deploymentCount = this.whole ? state.deploymentCount : undefined
    this.usage = accessView.usage(state)
    this.history = accessView.history(state)
  }

  /** What is left of the snapshots of a type, in no order. */
  readonly visible: Visible = <T extends SnapshotType>(type: T): readonly SeenOf<T>[] => {
    const known = this.#visible.get(type)
    if (known) return known as readonly SeenOf<T>[] // kept under its type
    const items = this.accessView.visible(this.state, type)
    this.#visible.set(type, items)
    return items
  }

  /** As far as it can be told from what is seen. */
  get status(): SeenStatus {
    return this.memo('status', () => seenStatus(this))
  }

  /** What happened, newest first. */
  get events(): readonly FleetEvent[] {
    return this.memo('events', () => this.state.events.filter((event) => this.accessView.showsEvent(this.state, event)))
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

  /** Keeps anything that depends on this state and this access view alone. */
  memo<T>(key: string, make: () => T): T {
    if (!this.#memo.has(key)) this.#memo.set(key, make())
    return this.#memo.get(key) as T // set above, by the same key
  }

  #made(now: number): { readonly view: ClusterView; readonly json: string } {
    if (this.isStale(now)) {
      this.#stale ??= withJson({ ...this.#made(Number.NEGATIVE_INFINITY).view, stale: true })
      return this.#stale
    }
    this.#fresh ??= withJson(clusterView(this))
    return this.#fresh
  }

  /** Sorted by name. */
  rows<T extends RowType>(type: T): ReadonlyMap<string, Row<T>> {
    let rows = this.#rows.get(type)
    if (!rows) {
      rows = makeRows(this, type)
      this.#rows.set(type, rows)
    }
    return rows as ReadonlyMap<string, Row<T>> // kept under its type
  }

  /** null: never read so far, or hidden */
  part(type: SnapshotType): PartView | null {
    const part = this.state.parts[type]
    if (!part || this.#hides(type)) return null
    return partView(part, this.visible(type).length, this.whole)
  }

  /** Pods are summed up in one row: without it they are hidden, which is not the same as none. */
  get hidesPods(): boolean {
    return this.#hides('podSummary')
  }

  #hides(type: SnapshotType): boolean {
    if (this.whole || type !== 'podSummary') return false
    const { podSummary } = this.state.parts
    return (podSummary?.items.size ?? 0) > 0 && this.visible('podSummary').length === 0
  }
}

const withJson = (view: ClusterView) => ({ view, json: JSON.stringify(view) })

// Views are written by name: what a state object may carry besides does not leak into an answer.
function partView(part: PartState<SnapshotType>, count: number, whole: boolean): PartView {
  const { outcome, code, message, attemptedAt, freshness } = part
  return {
    outcome,
    code,
    message: whole ? message : plainFault(outcome),
    attemptedAt,
    freshness: freshness && freshnessView(freshness),
    count,
  }
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
  ...(agent.process !== undefined && { process: agent.process }),
})

/** A cluster that is read by the hub again has no agent once its stream is gone; what could not be removed there its connection tells. */
const isForgotten = ({ agent, connection }: ClusterState): boolean =>
  connection?.mode === 'pull' && agent?.connected === false

const polledOf = ({ source, agent, connection }: ClusterState): readonly string[] =>
  (source === 'push' ? agent?.polled : connection?.polled) ?? []

function clusterView(cluster: VisibleCluster): ClusterView {
  const { state, visible, status, whole } = cluster
  const { connection } = state
  const wasRead = (type: SnapshotType): boolean => (state.parts[type]?.freshness ?? null) !== null
  const totals = clusterTotals({
    nodes: wasRead('node') ? visible('node') : null,
    podSummary: visible('podSummary')[0] ?? null,
    namespaces: wasRead('namespace') ? visible('namespace') : null,
    deployments: wasRead('deployment') ? visible('deployment') : null,
    deploymentCount: cluster.deploymentCount,
    operators: wasRead('operator') ? visible('operator') : null,
    clusterOperators: wasRead('clusterOperator') ? visible('clusterOperator') : null,
  })
  const parts: Record<string, PartView> = {}
  for (const type of snapshotTypes) {
    const part = cluster.part(type)
    if (part) parts[type] = part
  }
  return {
    name: state.name,
    displayName: connection?.displayName || state.name,
    endpoint: connection?.endpoint ?? '',
    labels: { ...connection?.labels },
    mode: connection?.mode ?? state.source,
    source: state.source,
    agent: isForgotten(state) || !state.agent ? null : agentView(state.agent),
    insecureSkipTlsVerify: connection?.insecureSkipTlsVerify ?? false,
    ...(whole && { polled: [...polledOf(state)] }),
    ...(connection?.owner !== undefined && { owner: connection.owner }),
    health: status.health,
    message: status.message,
    reasons: status.reasons.map(({ code, message }) => ({ code, message })),
    stale: false,
    staleAfterMs: staleAfterMs(state),
    intervalMs: readIntervalMs(state),
    operatorIntervalMs: readIntervalMs(state, 'operator'),
    checkedAt: state.status.checkedAt,
    lastSyncAt: state.status.lastSyncAt,
    facts: seenFacts(cluster),
    ...totals,
    pods: cluster.hidesPods ? null : totals.pods,
    filtered: !whole,
    heartbeats: status.heartbeats.map(({ at, health, durationMs }) => ({ at, health, durationMs })),
    ...earlierOf(cluster),
    parts,
  }
}

const healths: ReadonlySet<unknown> = new Set<Health>(['healthy', 'degraded', 'unhealthy', 'unknown'])
const isHealth = (value: unknown): value is Health => healths.has(value)

/** Heartbeats of one minute and more reach back an hour; of shorter rounds the events remember what was before them. */
function earlierOf({ state, whole }: VisibleCluster): Pick<ClusterView, 'earlier'> {
  const { heartbeats, events } = state
  const [first, second] = heartbeats
  const hourAgo = (heartbeats.at(-1)?.at ?? 0) - minutes(60)
  if (!first || !second || heartbeats.length < HEARTBEATS_KEPT || first.at <= hourAgo) return {}
  // How healthy the whole was tells of what is hidden.
  if (!whole) return { earlier: { knownSince: first.at, turns: [] } }
  const lastEvent = events.length < EVENTS_KEPT ? undefined : events.at(-1)
  const turns = events.flatMap(({ type, at, data }) => {
    const { from, to } = data ?? {}
    const isTurn = type === 'cluster.health' && isHealth(from) && isHealth(to)
    return isTurn && at >= hourAgo && at < second.at ? [{ at, from, to }] : []
  })
  return { earlier: { knownSince: Math.min(Math.max(lastEvent?.at ?? 0, hourAgo), first.at), turns: turns.reverse() } }
}

function makeRows<T extends RowType>(cluster: VisibleCluster, type: T): ReadonlyMap<string, Row<T>> {
  const { state, visible } = cluster
  const freshness = state.parts[type]?.freshness
  if (!freshness) return new Map()
  const ending = `,"cluster":${JSON.stringify(state.name)},"freshness":${JSON.stringify(freshnessView(freshness))}`
  const extrasOf = type === 'namespace' ? namespaceExtras(cluster) : noExtras
  const rows = visible(type)
    .map((snapshot): Row<T> => {
      const { pods, deployments } = extrasOf(snapshot.name)
      const extras = type === 'namespace' ? `,"pods":${JSON.stringify(pods)},"deployments":${deployments}` : ''
      return {
        name: snapshot.name,
        snapshot,
        extras,
        pods,
        deployments,
        get json() {
          return `${snapshotJson(snapshot).slice(0, -1)}${ending}${extras}}`
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

/** Whether a reader of one has the other, but for its age. */
export const sameRow = (left: Row, right: Row): boolean =>
  left.extras === right.extras &&
  (left.snapshot === right.snapshot || snapshotJson(left.snapshot) === snapshotJson(right.snapshot))

type Extras = (name: string) => Pick<Row, 'pods' | 'deployments'>
const noExtras: Extras = () => ({ pods: null, deployments: null })
const noPods: PodCounts = { total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 }

function namespaceExtras(cluster: VisibleCluster): Extras {
  const { state, visible } = cluster
  const summary = visible('podSummary')[0]
  const deploymentsRead = (state.parts.deployment?.freshness ?? null) !== null
  const deployments = countBy(visible('deployment'))
  // A namespace that the summary does not name has no pods, or none that are for these eyes.
  const others = podsAreFiltered(cluster) ? null : noPods
  return (name) => ({
    pods: summary ? (ownValue(summary.byNamespace, name) ?? others) : null,
    deployments: deploymentsRead ? (deployments.get(name) ?? 0) : null,
  })
}

function podsAreFiltered({ state, accessView, whole }: VisibleCluster): boolean {
  if (whole) return false
  const { pods } = accessView.permissions(state).filters
  return pods !== undefined && pods.visibility !== 'all'
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

/** A cluster that is not there, to decide over its name as if it were. */
export const nobody = (name: string): ClusterState => ({
  name: name as ClusterName, // compared with selectors only
  connection: null,
  status: { health: 'unknown', message: '', reasons: [], checkedAt: null, lastSyncAt: null },
  sequence: 0,
  origin: '',
  source: 'pull',
  agent: null,
  parts: {},
  tables: new Map(),
  heartbeats: [],
  events: [],
  version: 0,
})
