import type { NumberedChange } from '#events'
import type { PartView, RowType } from '#http'
import type { FleetEvent, SnapshotType } from '#model'
import { rowTypes, type VisibleCluster } from './views.ts'

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
  readonly rows = new Map<string, Set<string>>()
  readonly events: FleetEvent[] = []

  get isEmpty(): boolean {
    return this.clusters.size === 0 && this.rows.size === 0 && this.events.length === 0
  }

  add(changes: readonly NumberedChange[]): void {
    for (const { change } of changes) {
      if (change.kind === 'event') {
        if (this.events.length < maxEvents) this.events.push(change.event)
      } else if (change.kind === 'cluster') {
        this.clusters.add(change.cluster)
        if (change.op === 'remove') this.removed.add(change.cluster)
      } else {
        this.#addRow(change.cluster, change.type, change.name)
      }
    }
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
  /** the clusters that its readers hold; kept by `changeTexts` */
  readonly shown: Set<string>
}

/** The changes of a frame as JSON texts, in the order in which they apply. */
export function changeTexts(dirty: Dirty, subscription: Subscription, now: number): string[] {
  const texts: string[] = []
  const names = new Set([...dirty.clusters, ...[...dirty.rows.keys()].map((key) => key.slice(key.indexOf('/') + 1))])
  for (const name of names) clusterTexts(name, dirty, subscription, now, texts)
  for (const event of dirty.events) {
    if (!subscription.clusters.has(event.cluster) || !subscription.see(event.cluster)) continue
    const { type, cluster, at, data } = event
    texts.push(JSON.stringify({ op: 'event', type: 'event', view: { type, cluster, at, data } }))
  }
  return texts
}

function clusterTexts(name: string, dirty: Dirty, subscription: Subscription, now: number, texts: string[]): void {
  const { shown, see, clusters, types } = subscription
  const cluster = see(name)
  if (shown.has(name) && (!cluster || dirty.removed.has(name))) {
    texts.push(JSON.stringify({ op: 'remove', type: 'cluster', cluster: name }))
    shown.delete(name)
  }
  if (!cluster) return // hidden clusters are not even removed by name
  const isNew = !shown.has(name)
  shown.add(name)
  texts.push(`{"op":"put","type":"cluster","view":${cluster.json(now)}}`)
  if (!clusters.has(name)) return
  for (const type of rowTypes) {
    if (!types.has(type)) continue
    const moved = dirty.rows.get(rowsKey(name, type))
    const rows = cluster.rows(type)
    const touched = isNew || moved?.has(everyName) ? new Set([...(moved ?? []), ...rows.keys()]) : (moved ?? [])
    for (const row of touched) if (row !== everyName) texts.push(rowText(cluster, type, row))
    const part = cluster.part(type)
    if (part) texts.push(partText(name, type, part))
  }
}

function rowText(cluster: VisibleCluster, type: RowType, name: string): string {
  const row = cluster.rows(type).get(name)
  if (!row) return JSON.stringify({ op: 'remove', type, cluster: cluster.state.name, name })
  return `{"op":"put","type":"${type}","cluster":${JSON.stringify(cluster.state.name)},"view":${row.json}}`
}

const partText = (cluster: string, type: RowType, part: PartView): string =>
  JSON.stringify({ op: 'part', type, cluster, part })
