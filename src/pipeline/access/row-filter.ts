import {
  type ClusterState,
  type FleetEvent,
  nodeDocument,
  operatorDocument,
  type PodCounts,
  type SeenOf,
  type SnapshotOf,
  type SnapshotType,
} from '#model'
import { openFilter, type TypeFilter, type Why, whyHidden } from './type-filter.ts'
import type { Semantics, StandardType } from './types.ts'

/** What decides about the rows of one cluster. */
export interface RowRules {
  readonly semantics: Semantics
  readonly filters: ReadonlyMap<string, TypeFilter>
  readonly usage: boolean
}

type Row<T extends SnapshotType> = SnapshotOf<T>

export const filterFor = ({ filters }: RowRules, type: StandardType): TypeFilter => filters.get(type) ?? openFilter

/** All rows of a part, as one and the same array for everybody who sees them all. */
export function allRows<T extends SnapshotType>(cluster: ClusterState, type: T): readonly Row<T>[] {
  const items = cluster.parts[type]?.items
  if (!items) return NONE
  const known = lists.get(items)
  if (known) return known as readonly Row<T>[] // stored below, under the same part
  const rows = [...items.values()] as readonly Row<T>[] // the map under a type's key holds that type
  lists.set(items, rows)
  return rows
}

const NONE: readonly never[] = Object.freeze([])
// A part never changes, so its list is made once and dies with it.
const lists = new WeakMap<object, readonly unknown[]>()

/** What the rules leave of the rows of one type, and in them what they leave. Not cached here. */
export function visibleRows<T extends SnapshotType>(
  rules: RowRules,
  cluster: ClusterState,
  type: T,
): readonly SeenOf<T>[] {
  // Each function answers with the rows of the type under whose key it stands.
  const rows: (rules: RowRules, cluster: ClusterState) => readonly unknown[] = byType[type]
  return rows(rules, cluster) as readonly SeenOf<T>[]
}

const byType: { readonly [T in SnapshotType]: (rules: RowRules, cluster: ClusterState) => readonly SeenOf<T>[] } = {
  cluster: (_, cluster) => allRows(cluster, 'cluster'),
  node: nodes,
  podSummary: podSummaries,
  namespace: namespaces,
  deployment: (rules, cluster) =>
    keep(allRows(cluster, 'deployment'), namespacesAreOpen(rules), ({ namespace }) =>
      showsNamespace(rules, cluster, namespace),
    ),
  operator: operators,
  clusterOperator: clusterOperators,
}

/** Whether rows of the type depend on which namespaces there are: labels of a namespace are in another part. */
export const dependsOnNamespaces = (rules: RowRules): boolean =>
  filterFor(rules, 'namespaces').entries.some(({ labels }) => labels.length > 0)

function keep<T>(rows: readonly T[], isOpen: boolean, shows: (row: T) => boolean): readonly T[] {
  if (isOpen) return rows
  const kept = rows.filter(shows)
  return kept.length === rows.length ? rows : kept
}

/** The rows that are shown, each as far as it is shown; the very same array where that is all of everything. */
function reduce<T, S extends T | object>(
  rows: readonly T[],
  shows: (row: T) => boolean,
  seen: (row: T) => S,
): readonly S[] {
  const kept: S[] = []
  for (const row of rows) if (shows(row)) kept.push(seen(row))
  return kept
}

// ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export const whyNodeHidden = (rules: RowRules, name: string, labels: Readonly<Record<string, string>> | null) =>
  whyHidden(filterFor(rules, 'nodes'), rules.semantics, name, null, null, labels)

function nodes(rules: RowRules, cluster: ClusterState): readonly SeenOf<'node'>[] {
  const rows = allRows(cluster, 'node')
  const filter = filterFor(rules, 'nodes')
  if (filter.isClosed) return NONE
  // The original leaves a row that it shows as it is.
  const showsPods = rules.semantics === 'original' || podsAreWhole(rules)
  const shows = (node: Row<'node'>) =>
    whyHidden(
      filter,
      rules.semantics,
      node.name,
      null,
      null,
      node.labels,
      fieldsOf(rules, () => nodeDocument(node, null)),
    ) === null
  if (showsPods && rules.usage) return keep(rows, filter.isOpen, shows)
  return reduce(
    rows,
    shows,
    (node): SeenOf<'node'> => ({
      ...node,
      ...(!rules.usage && { used: null }),
      ...(!showsPods && { pods: null, requested: null }),
    }),
  )
}

/** The original compared fields of any document; ours are declared by MetricSources and by nothing else. */
const fieldsOf = (rules: RowRules, document: () => object): Readonly<Record<string, unknown>> | null =>
  rules.semantics === 'original' ? { ...document() } : null

// ── namespaces and what stands in them ───────────────────────────────────────────────────────────────────────────────

