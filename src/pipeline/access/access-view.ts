import type { ClusterState, FleetEvent, SeenOf, SnapshotType } from '#model'
import { type CustomRuling, decide, decideCustom, discoverOriginal, type Hit, type Ruling } from './decide.ts'
import { eventsAccessView } from './event-access-view.ts'
import type { PreparedPolicy } from './prepare.ts'
import { hiddenResource, resourceAccessView } from './resource-access-view.ts'
import {
  type Alert,
  allRows,
  dependsOnNamespaces,
  type RowRules,
  showsAlert,
  showsEvent,
  visibleRows,
} from './row-filter.ts'
import { filterSummary, looksAt, openFilter, showsAggregation, type TypeFilter, whyHidden } from './type-filter.ts'
import {
  type AccessView,
  type Action,
  type ClusterPermissions,
  type Decider,
  type FilterSummary,
  type RowItem,
  type RowsAccessView,
  type SelectedCluster,
  type Semantics,
  type StandardResource,
  standardTypes,
} from './types.ts'

const NO_LABELS: Readonly<Record<string, string>> = Object.freeze({})

export const selectedCluster = ({ name, connection }: ClusterState): SelectedCluster => ({
  name,
  labels: connection?.labels ?? NO_LABELS,
})

/** Decisions are kept for so many clusters and registries; beyond that all are made anew. */
const maxClusters = 20_000

/** What one list of policies says of one cluster, and what is left of its rows. */
export class ClusterAccessView {
  readonly ruling: Ruling
  readonly labels: Readonly<Record<string, string>>
  readonly rules: RowRules
  readonly whole: boolean
  readonly #needsNamespaces: boolean
  // Most clusters are never asked for more than whether they are seen: what remembers more is made when it is needed.
  #custom: Map<string, CustomRuling> | undefined
  #rows: WeakMap<object, { readonly namespaces: unknown; readonly rows: readonly unknown[] }> | undefined

  constructor(ruling: Ruling, labels: Readonly<Record<string, string>>, semantics: Semantics) {
    this.ruling = ruling
    this.labels = labels
    this.rules = { semantics, filters: ruling.filters, usage: ruling.usage }
    this.whole = ruling.view && isWhole(ruling.filters)
    this.#needsNamespaces = dependsOnNamespaces(this.rules)
  }

  visible<T extends SnapshotType>(cluster: ClusterState, type: T): readonly SeenOf<T>[] {
    const items = cluster.parts[type]?.items
    if (!items || !this.ruling.view) return []
    const namespaces = this.#needsNamespaces ? cluster.parts.namespace?.items : undefined
    this.#rows ??= new WeakMap()
    const known = this.#rows.get(items)
    if (known && known.namespaces === namespaces) return known.rows as readonly SeenOf<T>[] // stored below, for the same part
    const rows = visibleRows(this.rules, cluster, type)
    this.#rows.set(items, { namespaces, rows })
    return rows
  }

  custom(type: string, make: () => CustomRuling): CustomRuling {
    this.#custom ??= new Map()
    const known = this.#custom.get(type)
    if (known) return known
    if (this.#custom.size >= maxCustomTypes) this.#custom.clear()
    const made = make()
    this.#custom.set(type, made)
    return made
  }
}

const maxCustomTypes = 1000

/** Sums of a cluster are over what every cluster has: rows that MetricSources add, and registries, are in none of them. */
const isWhole = (filters: ReadonlyMap<string, TypeFilter>): boolean =>
  standardTypes.every((type) => filters.get(type)?.isOpen ?? true)

/** Decisions of one fingerprint: whoever has it shares them. Knows no names of people, and of policies only their order. */
export class SharedAccessView {
  readonly fingerprint: string
  readonly semantics: Semantics
  readonly #policies: readonly PreparedPolicy[]
  readonly #clusters = new Map<string, ClusterAccessView>()
  readonly #registries = new Map<string, { readonly labels: unknown; readonly shown: boolean }>()

  constructor(fingerprint: string, policies: readonly PreparedPolicy[], semantics: Semantics) {
    this.fingerprint = fingerprint
    this.semantics = semantics
    this.#policies = policies
  }

