import { type Static, Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { Name } from './parameters.ts'

/** What Prometheus answers; `data` is passed on as the backend gave it. */
export const PromQlAnswerSchema = Type.Object({
  status: Type.Literal('success'),
  data: Type.Object({ resultType: Type.String(), result: Type.Unknown() }),
  warnings: Type.Optional(Type.Array(Type.String())),
})
/** The answer of a PromQL query in the shape of the HTTP API of Prometheus. */
export type PromQlAnswer = Static<typeof PromQlAnswerSchema>

const NamesAnswer = Type.Object({
  status: Type.Literal('success'),
  data: Type.Array(Type.String()),
  warnings: Type.Optional(Type.Array(Type.String())),
})

const Parameter = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }))
const Limit = Type.Optional(
  Type.String({ pattern: '^\\d{1,9}$', description: 'at most so many, with a warning where there are more; 0: all' }),
)
const Query = Type.Optional(
  Type.String({
    maxLength: 8192,
    description: 'required: PromQL; every selector is narrowed to the clusters whose measurements the caller may see',
  }),
)
const InstantQuery = Type.Object({
  query: Query,
  time: Parameter('Unix seconds or RFC 3339; default now'),
  timeout: Parameter('at most 30s'),
  limit: Limit,
})
const RangeQuery = Type.Object({
  query: Query,
  start: Parameter('required: Unix seconds or RFC 3339'),
  end: Parameter('required: Unix seconds or RFC 3339'),
  step: Parameter('required: seconds or a duration'),
  timeout: Parameter('at most 30s'),
  limit: Limit,
})

export const promQlQuery = {
  method: 'GET',
  url: '/api/v1/query',
  access: 'filtered',
  schema: {
    operationId: 'promQlQuery',
    querystring: InstantQuery,
    summary: 'PromQL at one moment, within the clusters of the caller',
    response: PromQlAnswerSchema,
  },
} as const satisfies RouteContract

export const promQlRange = {
  method: 'GET',
  url: '/api/v1/query_range',
  access: 'filtered',
  schema: {
    operationId: 'promQlRange',
    querystring: RangeQuery,
    summary: 'PromQL over a range, within the clusters of the caller',
    response: PromQlAnswerSchema,
  },
} as const satisfies RouteContract

/** `match[]` may stand several times; `start` and `end` count by whole days (UTC), which is how the backend's index knows series. */
const Listing = Type.Object({
  'match[]': Type.Optional(
    Type.Array(Type.String({ maxLength: 8192 }), {
      description: 'series selectors, each narrowed like a query; without one all series of the caller',
    }),
  ),
  start: Parameter('Unix seconds or RFC 3339, by whole days (UTC); default the beginning'),
  end: Parameter('Unix seconds or RFC 3339, by whole days (UTC); default now'),
  limit: Limit,
})
const Exemplars = Type.Object({ query: Query, start: Parameter('taken, without effect'), end: Parameter('the same') })

const SeriesAnswer = Type.Object({
  status: Type.Literal('success'),
  data: Type.Array(Type.Record(Type.String(), Type.String())),
  warnings: Type.Optional(Type.Array(Type.String())),
})

export const promQlSeries = {
  method: 'GET',
  url: '/api/v1/series',
  access: 'filtered',
  schema: {
    operationId: 'promQlSeries',
    querystring: Listing,
    summary: 'Series by selectors, within the clusters of the caller',
    response: SeriesAnswer,
  },
} as const satisfies RouteContract

export const promQlLabels = {
  method: 'GET',
  url: '/api/v1/labels',
  access: 'filtered',
  schema: {
    operationId: 'promQlLabels',
    querystring: Listing,
    summary: 'Names of the labels of the series that the caller may ask for',
    response: NamesAnswer,
  },
} as const satisfies RouteContract

export const promQlLabelValues = {
  method: 'GET',
  url: '/api/v1/label/:label/values',
  access: 'filtered',
  schema: {
    operationId: 'promQlLabelValues',
    summary: 'Values of a label of the series that the caller may ask for',
    params: Type.Object({ label: Name('label') }),
    querystring: Listing,
    response: NamesAnswer,
  },
} as const satisfies RouteContract

export const promQlExemplars = {
  method: 'GET',
  url: '/api/v1/query_exemplars',
  access: 'filtered',
  schema: {
    operationId: 'promQlExemplars',
    querystring: Exemplars,
    summary: 'Exemplars: none are kept',
    response: Type.Object({ status: Type.Literal('success'), data: Type.Array(Type.Unknown(), { maxItems: 0 }) }),
  },
} as const satisfies RouteContract

export const promQlMetadata = {
  method: 'GET',
  url: '/api/v1/metadata',
  access: 'filtered',
  schema: {
    operationId: 'promQlMetadata',
    summary: 'Our metrics with type, unit and a sentence; aggregations as far as the caller may have them',
    querystring: Type.Object({
      metric: Type.Optional(Type.String({ maxLength: 1024, description: 'only this one' })),
      limit: Limit,
      limit_per_metric: Limit,
    }),
    response: Type.Object({
      status: Type.Literal('success'),
      data: Type.Record(
        Type.String(),
        Type.Array(Type.Object({ type: Type.Literal('gauge'), help: Type.String(), unit: Type.String() })),
      ),
    }),
  },
} as const satisfies RouteContract

export const promQlRules = {
  method: 'GET',
  url: '/api/v1/rules',
  access: 'authenticated',
  schema: {
    operationId: 'promQlRules',
    summary: 'Rules of a Prometheus: the hub evaluates none',
    response: Type.Object({
      status: Type.Literal('success'),
      data: Type.Object({ groups: Type.Array(Type.Unknown(), { maxItems: 0 }) }),
    }),
  },
} as const satisfies RouteContract

const BuildFact = Type.String()
export const promQlBuildInfo = {
  method: 'GET',
  url: '/api/v1/status/buildinfo',
  access: 'authenticated',
  schema: {
    operationId: 'promQlBuildInfo',
    summary: 'Which version of the HTTP API of Prometheus is answered, for tools that ask by it',
    response: Type.Object({
      status: Type.Literal('success'),
      data: Type.Object({
        version: BuildFact,
        revision: BuildFact,
        branch: BuildFact,
        buildUser: BuildFact,
        buildDate: BuildFact,
        goVersion: BuildFact,
      }),
    }),
  },
} as const satisfies RouteContract

/** The same question in the body of a POST, as a form: for queries that are too long for an address. */
export function byForm({ url, access, schema: { operationId, querystring, ...schema } }: RouteContract): RouteContract {
  return {
    method: 'POST',
    url,
    access,
    schema: { ...schema, operationId: `${operationId}Form`, ...(querystring && { form: querystring }) },
  }
}

/** What is answered of the HTTP API of Prometheus. */
export const routesPromQl: readonly RouteContract[] = [
  promQlQuery,
  byForm(promQlQuery),
  promQlRange,
  byForm(promQlRange),
  promQlLabels,
  promQlBuildInfo,
  promQlExemplars,
  byForm(promQlExemplars),
  byForm(promQlLabels),
  promQlMetadata,
  promQlRules,
  promQlSeries,
  byForm(promQlSeries),
  promQlLabelValues,
]
