import type { AccessView, StandardResource } from '#access'
import type { Clock, ClusterState } from '#model'
import type { StateReader } from '#state'
import {
  eachNode,
  isStale,
  NODE_USAGE,
  type NodeDocument,
  POD_USAGE,
  type PodDocument,
  podDocuments,
  rfc3339,
  timestampOf,
  type UnmeasuredPod,
  unmeasuredPods,
} from './documents.ts'
import { Items, type Member, Members } from './json.ts'
import { type Summary, Sums } from './sums.ts'

/** The two kinds of snapshot. */
export type Kind = 'nodes' | 'pods'

export const usageOf: Readonly<Record<Kind, string>> = { nodes: NODE_USAGE, pods: POD_USAGE }

/** What is told of one cluster within the fleet, before its list. */
export interface FleetHead {
  readonly timestamp: string
  readonly stale: boolean
  /** health of the cluster, in the hub's words */
  readonly status: string
}

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

type ByNamespace<T> = ReadonlyMap<string, readonly T[]>

/** What may be seen of clusters, as documents. What costs is made once per state of a cluster and shared by all who look. */
export class Pictures {
  readonly #options: PicturesOptions
  readonly #startedAt: number
  readonly #pods = new WeakMap<ClusterState, ByNamespace<PodDocument>>()
  readonly #unmeasured = new WeakMap<ClusterState, ByNamespace<UnmeasuredPod>>()

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

  /**
   * One after the other, for who lets others have their turn; undefined is a step that found none. Costs what the caller sees, not
   * what there is: by namespace, and only those that are visible.
   */
  *eachPod(cluster: ClusterState | undefined, view: AccessView): Generator<PodDocument | undefined> {
    if (cluster && view.usage(cluster)) yield* this.#eachShown(cluster, view, this.#podsOf(cluster))
  }

