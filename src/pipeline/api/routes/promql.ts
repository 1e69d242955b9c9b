import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { HistoryStore } from '#history'
import { byForm, promQlQuery, promQlRange } from '#http'
import { type Cors, requireSameSite } from '../gate.ts'
import { RefusedError } from '../problem.ts'
import { narrowQuery, type ResultType, resultTypeOf, textOf } from '../promql.ts'
import { success, within } from '../promql-answer.ts'
import { PromQlBackend, type PromQlData } from '../promql-backend.ts'
import { durationOf, formOf, inSeconds, limitOf, type Parameters, required, takeForms, timeOf } from '../promql-form.ts'
import { promQlScope } from '../promql-rights.ts'
import { type Answer, type Parts, route } from '../route.ts'
import { promQlLists } from './promql-lists.ts'

/** As Prometheus itself refuses more. */
const maxPoints = 11_000

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
  const backend = new PromQlBackend(history)

  async function instant(request: FastifyRequest, given: Parameters, now: number): Promise<Answer> {
    backend.require()
    const { clusters, rightsOf } = promQlScope(parts, request)
    const text = required(given, 'query')
    const at = timeOf(given, 'time') ?? now
    const limit = limitOf(given)
    const query = narrowQuery(text, clusters, rightsOf)
    const type = resultTypeOf(text)
    if (type === 'string') return success({ resultType: 'string', result: [at / 1000, textOf(text)] })
    const answer = await backend.ask('query', { query, time: inSeconds(at) }, given)
    return type === 'scalar' ? success(scalarOf(answer, at), answer.warnings) : limited(answer, limit)
  }

  async function range(request: FastifyRequest, given: Parameters): Promise<Answer> {
    backend.require()
    const { clusters, rightsOf } = promQlScope(parts, request)
    const text = required(given, 'query')
    const times = rangeOf(given)
    const limit = limitOf(given)
    const query = narrowQuery(text, clusters, rightsOf)
    requireRangeType(resultTypeOf(text))
    return limited(await backend.ask('query_range', { query, ...times }, given), limit)
  }

  route(app, parts, promQlQuery, ({ request, query, now }) => instant(request, query, now))
  route(app, parts, promQlRange, ({ request, query }) => range(request, query))
  app.register(async (forms: FastifyInstance) => {
    takeForms(forms)
    const formOfSite = (request: FastifyRequest): Parameters => {
      requireSameSite(request, cors)
      return formOf(request.query, request.body)
    }
    route(forms, parts, byForm(promQlQuery), ({ request, now }) => instant(request, formOfSite(request), now))
    route(forms, parts, byForm(promQlRange), ({ request }) => range(request, formOfSite(request)))
    promQlLists(app, forms, parts, { backend, formOf: formOfSite })
  })
}

function rangeOf(given: Parameters): Record<string, string> {
  for (const name of ['start', 'end', 'step']) required(given, name)
  const [start, end] = [timeOf(given, 'start') ?? 0, timeOf(given, 'end') ?? 0]
  const step = durationOf(given, 'step') ?? 0
  if (end < start) throw new RefusedError('invalid_parameter', 'end is before start')
  if (step <= 0) throw new RefusedError('invalid_parameter', 'step is not above zero')
  if ((end - start) / step > maxPoints)
    throw new RefusedError('too_many_points', `more than ${maxPoints} points per series: use a longer step`)
  return { start: inSeconds(start), end: inSeconds(end), step: inSeconds(step) }
}

/** As Prometheus says it. */
function requireRangeType(type: ResultType): void {
  if (type === 'scalar' || type === 'vector') return
  const name = type === 'matrix' ? 'range vector' : type
  throw new RefusedError(
    'query_refused',
    `invalid expression type "${name}" for range query, must be Scalar or instant Vector`,
  )
}

/** The backend answers a scalar as a vector of one without labels, and NaN as none. */
function scalarOf({ data }: PromQlData, at: number): unknown {
  const { result } = (data ?? {}) as { readonly result?: readonly { readonly value?: unknown }[] }
  return { resultType: 'scalar', result: (Array.isArray(result) && result[0]?.value) || [at / 1000, 'NaN'] }
}

function limited({ data, warnings }: PromQlData, limit: number): Answer {
  const { result } = (data ?? {}) as { readonly result?: unknown }
  if (!Array.isArray(result) || result.length <= limit) return success(data, warnings)
  const cut = within(result, limit, warnings)
  return success({ ...(data as object), result: cut.list }, cut.warnings)
}
