import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { HistoryStore } from '#history'
import type { RouteContract } from '#http'
import { getHistory, v1ClusterHistory, v1NodeHistory } from '#http'
import { type MetricScope, seconds } from '#model'
import { textBody } from '../bodies.ts'
import {
  HistoryBodies,
  type HistoryQuestion,
  historyCsv,
  historyView,
  keepMs,
  metricsOf,
  openStore,
  requireMetric,
  seenKeys,
  seenMetrics,
} from '../history.ts'
import { nodeNotFound } from '../problem.ts'
import { type Answer, type Call, type Parts, route, sendBody, sightOf, visibleCluster } from '../route.ts'
import { byText, type VisibleCluster } from '../views.ts'
import { requireHistory, requireWhole } from '../whole.ts'
import { type WindowQuery, windowOf } from '../window.ts'

type HistoryScope = Exclude<MetricScope, 'custom'>
interface Asked extends WindowQuery {
  readonly metric?: string
  readonly format?: 'json' | 'csv'
}

/**
 * Metrics over time: metric named → store there → cluster seen → things seen → window → kept answer or store.
 * What a caller may not see is not there; totals are for those who see the whole cluster.
 */
export function historyRoutes(app: FastifyInstance, parts: Parts, history: HistoryStore | undefined): void {
  const bodies = new HistoryBodies()

  async function answer<C extends RouteContract>(
    { request, reply, now }: Pick<Call<C>, 'request' | 'reply' | 'now'>,
    query: Asked,
    name: string,
    scope: HistoryScope,
    keysOf: (cluster: VisibleCluster) => readonly string[],
  ): Promise<Answer> {
    const names = requireMetric(query.metric)
    const sight = sightOf(request)
    const cluster = visibleCluster(parts, sight, name)
    const keys = keysOf(cluster)
    requireHistory(cluster)
    const store = openStore(history)
    const metrics = seenMetrics(cluster, metricsOf(scope, names), keys)
    const window = windowOf(query, now, cluster.state.connection?.intervalMs ?? seconds(30))
    const question: HistoryQuestion = { cluster: name, scope, metrics, keys, window }
    const csv = wantsCsv(request, query.format)
    const key = JSON.stringify([csv, sight.fingerprint, name, scope, names, keys, window])
    const body = await bodies.get(key, now, Math.min(keepMs(window.stepMs), sight.validUntil - now), async () => {
      const view = await historyView(store, question)
      return textBody(csv ? historyCsv(view) : `${JSON.stringify(view)}\n`)
    })
    if (!csv) return { body }
    reply.header('content-disposition', `attachment; filename="${name}-${scope}-history.csv"`)
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

const wantsCsv = ({ headers }: FastifyRequest, format: 'json' | 'csv' | undefined): boolean =>
  format === 'csv' || (format === undefined && /^\s*text\/csv\b/i.test(headers.accept ?? ''))