  *#eachShown<T extends UnmeasuredPod>(
    cluster: ClusterState,
    view: AccessView,
    pods: Generator<undefined, ByNamespace<T>>,
  ): Generator<T | undefined> {
    const seen = view.resource(cluster, PODS)
    if (seen.result === 'deny') return
    const all = yield* pods
    if (seen.whole) {
      for (const pods of all.values()) yield* pods
      return
    }
    // Labels are made for each look: where no filter asks for them, of no pod.
    const table = (seen.looksAt?.labels ?? true) ? cluster.tables.get('pods')?.rows : undefined
    for (const { name: namespace } of view.visible(cluster, 'namespace'))
      for (const pod of all.get(namespace) ?? []) {
        const { name } = pod
        const at = table?.indexOf(namespace, name) ?? -1
        const labels = table && at >= 0 && { labels: table.labelsAt(at) }
        yield seen.shows({ name, namespace, ...labels, values: {} }) ? pod : undefined
      }
  }

  /** Those of one kind, as `eachPod`. */
  each(
    cluster: ClusterState | undefined,
    view: AccessView,
    kind: Kind,
  ): Iterable<NodeDocument | PodDocument | undefined> {
    if (kind === 'pods') return this.eachPod(cluster, view)
    return cluster && view.usage(cluster) ? eachNode(cluster, view.visible(cluster, 'node')) : []
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

  /** The newest snapshot of one kind, to be put beside what else an answer holds. */
  present(cluster: ClusterState | undefined, view: AccessView, kind: Kind) {
    return {
      timestamp: this.timestamp(cluster, kind),
      [kind]: new Items(this.each(cluster, view, kind)),
      ...(kind === 'nodes' && this.isStale(cluster, kind) && { stale: true }),
    }
  }

  snapshot(cluster: ClusterState | undefined, view: AccessView, kind: Kind): Members {
    return Members.of(this.present(cluster, view, kind))
  }

  fleetHead(cluster: ClusterState, kind: Kind): FleetHead {
    return {
      timestamp: this.timestamp(cluster, kind),
      stale: this.isStale(cluster, kind),
      status: cluster.status.health,
    }
  }

  /**
   * Sums of what the caller sees, of each cluster and of all. Of nodes nothing is said to who sees none.
   * @param next where the next page of clusters begins
   */
  summary(clusters: readonly ClusterState[], view: AccessView, next?: string): Members {
    const total = this.#emptyTotal(view)
    const { clock } = this.#options
    function* members(each: Generator<Member | undefined>): Generator<Member> {
      yield ['timestamp', rfc3339(clock.now())]
      yield ['clusters', new Members(each)]
      // By now it holds all of them.
      yield ['total', total.summary()]
      if (next !== undefined) yield ['continue', next]
    }
    return new Members(members(this.#summaries(clusters, view, total)))
  }

  #emptyTotal(view: AccessView): Sums {
    const total = new Sums()
    // A fleet without clusters has no nodes; that they are kept back is another answer.
    if (view.administrator) total.addNodes({ all: 0, ready: 0 })
    return total
  }

  /** Of each cluster by name, added to the total; undefined is a step. */
  *#summaries(
    clusters: readonly ClusterState[],
    view: AccessView,
    total: Sums,
  ): Generator<readonly [name: string, summary: ClusterSummary] | undefined> {
    const { clock } = this.#options
    for (const cluster of clusters) {
      const own = new Sums()
      yield* this.#addTo([own, total], cluster, view)
      const at = cluster.tables.get(POD_USAGE)?.freshness?.observedAt ?? this.#startedAt
      const summary = {
        status: cluster.status.health,
        stale: this.isStale(cluster, 'pods'),
        timestamp: rfc3339(at),
        age_seconds: Math.max(0, Math.round((clock.now() - at) / 1000)),
        ...own.summary(),
      }
      yield [cluster.name, summary]
    }
  }

  *#addTo(all: readonly Sums[], cluster: ClusterState, view: AccessView): Generator<undefined> {
    const seen = view.visible(cluster, 'node')
    const isOfNodes = view.administrator || seen.length > 0
    const isOfUsage = view.usage(cluster)
    const nodes: NodeDocument[] = []
    for (const node of isOfNodes ? this.each(cluster, view, 'nodes') : []) {
      if (node) nodes.push(node as NodeDocument)
      yield
    }
    const ready = seen.filter(({ ready }) => ready === 'ready').length
    const { state } = this.#options
    const alerts = state.alerts(cluster.name).filter((alert) => view.showsAlert(cluster, alert)).length
    const measured = yield* counted(this.#eachShown(cluster, view, this.#podsOf(cluster)))
    const unmeasured = yield* counted(this.#eachShown(cluster, view, this.#unmeasuredOf(cluster)))
    for (const sums of all) {
      if (isOfNodes) sums.addNodes({ all: seen.length, ready })
      if (isOfNodes && isOfUsage) sums.addUsage(nodes)
      sums.addPods(measured + unmeasured, isOfUsage ? unmeasured : null)
      sums.alerts += alerts
    }
  }

  *#unmeasuredOf(cluster: ClusterState): Generator<undefined, ByNamespace<UnmeasuredPod>> {
    const known = this.#unmeasured.get(cluster)
    if (known) return known
    const names = new Map<string, ReadonlySet<string>>()
    for (const [namespace, pods] of yield* this.#podsOf(cluster)) names.set(namespace, new Set(pods.map(nameOf)))
    const isMeasured = (namespace: string, name: string) => names.get(namespace)?.has(name) === true
    const byNamespace = new Map<string, UnmeasuredPod[]>()
    for (const pod of unmeasuredPods(cluster, this.#options.wants, isMeasured)) {
      if (pod) put(byNamespace, pod)
      yield
    }
    this.#unmeasured.set(cluster, byNamespace)
    return byNamespace
  }

  *#podsOf(cluster: ClusterState): Generator<undefined, ByNamespace<PodDocument>> {
    const known = this.#pods.get(cluster)
    if (known) return known
    const { wants, firstNamespace } = this.#options
    const byNamespace = new Map<string, PodDocument[]>([[firstNamespace, []]])
    for (const pod of podDocuments(cluster, wants)) {
      put(byNamespace, pod)
      yield
    }
    this.#pods.set(cluster, byNamespace)
    return byNamespace
  }
}

const nameOf = ({ name }: UnmeasuredPod): string => name

function put<T extends UnmeasuredPod>(byNamespace: Map<string, T[]>, pod: T): void {
  const all = byNamespace.get(pod.namespace)
  if (all) all.push(pod)
  else byNamespace.set(pod.namespace, [pod])
}

/** How many there are that are no steps. */
function* counted(each: Iterable<unknown>): Generator<undefined, number> {
  let count = 0
  for (const one of each) {
    if (one !== undefined) count++
    yield
  }
  return count
}
