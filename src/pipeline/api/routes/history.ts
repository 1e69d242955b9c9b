import type { FastifyInstance } from 'fastify'
import type { HistoryStore } from '#history'
import { getHistory, typeHistory, v1ClusterHistory, v1NodeHistory } from '#http'
import type { AggregationInfo } from '#metricsource'
import { type MetricScope, seconds } from '#model'
import { inTurns } from '#runtime'
import { bodySteps } from '../bodies.ts'
import {
  HistoryBodies,
  type HistoryQuestion,
  hasNumbers,
  historyCsv,
  historyView,
  keepMs,
  metricsOf,
  openHoleOf,
  openStore,
  requireMetric,
  type ShownMetric,
  seenKeys,
  seenMetrics,
} from '../history.ts'
import { nodeNotFound, RefusedError } from '../problem.ts'
import { type Answer, type AnyCall, accessViewOf, type Parts, route, sendBody, visibleCluster } from '../route.ts'
import type { ApiOptions } from '../types.ts'
import { byText, type VisibleCluster } from '../views.ts'
import type { VisibleType } from '../visible-types.ts'
import { requireHistory, requireWhole, requireWholeType } from '../whole.ts'
import { type WindowQuery, windowOf } from '../window.ts'
import { visibleType, wantsCsv } from './types.ts'

type HistoryScope = Exclude<MetricScope, 'custom'>
interface Asked extends WindowQuery {
  readonly metric?: string
  readonly format?: 'json' | 'csv'
}

/**
 * Metrics over time: metric named → store there → cluster seen → things seen → window → kept answer or store.
 * What a caller may not see is not there; totals are for those who see the whole cluster.
 */
export function historyRoutes(
  app: FastifyInstance,
  parts: Parts,
  { history, filling }: Pick<ApiOptions, 'history' | 'filling'>,
): void {
  const bodies = new HistoryBodies()

  async function answer(
    { request, reply, now }: Pick<AnyCall, 'request' | 'reply' | 'now'>,
    query: Asked,
    name: string,
    scope: HistoryScope,
    keysOf: (cluster: VisibleCluster) => readonly string[],
  ): Promise<Answer> {
    const names = requireMetric(query.metric)
    const accessView = accessViewOf(request)
    const cluster = visibleCluster(parts, accessView, name)
    const keys = keysOf(cluster)
    requireHistory(cluster)
    const store = openStore(history)
    const metrics = seenMetrics(cluster, metricsOf(scope, names), keys)
    const intervalMs = cluster.state.connection?.intervalMs ?? seconds(30)
    const window = windowOf(query, now, intervalMs)
    const openHole = openHoleOf(cluster.state, now)
    return send({ request, reply, now }, query, store, {
      cluster: name,
      scope,
      metrics,
      keys,
      window,
      intervalMs,
      openHole,
      // What is made up is of clusters and their nodes.
      filling: scope === 'cluster' || scope === 'node' ? filling?.(name) : undefined,
    })
  }

  /** The kept answer, or the store's. */
  async function send(
    { request, reply, now }: Pick<AnyCall, 'request' | 'reply' | 'now'>,
    query: Asked,
    store: HistoryStore,
    question: HistoryQuestion,
  ): Promise<Answer> {
    const { cluster, scope, metrics, keys, window, intervalMs, filling } = question
    const { fingerprint, validUntil } = accessViewOf(request)
    const csv = wantsCsv(request, query.format)
    // While its past is being filled or repaired, no answer from before is given again.
    const late = store.lateRecords?.(cluster)
    const key = JSON.stringify([csv, fingerprint, cluster, scope, metrics, keys, window, intervalMs, late, filling])
    const body = await bodies.get(key, now, Math.min(keepMs(window.stepMs), validUntil - now), async () => {
      const view = await historyView(store, question)
      const text = csv ? historyCsv(view) : [`${JSON.stringify(view)}\n`]
      // Others may wait for the same: it is made to its end.
      const body = await inTurns(bodySteps(text), parts.turns)
      return { body, isKept: hasNumbers(view) }
    })
    if (!csv) return { body }
    reply.header('content-disposition', `attachment; filename="${cluster}-${scope}-history.csv"`)
    await sendBody(request, reply, body, 'text/csv; charset=utf-8')
    return 'sent'
  }

  route(app, parts, v1ClusterHistory, (call) =>
    answer(call, call.query, call.params.name, 'cluster', (cluster) => keysOf(cluster, 'cluster', undefined)),
  )

  route(app, parts, v1NodeHistory, (call) => {
    const { name, node } = call.params
    return answer(call, call.query, name, 'node', (cluster) => {
      if (!cluster.rows('node').has(node)) throw nodeNotFound(name, node)
      return [node]
    })
  })

  route(app, parts, typeHistory, ({ request, reply, params, query, now }) => {
    const names = requireMetric(query.metric)
    const accessView = accessViewOf(request)
    const cluster = visibleCluster(parts, accessView, params.name)
    const type = visibleType(
      parts,
      accessView,
      cluster.state,
      parts.types.meant(params.type, accessView, [cluster.state]),
      params.type,
      query.source,
    )
    requireHistory(cluster)
    requireWholeType(type)
    const store = openStore(history)
    const metrics = aggregationsOf(type, names)
    const { intervalMs } = type.source.collection
    const window = windowOf(query, now, intervalMs)
    const keys = [type.source.id]
    const openHole = openHoleOf(cluster.state, now)
    const scope = 'custom'
    const question: HistoryQuestion = { cluster: params.name, scope, metrics, keys, window, intervalMs, openHole }
    return send({ request, reply, now }, query, store, question)
  })

  route(app, parts, getHistory, (call) => {
    const { scope = 'node', key } = call.query
    return answer(call, call.query, call.params.name, scope, (cluster) => keysOf(cluster, scope, key))
  })
}

/** The things of a scope that the caller may see, sorted; of the asked ones, those. */
function keysOf(cluster: VisibleCluster, scope: HistoryScope, asked: readonly string[] | undefined): readonly string[] {
  if (scope === 'cluster') {
    requireWhole(cluster)
    return ['']
  }
  const seen = seenKeys(cluster, scope)
  return [...new Set(asked ?? seen)].filter((name) => seen.has(name)).sort(byText)
}

/**
 * Aggregations that are kept over time and may be seen.
 * @throws RefusedError `unknown_metric` with those there are
 */
function aggregationsOf({ source, custom }: VisibleType, names: readonly string[]): readonly ShownMetric[] {
  const known = source.aggregations.filter((one) => one.hasHistory && custom.aggregation(one.name))
  return names.map((name) => {
    const found = known.find((one) => one.name === name)
    if (!found)
      throw new RefusedError(
        'unknown_metric',
        `there is no metric ${JSON.stringify(name.slice(0, 80))} here: use ${known.map((one) => one.name).join(', ') || 'none, nothing is kept over time'}`,
      )
    const counts = found.function === 'count' || found.function === 'distinct'
    const unit = counts || found.unit === 'none' ? 'count' : found.unit
    return { name, unit, title: titleOf(found) }
  })
}

/** Such as `total_bytes (sum of capacity)`. */
const titleOf = ({ name, function: by, field }: AggregationInfo): string =>
  field === undefined ? name : `${name} (${by} of ${field})`
