import type { FastifyInstance } from 'fastify'
import type { AccessView, Semantics } from '#access'
import { v1CustomResources, v1CustomTypeClusters, v1CustomTypes } from '#http'
import type { RowKind } from '#metricsource'
import { type ClusterState, documentText, documentTime, type Table } from '#model'
import { RefusedError } from '../problem.ts'
import { accessViewOf, type Parts, route, visibleCluster, visibleClusters } from '../route.ts'
import { orderedSteps } from '../type-rows.ts'
import { type SeenSource, seenSource, sourceView } from '../type-views.ts'
import { byText } from '../views.ts'
import type { VisibleType } from '../visible-types.ts'
import { requireDeclared, typeBody, visibleType } from './types.ts'

const maxPageSize = 10_000

/** The documented routes of custom types: numbers over what policies leave, and nothing of what they do not. */
export function v1TypeRoutes(
  app: FastifyInstance,
  parts: Parts,
  { semantics }: { readonly semantics: Semantics },
): void {
  const { types } = parts

  /**
   * As documented for the original, who may not see a type is told so; ours tells of no type that is denied.
   * @throws RefusedError `type_denied`
   */
  function requireGrant(
    accessView: AccessView,
    clusters: readonly ClusterState[],
    type: string,
    anywhere = false,
  ): void {
    if (semantics === 'strict') return
    if (anywhere && accessView.discovers(type)?.granted) return
    if (accessView.administrator || clusters.some((cluster) => accessView.custom(cluster, type).result !== 'deny'))
      return
    throw new RefusedError('type_denied', `Access denied to custom resource type '${type.slice(0, 80)}'`)
  }

  route(app, parts, v1CustomResources, (call) => {
    const { request, params, query } = call
    const accessView = accessViewOf(request)
    const cluster = visibleCluster(parts, accessView, params.name)
    requireDeclared(parts)
    requireGrant(accessView, [cluster.state], params.type)
    const type = visibleType(parts, accessView, cluster.state, types.declaredAs(params.type), params.type)
    return typeBody(parts, v1CustomResources, call, accessView, type, cluster, function* () {
      const sort = sortOf(query.sort_by)
      const order = query.sort_order === 'desc' && sort !== undefined ? 'desc' : 'asc'
      const { namespace } = query
      const ordered = yield* orderedSteps([type], {
        order,
        ...(sort !== undefined && { sort }),
        ...(namespace && { namespace }),
      })
      const places = ordered.map(({ place }) => place)
      const page = { page: positive(query.page, 1), size: Math.min(positive(query.page_size, 100), maxPageSize) }
      const sums = () => (namespace ? type.aggregationsOver(places) : type.aggregations)
      const aggregations = query.include_aggregations !== 'false' && type.state ? sums() : null
      return `${documentText(rowsDocument(type, places, page, aggregations))}\n`
    })
  })

  for (const url of [v1CustomTypes.url, `${v1CustomTypes.url}/`])
    route(app, parts, { ...v1CustomTypes, url }, ({ request, query }) => {
      requireDeclared(parts)
      const accessView = accessViewOf(request)
      const clusters = visibleClusters(parts, accessView).map(({ state }) => state)
      const items = types.declared().flatMap((source) => {
        const seen = seenSource(types, accessView, clusters, source)
        // As the original lists it: by name, wherever it may be seen.
        return seen ?? (accessView.discovers(source.typeName)?.listed ? { source, on: [] } : [])
      })
      const withSource = query.include_source_details === 'true'
      const withClusters = query.include_cluster_availability === 'true'
      return {
        fresh: items.map((seen) => ({
          resourceTypeName: seen.source.typeName,
          sourceId: seen.source.id,
          ...(withSource && sourceDetails(seen)),
          ...(withClusters && { clustersWithData: clustersWithData(seen) }),
        })),
      }
    })

  route(app, parts, v1CustomTypeClusters, ({ request, query }) => {
    const asked = [...new Set(query.type ?? [])].filter(Boolean)
    if (asked.length === 0)
      throw new RefusedError('invalid_parameter', "at least one 'type' query parameter is required")
    requireDeclared(parts)
    const accessView = accessViewOf(request)
    const clusters = visibleClusters(parts, accessView).map(({ state }) => state)
    for (const type of asked) requireGrant(accessView, clusters, type, true)
    const wanted = new Set(query.clusters ?? [])
    const counted = clusters.filter(({ name }) => wanted.size === 0 || wanted.has(name))
    const withSums = query.include_aggregations === 'true'
    return {
      fresh: asked.flatMap((name) => {
        const [source] = types.declaredAs(name)
        return source ? countsOf(parts, accessView, counted, source, withSums) : []
      }),
    }
  })
}

