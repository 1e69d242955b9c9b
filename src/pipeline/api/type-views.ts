import type { Sight } from '#access'
import type { PartView, SourceView, TypeOnClusterView, TypeView } from '#http'
import type { ResourceDescriptor } from '#metricsource'
import type { ClusterState, CustomError, CustomState } from '#model'
import { plainFault } from './seen-status.ts'
import type { VisibleType, VisibleTypes } from './visible-types.ts'

/** Views of types are written by name, as all are: what else is known of a collection does not leak into an answer. */

/** A declaration, with the aggregations that `on` shows somewhere. */
export function sourceView(source: ResourceDescriptor, on: readonly VisibleType[]): SourceView {
  const {
    id,
    typeName,
    title,
    singular,
    shortNames = [],
    access,
    target,
    hash,
    collection,
    columns,
    aggregations,
  } = source
  const isSeen = (name: string): boolean => on.some(({ custom }) => custom.metrics && custom.aggregation(name))
  return {
    id,
    type: typeName,
    title: title ?? typeName,
    names: [typeName, ...(singular === undefined ? [] : [singular]), ...shortNames],
    isDeclared: access === 'declared',
    apiVersion: target.apiVersion,
    kind: target.kind,
    scope: target.scope,
    hash,
    intervalMs: collection.intervalMs,
    watch: collection.watch,
    columns: columns.map(({ name, label = name, kind, unit, isComputed, isExtra = false, refersTo }) => ({
      ...{ name, label, kind, unit },
      computed: isComputed,
      extra: isExtra,
      refersTo: refersTo ?? null,
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
const namesAll = (sight: Sight, cluster: ClusterState): boolean => {
  if (sight.administrator) return true
  const { visibility = 'all' } = sight.permissions(cluster).filters.namespaces ?? {}
  return visibility === 'all'
}

export function typeOnCluster(sight: Sight, type: VisibleType, now: number): TypeOnClusterView {
  const { cluster, custom, state, source } = type
  const namesNamespaces = namesAll(sight, cluster)
  const whole = custom.whole && namesNamespaces
  const errors = errorsOf(sight, type, whole, namesNamespaces)
  return {
    cluster: cluster.name,
    displayName: cluster.connection?.displayName || cluster.name,
    part: partView(state, type.count, whole),
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
    aggregations: type.aggregations as TypeOnClusterView['aggregations'], // views are written without readonly
  }
}

/** Of namespaces in which the caller could see a row; that a namespace is there at all may be hidden. */
function errorsOf(
  sight: Sight,
  { cluster, custom, state }: VisibleType,
  whole: boolean,
  namesNamespaces: boolean,
): readonly CustomError[] {
  const { errors } = state ?? { errors: [] }
  if (whole || errors.length === 0) return errors
  const seen = new Set(namesNamespaces ? [] : sight.visible(cluster, 'namespace').map(({ name }) => name))
  return errors.filter(({ namespace }) => {
    if (namespace === '') return true // the list as a whole
    const isNamed = namesNamespaces || seen.has(namespace)
    return isNamed && (custom.whole || custom.shows({ name: '', namespace, labels: {}, values: {} }))
  })
}

const neverRead: PartView = {
  outcome: 'unreachable',
  code: 'not_collected',
  message: 'Nothing was collected so far',
  attemptedAt: 0,
  freshness: null,
  count: 0,
}

function partView(state: CustomState | undefined, count: number, whole: boolean): PartView {
  if (!state) return neverRead
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

/** Where a declaration is seen, by name of the cluster. */
export interface SeenSource {
  readonly source: ResourceDescriptor
  /** not denied there, whether or not something was collected */
  readonly on: readonly VisibleType[]
}

/** @returns undefined where nobody with this sight may know that there is such a type */
export function seenSource(
  types: VisibleTypes,
  sight: Sight,
  clusters: readonly ClusterState[],
  source: ResourceDescriptor,
): SeenSource | undefined {
  const on = clusters.flatMap((cluster) => types.on(sight, cluster, source) ?? [])
  // Before the first cluster is there an administrator must find what was declared.
  return on.length > 0 || sight.administrator ? { source, on } : undefined
}

/** @param isAsked which of the clusters the caller wants to hear of */
export function typeView(
  types: VisibleTypes,
  sight: Sight,
  clusters: readonly ClusterState[],
  [first, ...others]: readonly [ResourceDescriptor, ...ResourceDescriptor[]],
  now: number,
  isAsked: (cluster: string) => boolean = () => true,
): TypeView | undefined {
  const seen = seenSource(types, sight, clusters, first)
  if (!seen) return undefined
  const on = seen.on.filter(({ state, cluster }) => state !== undefined && isAsked(cluster.name))
  return {
    type: types.nameOf(first),
    sources: [
      sourceView(first, seen.on),
      ...others.map((source) => sourceView(source, seenSource(types, sight, clusters, source)?.on ?? [])),
    ],
    clusters: on.map((type) => typeOnCluster(sight, type, now)),
    count: on.reduce((sum, type) => sum + type.count, 0),
  }
}
