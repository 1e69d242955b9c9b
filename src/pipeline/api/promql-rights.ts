import type { FastifyRequest } from 'fastify'
import type { AccessView } from '#access'
import { RefusedError } from './problem.ts'
import type { ListedAggregations, RightsOf } from './promql.ts'
import { accessViewOf, type Parts, visibleClusters } from './route.ts'
import type { VisibleCluster } from './views.ts'
import { requireWholeType } from './whole.ts'

/** No cluster is called so. */
const nowhere = '-'

/** What PromQL of a caller is narrowed to. Who sees no cluster asks in the same way, and finds nothing. */
export function promQlScope(parts: Parts, request: FastifyRequest) {
  const accessView = accessViewOf(request)
  const seen = wholeClusters(visibleClusters(parts, accessView))
  const names = seen.map(({ state }) => state.name)
  return {
    seen,
    clusters: names.length > 0 ? names : [nowhere],
    rightsOf: aggregationRights(parts, accessView, seen),
  }
}

/** The same without a word of those that are seen in part: for what no value depends on. */
export const wholeOf = (parts: Parts, accessView: AccessView): readonly VisibleCluster[] =>
  visibleClusters(parts, accessView).filter(({ history, whole }) => history && whole)

/**
 * Of the clusters whose measurements the caller may have. PromQL knows clusters, not nodes: who sees one of them in part cannot
 * be served by narrowing, and to leave that cluster out in silence would make every sum wrong.
 * @throws RefusedError `history_filtered`
 */
function wholeClusters(clusters: readonly VisibleCluster[]): readonly VisibleCluster[] {
  const measured = clusters.filter(({ history }) => history)
  const part = measured.find(({ whole }) => !whole)
  if (!part) return measured
  throw new RefusedError(
    'history_filtered',
    `you see only a part of cluster ${part.state.name}, and PromQL cannot be narrowed to it: use the history of its nodes`,
  )
}

/**
 * The aggregations of a type are kept over all its rows: they are for those from whom none can be hidden. Clusters on which the
 * type is denied are left out, as it is not there; to leave one out that is seen in part would make every sum wrong.
 */
function aggregationRights({ types }: Parts, accessView: AccessView, clusters: readonly VisibleCluster[]): RightsOf {
  return (aggregation, named) => {
    const rights = types.sources().flatMap((source) => {
      const isMeant = named === undefined || source.id === named
      if (!isMeant || !source.aggregations.some((one) => one.hasHistory && one.name === aggregation)) return []
      const shown = clusters.flatMap(({ state }) => {
        const type = types.on(accessView, state, source)
        return type?.custom.metrics && type.custom.aggregation(aggregation) ? [type] : []
      })
      for (const type of shown) requireWholeType(type)
      return shown.length > 0 ? [{ source: source.id, clusters: shown.map(({ cluster }) => cluster.name) }] : []
    })
    const [first] = rights
    if (!first) return undefined
    if (rights.some((one) => one.clusters.join() !== first.clusters.join()))
      throw new RefusedError(
        'query_refused',
        `${aggregation} comes from several sources, which you see on different clusters: name one by {source="${first.source}"}`,
      )
    return { clusters: first.clusters, sources: rights.map(({ source }) => source) }
  }
}

/**
 * Aggregations of which the caller may have the values, on the clusters where they may. A list is no sum: what is left out of
 * it falsifies nothing.
 */
export function listedAggregations(
  { types }: Parts,
  accessView: AccessView,
  clusters: readonly VisibleCluster[],
): readonly ListedAggregations[] {
  const listed: { source: string; names: string[]; clusters: readonly string[] }[] = []
  for (const source of types.sources()) {
    const on = clusters.flatMap(({ state }) => {
      const custom = types.on(accessView, state, source)?.custom
      return custom?.whole && custom.metrics ? [{ name: state.name, custom }] : []
    })
    for (const { name } of source.aggregations.filter(({ hasHistory }) => hasHistory)) {
      const shown = on.flatMap((one) => (one.custom.aggregation(name) ? [one.name] : []))
      if (shown.length === 0) continue
      const alike = listed.find((one) => one.source === source.id && one.clusters.join() === shown.join())
      if (alike) alike.names.push(name)
      else listed.push({ source: source.id, names: [name], clusters: shown })
    }
  }
  return listed
}