interface Page {
  readonly page: number
  readonly size: number
}

function rowsDocument(
  type: VisibleType,
  places: readonly number[],
  { page, size }: Page,
  aggregations: VisibleType['aggregations'],
) {
  const { rows, state, source, cluster, custom } = type
  const total = places.length
  const pages = Math.max(1, Math.ceil(total / size))
  return {
    resourceTypeName: source.typeName,
    cluster: cluster.name,
    items: places.slice((page - 1) * size, page * size).map((place) => rowDocument(rows, place)),
    filtered: !custom.whole,
    ...(!custom.whole && { filterNote: 'Results filtered based on access policies' }),
    pagination: {
      total,
      page,
      pageSize: size,
      totalPages: pages,
      hasNext: page < pages,
      hasPrevious: page > 1,
    },
    ...(state?.freshness && { collectedAt: documentTime(state.freshness.observedAt) }),
    ...(state?.truncated && { truncated: true }),
    ...(aggregations && { aggregations }),
  }
}

function rowDocument(rows: Table, place: number) {
  const { namespace, name, labels, values } = rows.row(place)
  return {
    _id: rows.idAt(place),
    ...(namespace !== '' && { _namespace: namespace }),
    _name: name,
    ...(Object.keys(labels).length > 0 && { _labels: labels }),
    values,
  }
}

/** Names with an underscore are those of the row itself. */
function sortOf(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined
  if (text === '_name') return 'name'
  return text === '_namespace' || text === '_id' ? 'namespace' : text
}

/** A whole number from 1; what is none counts as `otherwise`. */
function positive(text: string | undefined, otherwise: number): number {
  const number = /^\d+$/.test(text ?? '') ? Number(text) : 0
  return number > 0 ? Math.min(number, Number.MAX_SAFE_INTEGER) : otherwise
}

function sourceDetails({ source, on }: SeenSource) {
  const { apiVersion, kind, scope, columns, aggregations } = sourceView(source, on)
  const names = (computed: boolean) => columns.filter((one) => one.computed === computed).map(({ name }) => name)
  return {
    source: { apiVersion, kind, scope },
    fields: names(false),
    computedFields: names(true),
    aggregations: aggregations.map(({ name }) => name),
  }
}

const clustersWithData = ({ on }: SeenSource): readonly string[] =>
  on.flatMap(({ state, cluster }) => (state?.freshness ? [cluster.name] : [])).sort(byText)

function countsOf(
  { types }: Parts,
  accessView: AccessView,
  clusters: readonly ClusterState[],
  source: RowKind,
  withSums: boolean,
) {
  return clusters.flatMap((cluster) => {
    const type = types.on(accessView, cluster, source)
    const observedAt = type?.state?.freshness?.observedAt
    if (!type || observedAt === undefined) return []
    const aggregations = withSums ? type.aggregations : null
    return {
      cluster: cluster.name,
      resourceTypeName: source.typeName,
      count: type.count,
      lastCollection: documentTime(observedAt),
      ...(aggregations && { aggregations }),
    }
  })
}
