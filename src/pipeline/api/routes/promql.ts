import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Sight } from '#access'
import type { HistoryStore, PromQl } from '#history'
import { promQlLabels, promQlLabelValues, promQlQuery, promQlQueryForm, promQlRange, promQlRangeForm } from '#http'
import { metricPrefix, metricsCatalogue, scopeLabel } from '#model'
import { type Cors, requireSameSite } from '../gate.ts'
import { askStore, openStore, seenKeys } from '../history.ts'
import { RefusedError } from '../problem.ts'
import { narrowQuery, type RightsOf } from '../promql.ts'
import { type Answer, type Parts, route, sightOf, visibleClusters } from '../route.ts'
import { byText, type VisibleCluster } from '../views.ts'
import { requireWholeType } from '../whole.ts'
import { parseStep, parseTime } from '../window.ts'

/** As Prometheus itself refuses more. */
const maxPoints = 11_000
const maxTimeoutMs = 30_000
const maxRunning = 16
const maxFormBytes = 64 * 1024

type Parameters = Readonly<Record<string, string | undefined>>

/**
 * PromQL for those who have a tool that speaks it, answered as Prometheus answers.
 *
 *   clusters seen whole → query narrowed to them by its syntax tree → backend → its data, nothing else of it
 *
 * Administrators are narrowed as well, to the names of all registered clusters: never "any cluster", because a removed
 * cluster's series stay in the backend, and who saw "all" of what is left must not get them.
 */
export function promQlRoutes(
  app: FastifyInstance,
  parts: Parts,
  { history, cors }: { readonly history: HistoryStore | undefined; readonly cors: Cors },
): void {
  let running = 0

  async function ask(
    path: 'query' | 'query_range',
    request: FastifyRequest,
    given: Parameters,
    now: number,
  ): Promise<Answer> {
    const store = openStore(history)
    const promql = requirePromQl(store)
    const sight = sightOf(request)
    const seen = wholeClusters(visibleClusters(parts, sight))
    const clusters = seen.map(({ state }) => state.name)
    const times = path === 'query' ? instantOf(given, now) : rangeOf(given)
    // Whoever sees no cluster asks the same way, and finds nothing.
    const rights = aggregationRights(parts, sight, seen)
    const query = narrowQuery(required(given, 'query'), clusters.length > 0 ? clusters : ['none'], rights)
    if (clusters.length === 0) return success({ resultType: path === 'query' ? 'vector' : 'matrix', result: [] })
    if (running >= maxRunning)
      throw new RefusedError('history_unavailable', 'too many queries at once', { retryAfterSeconds: 2 })
    running += 1
    try {
      return passedOn(
        await askStore(store, (signal) => promql.ask(path, { query, ...times, ...timeout(given) }, signal)),
      )
    } finally {
      running -= 1
    }
  }

  route(app, parts, promQlQuery, ({ request, query, now }) => ask('query', request, query, now))
  route(app, parts, promQlRange, ({ request, query, now }) => ask('query_range', request, query, now))
  app.register(async (forms: FastifyInstance) => {
    forms.addContentTypeParser(
      'application/x-www-form-urlencoded',
      { parseAs: 'string', bodyLimit: maxFormBytes },
      (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(String(body)))),
    )
    const formOf = (request: FastifyRequest): Parameters => {
      requireSameSite(request, cors)
      return { ...stringsOf(request.query), ...stringsOf(request.body) }
    }
    route(forms, parts, promQlQueryForm, ({ request, now }) => ask('query', request, formOf(request), now))
    route(forms, parts, promQlRangeForm, ({ request, now }) => ask('query_range', request, formOf(request), now))
  })

  route(app, parts, promQlLabels, () => {
    requirePromQl(openStore(history))
    const labels = Object.values(scopeLabel).filter((label) => label !== null)
    return success(sorted(['__name__', 'cluster', ...labels]))
  })
  route(app, parts, promQlLabelValues, ({ request, params }) => {
    requirePromQl(openStore(history))
    return success(sorted(labelValues(params.label, parts, sightOf(request))))
  })
}

