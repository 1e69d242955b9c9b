import type { AccessView, StandardResource } from '#access'
import type { Clock, ClusterState } from '#model'
import type { StateReader } from '#state'
import {
  isStale,
  NODE_USAGE,
  type NodeDocument,
  type NodeSnapshotDocument,
  nodeDocuments,
  POD_USAGE,
  type PodDocument,
  type PodSnapshotDocument,
  podDocuments,
  rfc3339,
  timestampOf,
} from './documents.ts'
import { type Summary, Sums } from './sums.ts'

/** The two kinds of snapshot. */
export type Kind = 'nodes' | 'pods'

export const usageOf: Readonly<Record<Kind, string>> = { nodes: NODE_USAGE, pods: POD_USAGE }

/** What is told of one cluster within the fleet. */
export type FleetEntry = {
  readonly timestamp: string
  readonly stale: boolean
  /** health of the cluster, in the hub's words */
  readonly status: string
} & ({ readonly nodes: readonly NodeDocument[] } | { readonly pods: readonly PodDocument[] })

/** Totals of one cluster, and how old they are. */
export interface ClusterSummary extends Summary {
  readonly status: string
  readonly stale: boolean
  readonly timestamp: string
  readonly age_seconds: number
}

export interface PicturesOptions {
  readonly state: StateReader
  /** whether pods of a namespace are told of */
  readonly wants: (namespace: string) => boolean
  /** whose pods come first, as the original reads them first; all others follow by name */
  readonly firstNamespace: string
  readonly refreshMs: number
  readonly clock: Clock
}

/** Three periods without news, of usage or of rounds. */
const MISSED_PERIODS = 3
const PODS: StandardResource = { name: 'pods', rule: 'pods', isTaken: false }

/** What may be seen of clusters, as documents. What costs is made once per state of a cluster and shared by all who look. */
export class Pictures {
  readonly #options: PicturesOptions
  readonly #startedAt: number
  readonly #pods = new WeakMap<ClusterState, ReadonlyMap<string, readonly PodDocument[]>>()

  constructor(options: PicturesOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
  }

  timestamp(cluster: ClusterState | undefined, kind: Kind): string {
    return timestampOf(cluster, usageOf[kind], this.#startedAt)
  }

  isStale(cluster: ClusterState | undefined, kind: Kind): boolean {
    const { refreshMs, clock } = this.#options
    const periodMs = Math.max(refreshMs, cluster?.connection?.intervalMs ?? 0)
    const staleAfterMs = MISSED_PERIODS * periodMs
    return isStale(cluster, usageOf[kind], { startedAt: this.#startedAt, now: clock.now(), staleAfterMs })
  }

  nodes(cluster: ClusterState | undefined, view: AccessView): readonly NodeDocument[] {
    return cluster && view.usage(cluster) ? nodeDocuments(cluster, view.visible(cluster, 'node')) : []
  }

  /** Costs what the caller sees, not what there is: by namespace, and only those that are visible. */
  pods(cluster: ClusterState | undefined, view: AccessView): readonly PodDocument[] {
    if (!cluster || !view.usage(cluster)) return []
    const seen = view.resource(cluster, PODS)
    if (seen.result === 'deny') return []
    const all = this.#podsOf(cluster)
    if (seen.whole) return [...all.values()].flat()
    const table = cluster.tables.get('pods')?.rows
    return view.visible(cluster, 'namespace').flatMap(({ name: namespace }) =>
      (all.get(namespace) ?? []).filter(({ name }) => {
        const at = table?.indexOf(namespace, name) ?? -1
        return seen.shows({ name, namespace, ...(table && at >= 0 && { labels: table.labelsAt(at) }), values: {} })
      }),
    )
  }

  /** Whether points of a pod's past may be told, also of one that is gone. */
  showsPast(cluster: ClusterState, view: AccessView): (namespace: string, name: string) => boolean {
    if (!view.usage(cluster)) return () => false
    const seen = view.resource(cluster, PODS)
    return (namespace, name) => seen.shows({ name, namespace, values: {} })
  }

  /** Whether the namespace is among those whose pods the caller sees. */
  showsNamespace(cluster: ClusterState | undefined, view: AccessView, namespace: string): boolean {
    if (view.administrator) return true
    return !!cluster && view.visible(cluster, 'namespace').some(({ name }) => name === namespace)
  }

  nodeSnapshot(cluster: ClusterState | undefined, view: AccessView): NodeSnapshotDocument {
    const stale = this.isStale(cluster, 'nodes')
    return { timestamp: this.timestamp(cluster, 'nodes'), nodes: this.nodes(cluster, view), ...(stale && { stale }) }
  }

  podSnapshot(cluster: ClusterState | undefined, view: AccessView): PodSnapshotDocument {
    return { timestamp: this.timestamp(cluster, 'pods'), pods: this.pods(cluster, view) }
  }

  snapshot(
    cluster: ClusterState | undefined,
    view: AccessView,
    kind: Kind,
  ): NodeSnapshotDocument | PodSnapshotDocument {
    return kind === 'nodes' ? this.nodeSnapshot(cluster, view) : this.podSnapshot(cluster, view)
  }

  fleetEntry(cluster: ClusterState, view: AccessView, kind: Kind): FleetEntry {
    const head = {
      timestamp: this.timestamp(cluster, kind),
      stale: this.isStale(cluster, kind),
      status: cluster.status.health,
    }
    return kind === 'nodes'
      ? { ...head, nodes: this.nodes(cluster, view) }
      : { ...head, pods: this.pods(cluster, view) }
  }

  /** Sums of what the caller sees. Of nodes nothing is said to who sees none. */
  summary(clusters: readonly ClusterState[], view: AccessView) {
    const { clock } = this.#options
    const total = new Sums()
    // A fleet without clusters has no nodes; that they are kept back is another answer.
    if (view.administrator) total.addNodes([], 0)
    const each = clusters.map((cluster): [string, ClusterSummary] => {
      const own = new Sums()
      for (const sums of [own, total]) this.#addTo(sums, cluster, view)
      const at = cluster.tables.get(POD_USAGE)?.freshness?.observedAt ?? this.#startedAt
      return [
        cluster.name,
        {
          status: cluster.status.health,
          stale: this.isStale(cluster, 'pods'),
          timestamp: rfc3339(at),
          age_seconds: Math.max(0, Math.round((clock.now() - at) / 1000)),
          ...own.summary(),
        },
      ]
    })
    return { timestamp: rfc3339(clock.now()), clusters: Object.fromEntries(each), total: total.summary() }
  }

  #addTo(sums: Sums, cluster: ClusterState, view: AccessView): void {
    const nodes = view.visible(cluster, 'node')
    if (view.administrator || nodes.length > 0) {
      sums.addNodes(this.nodes(cluster, view), nodes.filter(({ ready }) => ready === 'ready').length)
    }
    sums.pods += this.pods(cluster, view).length
    sums.alerts += this.#options.state.alerts(cluster.name).filter((alert) => view.showsAlert(cluster, alert)).length
  }

  #podsOf(cluster: ClusterState): ReadonlyMap<string, readonly PodDocument[]> {
    const known = this.#pods.get(cluster)
    if (known) return known
    const { wants, firstNamespace } = this.#options
    const byNamespace = new Map<string, PodDocument[]>([[firstNamespace, []]])
    for (const pod of podDocuments(cluster, wants)) {
      const all = byNamespace.get(pod.namespace)
      if (all) all.push(pod)
      else byNamespace.set(pod.namespace, [pod])
    }
    this.#pods.set(cluster, byNamespace)
    return byNamespace
  }
}
