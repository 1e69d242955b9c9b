import type { NumberedChange } from '#events'
import type { PartView, RowType } from '#http'
import type { ClusterState, FleetEvent, SnapshotType } from '#model'
import { type Row, rowTypes, sameRow, type VisibleCluster } from './views.ts'

/** At most so many events wait for one frame; older ones are in the list of the cluster's events anyway. */
const maxEvents = 5000

/**
 * What moved since the last frame, each thing once. Only names are kept: a frame is made from the state at the moment of
 * sending, so a thing that moved ten times travels once, as it is now.
 */
export class Dirty {
  readonly clusters = new Set<string>()
  /** gone at least once, whether or not they are back */
  readonly removed = new Set<string>()
  /** became old by time alone */
  readonly aged = new Set<string>()
  readonly rows = new Map<string, Set<string>>()
  readonly events: FleetEvent[] = []
  /** something in here has a number on the bus */
  isNumbered = false

  get isEmpty(): boolean {
    return this.clusters.size === 0 && this.rows.size === 0 && this.events.length === 0
  }

  add(changes: readonly NumberedChange[]): void {
    this.isNumbered ||= changes.length > 0
    for (const { change } of changes) {
      if (change.kind === 'event') {
        if (this.events.length < maxEvents) this.events.push(change.event)
      } else if (change.kind === 'cluster') {
        this.clusters.add(change.cluster)
        if (change.op === 'remove') this.removed.add(change.cluster)
      } else if (change.kind === 'snapshot') {
        this.#addRow(change.cluster, change.type, change.name)
      }
    }
  }

  age(cluster: string): void {
    this.clusters.add(cluster)
    this.aged.add(cluster)
  }

  #addRow(cluster: string, type: SnapshotType, name: string): void {
    // The view of the cluster sums up its snapshots.
    this.clusters.add(cluster)
    if (type !== 'cluster' && type !== 'podSummary') this.#touch(cluster, type, name)
    // Rows of namespaces count pods and deployments; which of them moved is not said.
    if (type === 'podSummary' || type === 'deployment') this.#touch(cluster, 'namespace', everyName)
  }

  #touch(cluster: string, type: RowType, name: string): void {
    const key = rowsKey(cluster, type)
    const names = this.rows.get(key) ?? new Set<string>()
    names.add(name)
    this.rows.set(key, names)
  }
}

// No Kubernetes name is empty.
const everyName = ''
const rowsKey = (cluster: string, type: RowType): string => `${type}/${cluster}`

/** What one sort of stream carries. */
export interface Subscription {
  readonly clusters: ReadonlySet<string>
  readonly types: ReadonlySet<RowType>
  /** undefined: no such cluster, or hidden */
  readonly see: (name: string) => VisibleCluster | undefined
  /** kept by `changeTexts` and `hold` */
  readonly held: Held
}

/**
 * What the readers of a subscription hold. Only what was shown is ever taken back: the name of a row that is hidden, or of a
 * cluster, is in no message, not even in one that says it is gone. What is seen may change without any row moving, when
 * labels do; so the held rows are compared, not the names of what moved.
 */
export class Held {
  readonly clusters = new Map<string, ClusterState>()
  readonly rows = new Map<string, ReadonlyMap<string, Row>>()

  forget(cluster: string): void {
    this.clusters.delete(cluster)
    for (const type of rowTypes) this.rows.delete(rowsKey(cluster, type))
  }

  clear(): void {
    this.clusters.clear()
    this.rows.clear()
  }
}

/** Notes that the readers were given all of this cluster. */
export function hold({ held, clusters, types }: Subscription, cluster: VisibleCluster): void {
  const { name } = cluster.state
  held.clusters.set(name, cluster.state)
  if (!clusters.has(name)) return
  for (const type of types) held.rows.set(rowsKey(name, type), cluster.rows(type))
}

/** The changes of a frame as JSON texts, in the order in which they apply; afterwards the readers hold what is so now. */
export function changeTexts(dirty: Dirty, subscription: Subscription, now: number): string[] {
  const texts: string[] = []
  for (const name of dirty.clusters) clusterTexts(name, dirty, subscription, now, texts)
  for (const event of dirty.events) {
    if (!subscription.clusters.has(event.cluster)) continue
    const cluster = subscription.see(event.cluster)
    if (!cluster?.accessView.showsEvent(cluster.state, event)) continue
    const { type, at, data } = event
    texts.push(JSON.stringify({ op: 'event', type: 'event', view: { type, cluster: event.cluster, at, data } }))
  }
  return texts
}

function clusterTexts(name: string, dirty: Dirty, subscription: Subscription, now: number, texts: string[]): void {
  const { held, see, clusters, types } = subscription
  const cluster = see(name)
  const before = held.clusters.get(name)
  // One that was gone and is back holds nothing of before: whoever was away meanwhile is told so, too.
  const isAnew = before && cluster && [...types].some((type) => before.parts[type] && !cluster.state.parts[type])
  if (before && (!cluster || isAnew || dirty.removed.has(name))) {
    texts.push(JSON.stringify({ op: 'remove', type: 'cluster', cluster: name }))
    held.forget(name)
  }
  if (!cluster) return
  if (held.clusters.get(name) === cluster.state && !dirty.aged.has(name)) return
  texts.push(clusterText(cluster, now))
  if (clusters.has(name)) {
    for (const type of rowTypes) {
      if (types.has(type)) rowsTexts(cluster, type, held.rows.get(rowsKey(name, type)) ?? noRows, texts)
    }
  }
  hold(subscription, cluster)
}

const noRows: ReadonlyMap<string, Row> = new Map()

function rowsTexts(cluster: VisibleCluster, type: RowType, held: ReadonlyMap<string, Row>, texts: string[]): void {
  const rows = cluster.rows(type)
  for (const name of held.keys()) if (!rows.has(name)) texts.push(rowText(cluster, type, name))
  for (const [name, row] of rows) {
    const known = held.get(name)
    if (!known || !sameRow(known, row)) texts.push(rowText(cluster, type, name))
  }
  const part = cluster.part(type)
  if (part) texts.push(partText(cluster.state.name, type, part))
}

const clusterText = (cluster: VisibleCluster, now: number): string =>
  `{"op":"put","type":"cluster","view":${cluster.json(now)}}`

function rowText(cluster: VisibleCluster, type: RowType, name: string): string {
  const row = cluster.rows(type).get(name)
  if (!row) return JSON.stringify({ op: 'remove', type, cluster: cluster.state.name, name })
  return `{"op":"put","type":"${type}","cluster":${JSON.stringify(cluster.state.name)},"view":${row.json}}`
}

const partText = (cluster: string, type: RowType, part: PartView): string =>
  JSON.stringify({ op: 'part', type, cluster, part })