function requirePromQl(store: HistoryStore): PromQl {
  if (store.promql) return store.promql
  throw new RefusedError(
    'promql_off',
    'the embedded history has no PromQL: to ask by it, set VM_ENABLED=true and VM_ENDPOINT to the address of a VictoriaMetrics',
  )
}

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
function aggregationRights({ types }: Parts, sight: Sight, clusters: readonly VisibleCluster[]): RightsOf {
  return (aggregation, named) => {
    const rights = types.sources().flatMap((source) => {
      const isMeant = named === undefined || source.id === named
      if (!isMeant || !source.aggregations.some((one) => one.hasHistory && one.name === aggregation)) return []
      const shown = clusters.flatMap(({ state }) => {
        const type = types.on(sight, state, source)
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

function required(given: Parameters, name: string): string {
  const text = given[name]
  if (text !== undefined && text.trim() !== '') return text
  throw new RefusedError('invalid_parameter', `${name} parameter required`)
}

function parsed(name: string, text: string, parse: (text: string) => number | undefined): number {
  const value = parse(text)
  if (value !== undefined) return value
  throw new RefusedError('invalid_parameter', `${name}=${text.slice(0, 64)} cannot be read`)
}

const inSeconds = (ms: number): string => String(ms / 1000)

function instantOf({ time }: Parameters, now: number): Record<string, string> {
  return { time: inSeconds(time === undefined || time === '' ? now : parsed('time', time, parseTime)) }
}

function rangeOf(given: Parameters): Record<string, string> {
  const start = parsed('start', required(given, 'start'), parseTime)
  const end = parsed('end', required(given, 'end'), parseTime)
  const step = parsed('step', required(given, 'step'), parseStep)
  if (end < start) throw new RefusedError('invalid_parameter', 'end is before start')
  if (step <= 0) throw new RefusedError('invalid_parameter', 'step is not above zero')
  if ((end - start) / step > maxPoints)
    throw new RefusedError('too_many_points', `more than ${maxPoints} points per series: use a longer step`)
  return { start: inSeconds(start), end: inSeconds(end), step: inSeconds(step) }
}

function timeout({ timeout: text }: Parameters): { timeout: string } {
  const asked = text === undefined || text === '' ? maxTimeoutMs : parsed('timeout', text, parseStep)
  return { timeout: `${Math.max(1, Math.ceil(Math.min(asked, maxTimeoutMs) / 1000))}s` }
}

interface BackendAnswer {
  readonly status?: unknown
  readonly data?: unknown
  readonly error?: unknown
  readonly warnings?: unknown
}

/** Only what Prometheus documents is passed on. */
function passedOn({ status, body }: { readonly status: number; readonly body: unknown }): Answer {
  const answer: BackendAnswer = typeof body === 'object' && body !== null ? body : {}
  if (status === 200 && answer.status === 'success') {
    const warnings = Array.isArray(answer.warnings) ? answer.warnings : undefined
    return success(answer.data, warnings)
  }
  if (status === 400 || status === 422)
    throw new RefusedError('query_refused', `the backend refuses: ${String(answer.error ?? status).slice(0, 500)}`)
  throw new RefusedError('history_failed', `the history store answered with ${status}`, { retryAfterSeconds: 5 })
}

const success = (data: unknown, warnings?: readonly unknown[]): Answer => ({
  fresh: { status: 'success', data, ...(warnings && { warnings }) },
})

/** What a problem carries besides, so that a tool of Prometheus can read it. */
export function promQlMarks(status: number): { readonly status: 'error'; readonly errorType: string } {
  return { status: 'error', errorType: errorType(status) }
}

function errorType(status: number): string {
  if (status === 504) return 'timeout'
  if (status >= 500) return 'unavailable'
  return status === 400 ? 'bad_data' : 'execution'
}

function stringsOf(values: unknown): Parameters {
  const pairs = Object.entries(typeof values === 'object' && values !== null ? values : {})
  return Object.fromEntries(pairs.filter(([, value]) => typeof value === 'string')) // filtered to strings
}

const sorted = (names: Iterable<string>): readonly string[] => [...new Set(names)].sort(byText)

function labelValues(label: string, parts: Parts, sight: Sight): readonly string[] {
  const clusters = visibleClusters(parts, sight)
  const rows = (scope: 'node' | 'operator' | 'clusterOperator') =>
    clusters.flatMap((cluster) => [...seenKeys(cluster, scope)])
  switch (label) {
    case '__name__':
      return [
        ...metricsCatalogue.map(({ scope, name }) => metricPrefix[scope] + name),
        ...seenAggregations(parts, sight, clusters).map(([, name]) => metricPrefix.custom + name),
      ]
    case 'source':
      return seenAggregations(parts, sight, clusters).map(([source]) => source)
    case 'cluster':
      return clusters.map(({ state }) => state.name)
    case 'node':
      return rows('node')
    case 'operator':
      return [...rows('operator'), ...rows('clusterOperator')]
    default:
      return []
  }
}

function seenAggregations({ types }: Parts, sight: Sight, clusters: readonly VisibleCluster[]) {
  const measured = clusters.filter(({ history, whole }) => history && whole)
  return types.sources().flatMap((source) => {
    const on = measured.flatMap(({ state }) => types.on(sight, state, source)?.custom ?? [])
    return source.aggregations
      .filter(
        (one) => one.hasHistory && on.some((custom) => custom.whole && custom.metrics && custom.aggregation(one.name)),
      )
      .map(({ name }) => [source.id, name] as const)
  })
}
