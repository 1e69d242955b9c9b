import type { AccessView } from '#access'
import type { PartView, SourceView, TypeOnClusterView, TypeView } from '#http'
import type { RowKind } from '#metricsource'
import type { ClusterState, RowsError, RowsState } from '#model'
import { isFleetKind } from '#resources'
import { absenceRule } from './column-absence.ts'
import { plainFault } from './seen-status.ts'
import { namesOf, type VisibleType, type VisibleTypes } from './visible-types.ts'

/** Views of types are written by name, as all are: what else is known of a collection does not leak into an answer. */

/** A declaration, with the aggregations that `on` shows somewhere. */
export function sourceView(source: RowKind, on: readonly VisibleType[]): SourceView {
  const { id, typeName, title, access, target, hash, collection, columns, aggregations, sort } = source
  const isSeen = (name: string): boolean => on.some(({ custom }) => custom.metrics && custom.aggregation(name))
  return {
    id,
    type: typeName,
    title: title ?? typeName,
    names: namesOf(source),
    isDeclared: access === 'declared',
    apiVersion: target.apiVersion,
    kind: target.kind,
    scope: target.scope,
    hash,
    intervalMs: Math.max(...(on.length > 0 ? on.map((type) => type.intervalMs) : [collection.intervalMs])),
    sort: sort ?? 'name',
    watch: collection.watch,
    columns: columns.map((column) => ({
      name: column.name,
      label: column.label ?? column.name,
      kind: column.kind,
      unit: column.unit,
      computed: column.isComputed,
      extra: column.isExtra === true || column.isWide === true,
      health: column.health ?? null,
      amount: column.amount ?? null,
      ...absenceRule(column, on),
    })),
    aggregations: aggregations
      .filter(({ name }) => isSeen(name))
      .map((one) => ({
        name: one.name,
        function: one.function,
        field: one.field ?? null,
        groupBy: one.groupBy ?? null,
        unit: one.unit,
        hasHistory: one.hasHistory,
      })),
  }
}

/** Whom every namespace may be named to. */
const namesAll = (accessView: AccessView, cluster: ClusterState): boolean => {
  if (accessView.administrator) return true
  const { visibility = 'all' } = accessView.permissions(cluster).filters.namespaces ?? {}
  return visibility === 'all'
}

/** Whether nothing of the type and of its namespaces is hidden here. */
const isWholeOn = (accessView: AccessView, { cluster, custom, source }: VisibleType): boolean =>
  custom.whole && (isFleetKind(source) || namesAll(accessView, cluster))

/** How reading the type went on its cluster. */
export const partOnCluster = (accessView: AccessView, type: VisibleType): PartView =>
  type.state ? partView(type.state, type.count, isWholeOn(accessView, type)) : { ...neverRead(type), count: 0 }

export function typeOnCluster(
  accessView: AccessView,
  type: VisibleType,
  now: number,
  withAggregations = true,
): TypeOnClusterView {
  const { cluster, custom, state, source } = type
  const namesNamespaces = isFleetKind(source) || namesAll(accessView, cluster)
  const whole = isWholeOn(accessView, type)
  const errors = errorsOf(accessView, type, whole, namesNamespaces)
  return {
    cluster: cluster.name,
    displayName: cluster.connection?.displayName || cluster.name,
    part: partOnCluster(accessView, type),
    truncated: state?.truncated ?? false,
    errors: errors.map((error) => ({
      namespace: error.namespace,
      outcome: error.outcome,
      code: error.code,
      message: whole ? error.message : plainFault(error.outcome),
    })),
    errorCount: whole ? (state?.errorCount ?? 0) : errors.length,
    outdated: state !== undefined && state.freshness !== null && state.hash !== source.hash,
    stale: now >= type.staleAt,
    filtered: !custom.whole,
    ...(type.measured && { measured: measuredView(type.measured, whole) }),
    // views are written without readonly
    aggregations: withAggregations ? (type.knownAggregations as TypeOnClusterView['aggregations']) : null,
  }
}

/** Of namespaces in which the caller could see a row; that a namespace is there at all may be hidden. */
function errorsOf(
  accessView: AccessView,
  { cluster, custom, state }: VisibleType,
  whole: boolean,
  namesNamespaces: boolean,
): readonly RowsError[] {
  const { errors } = state ?? { errors: [] }
  if (whole || errors.length === 0) return errors
  const seen = new Set(namesNamespaces ? [] : accessView.visible(cluster, 'namespace').map(({ name }) => name))
  return errors.filter(({ namespace }) => {
    if (namespace === '') return true // the list as a whole
    const isNamed = namesNamespaces || seen.has(namespace)
    return isNamed && (custom.whole || custom.shows({ name: '', namespace, labels: {}, values: {} }))
  })
}

const never = { attemptedAt: 0, freshness: null } as const

/** What is said where nothing was read: it may still come, or it takes an agent. */
export const neverRead = ({ source, cluster }: VisibleType) =>
  source.access === 'named' && cluster.connection?.mode === 'pull'
    ? ({ ...never, outcome: 'absent', code: 'not_served', message: TAKES_AGENT } as const)
    : ({ ...never, outcome: 'unreachable', code: 'not_collected', message: 'Nothing was collected so far' } as const)
const TAKES_AGENT = 'The hub reads this cluster itself; inventory takes an agent in it'

function partView(state: RowsState, count: number, whole: boolean): PartView {
  const { outcome, code, message, attemptedAt, freshness } = state
  return {
    outcome,
    code,
    message: whole || outcome === 'complete' ? message : plainFault(outcome),
    attemptedAt,
    freshness: freshness && {
      observedAt: freshness.observedAt,
      receivedAt: freshness.receivedAt,
      source: freshness.source,
    },
    count,
  }
}

/** How many were measured is not said: some of them may be hidden. */
export function measuredView(state: RowsState, whole: boolean): Omit<PartView, 'count'> {
  const { count: _, ...view } = partView(state, 0, whole)
  return view
}

/** Where a declaration is seen, by name of the cluster. */
export interface SeenSource {
  readonly source: RowKind
  /** not denied there, whether or not something was collected */
  readonly on: readonly VisibleType[]
}

/** @returns undefined where nobody with this access view may know that there is such a type */
export function seenSource(
  types: VisibleTypes,
  accessView: AccessView,
  clusters: readonly ClusterState[],
  source: RowKind,
): SeenSource | undefined {
  const on = types.over(accessView, clusters, source)
  // Before the first cluster is there an administrator must find what was declared.
  return on.length > 0 || accessView.administrator ? { source, on } : undefined
}

/** Rows of the clusters that were read; null where none was: nothing is known then of how many there are. */
function countOver(on: readonly VisibleType[]): number | null {
  const read = on.filter(({ state }) => state?.freshness)
  return read.length === 0 && on.length > 0 ? null : read.reduce((sum, { count }) => sum + count, 0)
}

export function typeView(
  types: VisibleTypes,
  accessView: AccessView,
  clusters: readonly ClusterState[],
  [first, ...others]: readonly [RowKind, ...RowKind[]],
  now: number,
): TypeView | undefined {
  const seen = seenSource(types, accessView, clusters, first)
  if (!seen) return undefined
  const on = seen.on.filter(({ state }) => state !== undefined)
  return {
    type: types.nameOf(first),
    sources: [
      sourceView(first, seen.on),
      ...others.map((source) => sourceView(source, seenSource(types, accessView, clusters, source)?.on ?? [])),
    ],
    clusters: on.map((type) => typeOnCluster(accessView, type, now)),
    count: countOver(on),
  }
}