const namespacesAreOpen = (rules: RowRules): boolean => filterFor(rules, 'namespaces').isOpen

/**
 * A filter of namespaces on namespaces is one of their names (RBAC-Q17); the original ignored it there, and knew namespaces
 * by name alone.
 */
export function whyNamespaceHidden(
  rules: RowRules,
  name: string,
  labels: Readonly<Record<string, string>> | null,
): Why | null {
  const isStrict = rules.semantics === 'strict'
  const filter = filterFor(rules, 'namespaces')
  return whyHidden(filter, rules.semantics, name, null, isStrict ? [name] : null, isStrict ? labels : null)
}

function namespaces(rules: RowRules, cluster: ClusterState): readonly SeenOf<'namespace'>[] {
  return keep(
    allRows(cluster, 'namespace'),
    namespacesAreOpen(rules),
    ({ name, labels }) => whyNamespaceHidden(rules, name, labels) === null,
  )
}

/** Also for a namespace that is only spoken of: its labels are those of the row, if there is one. */
export function showsNamespace(rules: RowRules, cluster: ClusterState, name: string): boolean {
  if (namespacesAreOpen(rules)) return true
  const row = cluster.parts.namespace?.items.get(name)
  return whyNamespaceHidden(rules, name, row?.labels ?? null) === null
}

const EVERYWHERE = '*'
const isEverywhere = (names: readonly string[]): boolean => names.length === 1 && names[0] === EVERYWHERE

// ── pods ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** No pod can be hidden, now or later. */
export const podsAreWhole = (rules: RowRules): boolean =>
  namespacesAreOpen(rules) && (rules.semantics === 'original' || filterFor(rules, 'pods').isOpen)

/** Pods are known as counts by namespace: by name or label nothing of them can be shown. */
function whyPodsHidden(rules: RowRules, namespace: string): Why | null {
  if (rules.semantics === 'original') return null // RBAC-Q19
  return whyHidden(filterFor(rules, 'pods'), rules.semantics, '', null, [namespace], null)
}

function podSummaries(rules: RowRules, cluster: ClusterState): readonly SeenOf<'podSummary'>[] {
  const rows = allRows(cluster, 'podSummary')
  if (podsAreWhole(rules)) return rows
  const pods = rules.semantics === 'original' ? openFilter : filterFor(rules, 'pods')
  const needsMore = pods.entries.some((entry) => entry.names !== null || entry.labels.length > 0)
  if (pods.isClosed || needsMore) return NONE
  return rows.map((row) => {
    const kept: [string, PodCounts][] = []
    const counts = { total: 0, running: 0, pending: 0, failed: 0, succeeded: 0, unknown: 0 }
    for (const name of Object.keys(row.byNamespace)) {
      const count = row.byNamespace[name]
      if (!count || !showsNamespace(rules, cluster, name) || whyPodsHidden(rules, name) !== null) continue
      kept.push([name, count])
      for (const phase of phases) counts[phase] += count[phase]
    }
    return { ...row, byNamespace: Object.fromEntries(kept), counts, unscheduled: null }
  })
}

const phases = ['total', 'running', 'pending', 'failed', 'succeeded', 'unknown'] as const

// ── operators ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The original stored no more of a list than this (RBAC-Q18). */
const NAMESPACES_STORED = 20

export function whyOperatorHidden(
  rules: RowRules,
  {
    csv,
    displayName,
    availableInNamespaces,
    clusterWide,
  }: Pick<Row<'operator'>, 'csv' | 'displayName' | 'availableInNamespaces' | 'clusterWide'>,
  values: Readonly<Record<string, unknown>> | null = null,
): Why | null {
  const filter = filterFor(rules, 'operators')
  const everywhere = isEverywhere(availableInNamespaces)
  if (rules.semantics === 'strict') {
    return whyHidden(filter, 'strict', csv, displayName || null, everywhere ? null : availableInNamespaces, null)
  }
  const stored = clusterWide ? availableInNamespaces : availableInNamespaces.slice(0, NAMESPACES_STORED)
  const spaces = everywhere || stored.length === 0 ? null : stored
  return whyHidden(filter, 'original', csv || displayName, null, spaces, null, values)
}

function operators(rules: RowRules, cluster: ClusterState): readonly SeenOf<'operator'>[] {
  const filter = filterFor(rules, 'operators')
  if (filter.isClosed) return NONE
  const rows = allRows(cluster, 'operator')
  const shows = (row: Row<'operator'>) =>
    whyOperatorHidden(
      rules,
      row,
      fieldsOf(rules, () => operatorDocument(row, null)),
    ) === null
  if (rules.semantics === 'original' || namespacesAreOpen(rules)) return keep(rows, filter.isOpen, shows)
  return reduce(rows, shows, (row) => {
    const { availableInNamespaces } = row
    const isSeen = (name: string) => showsNamespace(rules, cluster, name)
    if (isEverywhere(availableInNamespaces) || availableInNamespaces.every(isSeen)) return row
    return { ...row, availableInNamespaces: availableInNamespaces.filter(isSeen) }
  })
}

