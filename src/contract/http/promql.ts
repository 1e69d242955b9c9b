import { type Static, Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { Name } from './parameters.ts'

/** What Prometheus answers; `data` is passed on as the backend gave it. */
export const PromQlAnswerSchema = Type.Object({
  status: Type.Literal('success'),
  data: Type.Object({ resultType: Type.String(), result: Type.Unknown() }),
  warnings: Type.Optional(Type.Array(Type.String())),
})
export type PromQlAnswer = Static<typeof PromQlAnswerSchema>

const NamesAnswer = Type.Object({ status: Type.Literal('success'), data: Type.Array(Type.String()) })

const Parameter = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }))
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
})
const RangeQuery = Type.Object({
  query: Query,
  start: Parameter('required: Unix seconds or RFC 3339'),
  end: Parameter('required: Unix seconds or RFC 3339'),
  step: Parameter('required: seconds or a duration'),
  timeout: Parameter('at most 30s'),
})

const instant = { summary: 'PromQL at one moment, within the clusters of the caller', response: PromQlAnswerSchema }
const range = { summary: 'PromQL over a range, within the clusters of the caller', response: PromQlAnswerSchema }

export const promQlQuery = {
  method: 'GET',
  url: '/api/v1/query',
  access: 'filtered',
  schema: { operationId: 'promQlQuery', querystring: InstantQuery, ...instant },
} as const satisfies RouteContract

export const promQlQueryForm = {
  method: 'POST',
  url: '/api/v1/query',
  access: 'filtered',
  schema: { operationId: 'promQlQueryForm', form: InstantQuery, ...instant },
} as const satisfies RouteContract

export const promQlRange = {
  method: 'GET',
  url: '/api/v1/query_range',
  access: 'filtered',
  schema: { operationId: 'promQlRange', querystring: RangeQuery, ...range },
} as const satisfies RouteContract

export const promQlRangeForm = {
  method: 'POST',
  url: '/api/v1/query_range',
  access: 'filtered',
  schema: { operationId: 'promQlRangeForm', form: RangeQuery, ...range },
} as const satisfies RouteContract

export const promQlLabels = {
  method: 'GET',
  url: '/api/v1/labels',
  access: 'filtered',
  schema: { operationId: 'promQlLabels', summary: 'Names of the labels that our metrics carry', response: NamesAnswer },
} as const satisfies RouteContract

export const promQlLabelValues = {
  method: 'GET',
  url: '/api/v1/label/:label/values',
  access: 'filtered',
  schema: {
    operationId: 'promQlLabelValues',
    summary: 'Values of a label as the fleet has them now, of what the caller may see',
    params: Type.Object({ label: Name('label') }),
    response: NamesAnswer,
  },
} as const satisfies RouteContract
