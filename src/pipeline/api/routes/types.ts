import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Sight } from '#access'
import { getType, listCustomRows, listFleetRows, listTypes, type RouteContract } from '#http'
import type { ResourceDescriptor } from '#metricsource'
import type { ClusterState } from '#model'
import { type Body, textBody } from '../bodies.ts'
import { typeNotFound } from '../problem.ts'
import {
  type Answer,
  type Call,
  originOf,
  type Parts,
  questionOf,
  route,
  sendBody,
  sightOf,
  visibleCluster,
  visibleClusters,
} from '../route.ts'
import { type Located, orderedRows, pageOfRows, rowsCsv } from '../type-rows.ts'
import { sourceView, typeOnCluster, typeView } from '../type-views.ts'
import type { VisibleCluster } from '../views.ts'
import type { VisibleType } from '../visible-types.ts'

/** What MetricSources collect: types, and their rows on one cluster. A type that policies deny is one that is not there. */
export function typeRoutes(app: FastifyInstance, parts: Parts): void {
  const { types } = parts

  route(app, parts, listTypes, (call) =>
    fleetOfTypes(parts, listTypes, call, (sight, clusters) => {
      const { cluster } = call.query
      const items = [...types.types().values()].flatMap((sources) => {
        const view = typeView(types, sight, statesOf(clusters), sources, call.now, (name) => (cluster ?? name) === name)
        // What nobody declared is there where it is read.
        const isSaid = cluster === undefined && sources[0].access === 'declared'
        return view && (isSaid || view.clusters.length > 0) ? [view] : []
      })
      return textBody(`${JSON.stringify({ items })}\n`)
    }),
  )

  route(app, parts, getType, (call) =>
    fleetOfTypes(parts, getType, call, (sight, clusters) => {
      const { type } = call.params
      const [first, ...others] = types.ofType(type)
      const view = first && typeView(types, sight, statesOf(clusters), [first, ...others], call.now)
      if (!view) throw typeNotFound(type)
      return textBody(`${JSON.stringify(view)}\n`)
    }),
  )

  route(app, parts, listCustomRows, async (call) => {
    const { request, reply, params, query, now } = call
    const sight = sightOf(request)
    const cluster = visibleCluster(parts, sight, params.name)
    const type = visibleType(parts, sight, cluster.state, types.ofType(params.type), params.type, query.source)
    if (wantsCsv(request, query.format)) {
      const body = textBody(rowsCsv(orderedRows([type], query), type.source, query.headings ?? 'fields'))
      reply.header('content-disposition', `attachment; filename="${fileName(params.name, params.type)}.csv"`)
      await sendBody(request, reply, body, 'text/csv; charset=utf-8')
      return 'sent'
    }
    return typeBody(parts, listCustomRows, call, sight, type, cluster, () => pageText(sight, type, query, now))
  })

  route(app, parts, listFleetRows, async (call) => {
    const { request, reply, params, query, now } = call
    const kinds = types.ofType(params.type)
    const kind = query.source === undefined ? kinds[0] : kinds.find(({ id }) => id === query.source)
    const asked = query.cluster && new Set(query.cluster)
    const seenOn = (sight: Sight, clusters: readonly VisibleCluster[]): readonly VisibleType[] => {
      const on = kind ? statesOf(clusters).flatMap((cluster) => types.on(sight, cluster, kind) ?? []) : []
      // Unknown and denied everywhere go the same way.
      if (!kind || (on.length === 0 && !sight.administrator)) throw typeNotFound(params.type)
      return asked ? on.filter(({ cluster }) => asked.has(cluster.name)) : on
    }
    const ordered = { sort: 'cluster', ...query }
    if (!wantsCsv(request, query.format) || !kind)
      return fleetOfTypes(parts, listFleetRows, call, (sight, clusters) =>
        textBody(fleetText(sight, seenOn(sight, clusters), ordered, now)),
      )
    const sight = sightOf(request)
    const rows = orderedRows(seenOn(sight, visibleClusters(parts, sight)), ordered)
    reply.header('content-disposition', `attachment; filename="${fileName(params.type)}.csv"`)
    const body = textBody(rowsCsv(rows, kind, query.headings ?? 'fields', true))
    await sendBody(request, reply, body, 'text/csv; charset=utf-8')
    return 'sent'
  })
}

/**
 * Unknown and denied go the same way.
 * @param kinds what the name means
 * @param source of several of one type name, which
 * @throws RefusedError `type_not_found`
 */