/** Part of the cluster itself: in no namespace, and without labels. */
export const whyClusterOperatorHidden = (rules: RowRules, name: string): Why | null =>
  whyHidden(filterFor(rules, 'operators'), rules.semantics, name, null, null, null)

function clusterOperators(rules: RowRules, cluster: ClusterState): readonly SeenOf<'clusterOperator'>[] {
  const filter = filterFor(rules, 'operators')
  if (filter.isClosed) return NONE
  const rows = allRows(cluster, 'clusterOperator')
  const shows = ({ name }: Row<'clusterOperator'>) => whyClusterOperatorHidden(rules, name) === null
  if (namespacesAreOpen(rules)) return keep(rows, filter.isOpen, shows)
  type Related = Row<'clusterOperator'>['relatedObjects'][number]
  // OpenShift names the namespaces of an operator as objects of their own.
  const isSeen = ({ group, resource, namespace, name }: Related) => {
    const about = namespace || (group === '' && resource === 'namespaces' ? name : '')
    return !about || showsNamespace(rules, cluster, about)
  }
  return reduce(rows, shows, (row) => {
    const { relatedObjects } = row
    return relatedObjects.every(isSeen) ? row : { ...row, relatedObjects: relatedObjects.filter(isSeen) }
  })
}

// ── events and alerts ────────────────────────────────────────────────────────────────────────────────────────────────

const SUMMARIES: ReadonlySet<string> = new Set(['cluster.health', 'cluster.reconciled'])

const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const csvOf = (name: string): string => name.slice(name.indexOf('/') + 1)

/** @param isWhole nothing of the cluster can be hidden: only then may its sums be told */
export function showsEvent(rules: RowRules, cluster: ClusterState, event: FleetEvent, isWhole: boolean): boolean {
  if (SUMMARIES.has(event.type) && !isWhole) return false
  const { node, operator, namespace } = event.data ?? {}
  if (whyEventHidden(rules, event.type, text(node) || text(operator), text(namespace)) !== null) return false
  if (node !== undefined && !showsNodeNamed(rules, cluster, text(node))) return false
  if (operator !== undefined && !showsOperatorNamed(rules, cluster, event)) return false
  return namespace === undefined || showsNamespace(rules, cluster, text(namespace))
}

/** Stored events of the original have neither name nor namespace: a filter of names hides all, one of namespaces none. */
export function whyEventHidden(rules: RowRules, type: string, object: string, namespace: string): Why | null {
  const filter = filterFor(rules, 'events')
  if (rules.semantics === 'original')
    return filter.entries.some(({ names }) => names) ? 'name' : whyHidden(filter, 'original', '', null, null, null)
  return whyHidden(filter, 'strict', type, object || null, namespace ? [namespace] : [], null)
}

function showsNodeNamed(rules: RowRules, cluster: ClusterState, name: string): boolean {
  return whyNodeHidden(rules, name, cluster.parts.node?.items.get(name)?.labels ?? null) === null
}

function showsOperatorNamed(rules: RowRules, cluster: ClusterState, { type, data }: FleetEvent): boolean {
  const name = text(data?.operator)
  if (type.startsWith('cluster_operator.')) return whyClusterOperatorHidden(rules, name) === null
  const row = cluster.parts.operator?.items.get(name)
  // Where it was is not known of one that is gone: then it was nowhere.
  const facts = row ?? {
    csv: csvOf(name),
    displayName: text(data?.display_name),
    availableInNamespaces: [],
    clusterWide: false,
  }
  return whyOperatorHidden(rules, facts) === null
}

export type Alert = Readonly<Record<string, string>>

export function whyAlertHidden(rules: RowRules, alert: Alert): Why | null {
  const filter = filterFor(rules, 'alerts')
  const { name = '', alertname, namespace } = alert
  if (rules.semantics === 'original') return whyHidden(filter, 'original', name, null, null, null, alert)
  // What has no name cannot be told from what a name filter hides.
  if (!name && !alertname && !filter.isClosed && filter.entries.some(({ names }) => names !== null)) return 'name'
  return whyHidden(
    filter,
    'strict',
    name || (alertname ?? ''),
    name && alertname ? alertname : null,
    namespace ? [namespace] : [],
    alert,
  )
}

export function showsAlert(rules: RowRules, cluster: ClusterState, alert: Alert): boolean {
  if (whyAlertHidden(rules, alert) !== null) return false
  const { namespace, node } = alert
  if (namespace && !showsNamespace(rules, cluster, namespace)) return false
  return !node || showsNodeNamed(rules, cluster, node)
}
