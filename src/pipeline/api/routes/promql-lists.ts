import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  byForm,
  promQlBuildInfo,
  promQlExemplars,
  promQlLabels,
  promQlLabelValues,
  promQlMetadata,
  promQlRules,
  promQlSeries,
} from '#http'
import { metricPrefix, metricsCatalogue } from '#model'
import { RefusedError } from '../problem.ts'
import { narrowQuery, narrowSelector } from '../promql.ts'
import { success, within } from '../promql-answer.ts'
import type { PromQlBackend } from '../promql-backend.ts'
import { all, first, inSeconds, limitOf, type Parameters, required, timeOf } from '../promql-form.ts'
import { listedAggregations, promQlScope, wholeOf } from '../promql-rights.ts'
import { type Answer, accessViewOf, type Parts, route } from '../route.ts'
import { byText } from '../views.ts'

const maxSelectors = 32
/** To VictoriaMetrics a time of 0 is none given: the last minutes. */
const earliestMs = 1000
const labelName = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * What there is to ask about: series, labels and their values out of the same backend as the values, by selectors narrowed in
 * the same way; and what Grafana's data source asks of a Prometheus before it shows its query builder.
 */
export function promQlLists(
  app: FastifyInstance,
  forms: FastifyInstance,
  parts: Parts,
  { backend, formOf }: { readonly backend: PromQlBackend; readonly formOf: (request: FastifyRequest) => Parameters },
): void {
  /** @param selectors those given, or all there is */
  async function list(
    path: 'series' | 'labels' | `label/${string}/values`,
    { request, given, now }: { readonly request: FastifyRequest; readonly given: Parameters; readonly now: number },
    selectors: readonly string[],
  ): Promise<Answer> {
    backend.require()
    if (selectors.length > maxSelectors)
      throw new RefusedError(
        'invalid_parameter',
        `match[] is given ${selectors.length} times, more than ${maxSelectors}`,
      )
    const { seen, clusters, rightsOf } = promQlScope(parts, request)
    const listed = listedAggregations(parts, accessViewOf(request), seen)
    const narrowed = selectors.flatMap((selector) => narrowSelector(selector, clusters, rightsOf, listed))
    const [start, end] = [timeOf(given, 'start') || earliestMs, timeOf(given, 'end') ?? now]
    if (end < start) throw new RefusedError('invalid_parameter', 'end is before start')
    const limit = limitOf(given)
    const asked = {
      'match[]': narrowed,
      start: inSeconds(start),
      end: inSeconds(end),
      // One more tells whether something was left out.
      ...(Number.isFinite(limit) && { limit: String(limit + 1) }),
    }
    const { data, warnings } = await backend.ask(path, asked, given)
    const found: readonly unknown[] = Array.isArray(data) ? data : []
    const cut = within(path === 'series' ? found : found.map(String).sort(byText), limit, warnings)
    return success(cut.list, cut.warnings)
  }
  const selectorsOf = (given: Parameters): readonly string[] => {
    const selectors = all(given, 'match[]')
    return selectors.length > 0 ? selectors : ['{}']
  }
  function series(request: FastifyRequest, given: Parameters, now: number): Promise<Answer> {
    required(given, 'match[]')
    return list('series', { request, given, now }, all(given, 'match[]'))
  }
  /** We keep none, but a faulty question is one all the same. */
  function exemplars(request: FastifyRequest, given: Parameters): Answer {
    backend.require()
    const { clusters, rightsOf } = promQlScope(parts, request)
    narrowQuery(required(given, 'query'), clusters, rightsOf)
    return success([])
  }

  route(app, parts, promQlSeries, ({ request, query, now }) => series(request, query, now))
  route(forms, parts, byForm(promQlSeries), ({ request, now }) => series(request, formOf(request), now))
  route(app, parts, promQlLabels, ({ request, query, now }) =>
    list('labels', { request, given: query, now }, selectorsOf(query)),
  )
  route(forms, parts, byForm(promQlLabels), ({ request, now }) => {
    const given = formOf(request)
    return list('labels', { request, given, now }, selectorsOf(given))
  })
  route(app, parts, promQlLabelValues, ({ request, params, query, now }) => {
    if (!labelName.test(params.label))
      throw new RefusedError('invalid_parameter', `invalid label name: ${JSON.stringify(params.label.slice(0, 64))}`)
    return list(`label/${params.label}/values`, { request, given: query, now }, selectorsOf(query))
  })
  route(app, parts, promQlExemplars, ({ request, query }) => exemplars(request, query))
  route(forms, parts, byForm(promQlExemplars), ({ request }) => exemplars(request, formOf(request)))
  route(app, parts, promQlMetadata, ({ request, query }) => {
    backend.require()
    const wanted = first(query, 'metric')
    const metrics = metadata(parts, request).filter(([name]) => wanted === undefined || name === wanted)
    const perMetric = limitOf(query, 'limit_per_metric')
    const { list: shown } = within(metrics, limitOf(query))
    return success(Object.fromEntries(shown.map(([name, facts]) => [name, facts.slice(0, perMetric)])))
  })
  route(app, parts, promQlRules, () => {
    backend.require()
    return success({ groups: [] })
  })
  route(app, parts, promQlBuildInfo, () => {
    backend.require()
    return success(buildInfo)
  })
}

/** Tools choose by the version what they ask: this is the API that is answered here, not a build of Prometheus. */
const buildInfo = {
  version: '2.55.0',
  revision: '',
  branch: '',
  buildUser: 'clusterpulse',
  buildDate: '',
  goVersion: '',
}

type Metadata = readonly { readonly type: 'gauge'; readonly help: string; readonly unit: string }[]

function metadata(parts: Parts, request: FastifyRequest): readonly (readonly [name: string, facts: Metadata])[] {
  const accessView = accessViewOf(request)
  const declared = listedAggregations(parts, accessView, wholeOf(parts, accessView)).flatMap(({ source, names }) =>
    names.map((name) => [name, source] as const),
  )
  const custom = new Map<string, string[]>()
  for (const [name, source] of declared) custom.set(name, [...new Set([...(custom.get(name) ?? []), source])])
  return [
    ...metricsCatalogue.map(({ scope, name, title, unit }): readonly [string, Metadata] => [
      metricPrefix[scope] + name,
      [{ type: 'gauge', help: title, unit: unit === 'count' || unit === 'flag' ? '' : unit }],
    ]),
    ...[...custom].map(([name, sources]): readonly [string, Metadata] => [
      metricPrefix.custom + name,
      sources.map((source) => ({ type: 'gauge', help: `declared by ${source}`, unit: '' })),
    ]),
  ]
}