export function visibleType(
  { types }: Parts,
  sight: Sight,
  cluster: ClusterState,
  kinds: readonly ResourceDescriptor[],
  name: string,
  source?: string,
): VisibleType {
  const found = source === undefined ? kinds[0] : kinds.find(({ id }) => id === source)
  const type = found && types.on(sight, cluster, found)
  if (!type) throw typeNotFound(name)
  return type
}

function pageText(sight: Sight, type: VisibleType, query: Parameters<typeof pageOfRows>[1], now: number): string {
  const { rows, total, next } = pageOfRows([type], query)
  const source = sourceView(type.source, [type])
  return `${JSON.stringify({ items: rows.map(rowView), total, next, source, on: typeOnCluster(sight, type, now) })}\n`
}

function fleetText(
  sight: Sight,
  on: readonly VisibleType[],
  query: Parameters<typeof pageOfRows>[1],
  now: number,
): string {
  const { rows, total, next } = pageOfRows(on, query)
  const items = rows.map((row) => ({ cluster: row.type.cluster.name, ...rowView(row) }))
  const told = on.filter(({ state }) => state !== undefined).map((type) => typeOnCluster(sight, type, now))
  return `${JSON.stringify({ items, total, next, source: on[0] ? sourceView(on[0].source, on) : null, clusters: told })}\n`
}

function rowView({ type, place }: Located) {
  const { rows, source } = type
  const row = rows.row(place)
  return { id: rows.idAt(place), ...row, name: source.rowName(row.name) }
}

const statesOf = (clusters: readonly VisibleCluster[]): readonly ClusterState[] => clusters.map(({ state }) => state)

/** What is kept of one answer about types counts for one state of the fleet and one set of declarations. */
export function fleetOfTypes<C extends RouteContract>(
  parts: Parts,
  contract: C,
  { request, params, query, now }: Call<C>,
  encode: (sight: Sight, clusters: readonly VisibleCluster[]) => Body,
): Answer {
  const sight = sightOf(request)
  const key = questionOf(contract.schema.operationId, sight.fingerprint, [params, query])
  const tag = `${parts.state.version()} ${parts.types.version()}`
  const known = parts.bodies.get(key, tag, now)
  if (known) return { body: known }
  const clusters = visibleClusters(parts, sight)
  const body = encode(sight, clusters)
  const { validUntil } = originOf(tag, clusters, sight, now)
  const turns = clusters.flatMap(({ state }) => turnsOf(parts, state, now))
  parts.bodies.set(key, { tag, validUntil: Math.min(validUntil, ...turns) }, body)
  return { body }
}

/** When what was collected on the cluster becomes old. */
function turnsOf({ types }: Parts, { custom }: ClusterState, now: number): number[] {
  return types.kinds().flatMap((source) => {
    const at = staleAt(source, custom.get(source.id)?.freshness?.observedAt)
    return at > now ? [at] : []
  })
}

const staleAt = ({ collection }: ResourceDescriptor, observedAt: number | undefined): number =>
  observedAt === undefined ? Number.POSITIVE_INFINITY : observedAt + 3 * collection.intervalMs

/** One answer about one type on one cluster, kept as long as that state of the cluster and those declarations. */
export function typeBody<C extends RouteContract>(
  parts: Parts,
  contract: C,
  { params, query, now }: Call<C>,
  sight: Sight,
  type: VisibleType,
  cluster: VisibleCluster,
  encode: () => string,
): Answer {
  const version = parts.types.version()
  const key = questionOf(contract.schema.operationId, sight.fingerprint, [params, query, version])
  const known = parts.bodies.get(key, cluster.state, now)
  if (known) return { body: known }
  const body = textBody(encode())
  const { validUntil } = originOf(cluster.state, [cluster], sight, now)
  const turn = type.staleAt > now ? type.staleAt : Number.POSITIVE_INFINITY
  parts.bodies.set(key, { tag: cluster.state, validUntil: Math.min(validUntil, turn) }, body)
  return { body }
}

export const wantsCsv = ({ headers }: FastifyRequest, format: 'json' | 'csv' | undefined): boolean =>
  format === 'csv' || (format === undefined && /^\s*text\/csv\b/i.test(headers.accept ?? ''))

/** Names of files go through many hands. */
const fileName = (...words: readonly string[]): string => words.join('-').replace(/[^A-Za-z0-9._-]/g, '_')