  of(cluster: ClusterState): ClusterAccessView {
    const labels = cluster.connection?.labels ?? NO_LABELS
    const known = this.#clusters.get(cluster.name)
    if (known && known.labels === labels) return known
    const made = new ClusterAccessView(
      decide(this.#policies, { name: cluster.name, labels }, this.semantics),
      labels,
      this.semantics,
    )
    if (this.#clusters.size >= maxClusters) this.#clusters.clear()
    this.#clusters.set(cluster.name, made)
    return made
  }

  custom(cluster: ClusterState, type: string): CustomRuling {
    const accessView = this.of(cluster)
    return accessView.custom(type, () =>
      decideCustom(this.#policies, selectedCluster(cluster), type, accessView.ruling, this.semantics),
    )
  }

  showsRegistry(registry: SelectedCluster): boolean {
    const known = this.#registries.get(registry.name)
    if (known && known.labels === registry.labels) return known.shown
    const shown = whyRegistryHidden(decide(this.#policies, registry, this.semantics), registry, this.semantics) === null
    if (this.#registries.size >= maxClusters) this.#registries.clear()
    this.#registries.set(registry.name, { labels: registry.labels, shown })
    return shown
  }
}

/** A registry is selected as a cluster is; a `registries` entry of the deciding rule filters besides. */
export function whyRegistryHidden(
  ruling: Ruling,
  { name, labels }: SelectedCluster,
  semantics: Semantics,
): string | null {
  if (semantics === 'original') return null // everybody saw every registry
  if (!ruling.view) return 'visibility'
  return whyHidden(ruling.filters.get('registries') ?? openFilter, semantics, name, null, null, labels)
}

/** What one principal sees: shared decisions, with the names of its own policies and its own time bounds. */
export class PolicyAccessView implements AccessView {
  readonly administrator = false
  readonly generation: string
  readonly validUntil: number
  readonly #shared: SharedAccessView
  readonly #policies: readonly PreparedPolicy[]

  /** @param policies as many and in the same order as those of `shared`, and of the same content */
  constructor(shared: SharedAccessView, policies: readonly PreparedPolicy[], generation: string, validUntil: number) {
    this.#shared = shared
    this.#policies = policies
    this.generation = generation
    this.validUntil = validUntil
  }

  get fingerprint(): string {
    return this.#shared.fingerprint
  }

  canSee(cluster: ClusterState): boolean {
    return this.#shared.of(cluster).ruling.view
  }

  usage(cluster: ClusterState): boolean {
    return this.#shared.of(cluster).ruling.usage
  }

  history(cluster: ClusterState): boolean {
    return this.#shared.of(cluster).ruling.history
  }

  visible<T extends SnapshotType>(cluster: ClusterState, type: T): readonly SeenOf<T>[] {
    return this.#shared.of(cluster).visible(cluster, type)
  }

  whole(cluster: ClusterState): boolean {
    return this.#shared.of(cluster).whole
  }

  showsEvent(cluster: ClusterState, event: FleetEvent): boolean {
    const { ruling, rules, whole } = this.#shared.of(cluster)
    return ruling.view && showsEvent(rules, cluster, event, whole)
  }

  showsAlert(cluster: ClusterState, alert: Alert): boolean {
    const { ruling, rules } = this.#shared.of(cluster)
    return ruling.view && showsAlert(rules, cluster, alert)
  }

  showsRegistry(registry: SelectedCluster): boolean {
    return this.#shared.showsRegistry(registry)
  }

  custom(cluster: ClusterState, type: string): RowsAccessView {
    const ruling = this.#shared.custom(cluster, type)
    const { semantics } = this.#shared
    return {
      result: ruling.result,
      reason: customReason(ruling, this.canSee(cluster), cluster.name, type, this.#policies),
      whole: ruling.result !== 'deny' && ruling.filter.isOpen,
      metrics: ruling.result !== 'deny' && ruling.viewMetrics,
      shows: (item) => ruling.result !== 'deny' && whyItemHidden(ruling.filter, item, semantics) === null,
      looksAt: looksAt([ruling.filter]),
      aggregation: (name) => ruling.result !== 'deny' && showsAggregation(ruling.filter, name),
      // Policies may select by labels of the cluster, which are no part of its rows.
      basis: [cluster.connection?.labels],
    }
  }

  resource(cluster: ClusterState, resource: StandardResource): RowsAccessView {
    const { ruling, rules } = this.#shared.of(cluster)
    if (!ruling.view) return hiddenResource
    return resource.rule === 'events'
      ? eventsAccessView(rules, cluster, resource)
      : resourceAccessView(rules, cluster, resource)
  }

  discovers(type: string): { readonly listed: boolean; readonly granted: boolean } | null {
    return this.#shared.semantics === 'original' ? discoverOriginal(this.#policies, type) : null
  }

  get namedTypes(): ReadonlySet<string> {
    return new Set(this.#policies.flatMap(({ rules }) => rules.flatMap(({ filters }) => [...filters.keys()])))
  }

  permissions(cluster: ClusterState): ClusterPermissions {
    const { ruling } = this.#shared.of(cluster)
    const permissions = actionsOf(ruling)
    const isFull = permissions.length === 2 && [...ruling.filters.values()].every(({ isOpen }) => isOpen)
    return {
      permissions,
      level: permissions.length === 0 ? 'none' : isFull ? 'full' : 'limited',
      decidedBy: deciderOf(ruling.by, this.#policies),
      filters: filtersOf(ruling),
    }
  }
}

export function whyItemHidden(filter: TypeFilter, { name, namespace, labels, values }: RowItem, semantics: Semantics) {
  const isStrict = semantics === 'strict'
  const namespaces = namespace ? [namespace] : isStrict ? [] : null
  return whyHidden(filter, semantics, name, null, namespaces, isStrict ? (labels ?? null) : null, values)
}

export const actionsOf = (ruling: Ruling): readonly Action[] => [
  ...(ruling.view ? (['view'] as const) : []),
  ...(ruling.usage ? (['view_metrics'] as const) : []),
]

export const filtersOf = ({ filters }: Ruling): Readonly<Record<string, FilterSummary>> =>
  Object.fromEntries([...filters].map(([type, filter]) => [type, filterSummary(filter)]))

export function deciderOf(hit: Hit | null, policies: readonly PreparedPolicy[]): Decider | null {
  const policy = hit && policies[hit.at]
  if (!hit || !policy) return null
  const { key, document } = policy.stored
  const { hash, effect, priority } = document
  return { policy: key, hash, effect, priority, rule: hit.rule, selectedBy: hit.by }
}

const nameOf = (hit: Hit, policies: readonly PreparedPolicy[]): string =>
  policies[hit.at]?.stored.document.policy_name ?? ''

/** In the words of the specification. */
export function reasonOf({ view, by }: Ruling, policies: readonly PreparedPolicy[]): string {
  if (!by) return 'No matching policies found'
  return `${view ? 'Allowed' : 'Denied'} by policy ${nameOf(by, policies)}`
}

export function customReason(
  { result, by }: CustomRuling,
  canSee: boolean,
  cluster: string,
  type: string,
  policies: readonly PreparedPolicy[],
): string {
  if (!canSee) return `Access denied to cluster '${cluster}'`
  if (!by) return `No policy grants access to custom resource type: ${type}`
  return `${result === 'deny' ? 'Denied' : 'Allowed'} by policy ${nameOf(by, policies)}`
}

// ── administrators ───────────────────────────────────────────────────────────────────────────────────────────────────

const everything: RowsAccessView = {
  result: 'allow',
  reason: 'Administrators see everything',
  whole: true,
  metrics: true,
  shows: (_: RowItem) => true,
  aggregation: () => true,
  basis: [],
}

/** No policy touches an administrator. */
export class AdministratorAccessView implements AccessView {
  readonly administrator = true
  readonly fingerprint = 'all'
  readonly namedTypes: ReadonlySet<string> = new Set()
  readonly validUntil = Number.POSITIVE_INFINITY
  readonly generation: string

  constructor(generation: string) {
    this.generation = generation
  }

  canSee(): boolean {
    return true
  }

  usage(): boolean {
    return true
  }

  history(): boolean {
    return true
  }

  visible<T extends SnapshotType>(cluster: ClusterState, type: T): readonly SeenOf<T>[] {
    return allRows(cluster, type) as readonly SeenOf<T>[] // a row that is seen whole is the row
  }

  whole(): boolean {
    return true
  }

  showsEvent(): boolean {
    return true
  }

  showsAlert(): boolean {
    return true
  }

  showsRegistry(): boolean {
    return true
  }

  custom(): RowsAccessView {
    return everything
  }

  resource(): RowsAccessView {
    return everything
  }

  discovers(): null {
    return null
  }

  permissions(): ClusterPermissions {
    return { permissions: ['view', 'view_metrics'], level: 'full', decidedBy: null, filters: {} }
  }
}
