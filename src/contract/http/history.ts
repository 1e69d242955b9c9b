import { type Static, Type } from 'typebox'
import { bufferCauses, holeCauses } from '#model'
import type { RouteContract } from './contract.ts'
import { ClusterParams, Name } from './parameters.ts'

/** A stretch in which numbers came another way, will never come, or were made up. */
export const SpanViewSchema = Type.Object({
  kind: Type.Union(
    [Type.Literal('repaired'), Type.Literal('lost'), Type.Literal('pulled'), Type.Literal('simulated')],
    { description: 'simulated: nothing was measured, the numbers were made up for the demonstration' },
  ),
  from: Type.Integer({ description: 'ms since the Unix epoch' }),
  to: Type.Integer({ description: 'ms since the Unix epoch' }),
  cause: Type.String({ description: `of a loss: ${[...bufferCauses, ...holeCauses].join(', ')}` }),
  count: Type.Integer({ description: 'batches' }),
})
/** A stretch of time in which numbers came late, another way, or not at all. */
export type SpanView = Static<typeof SpanViewSchema>

export const SeriesViewSchema = Type.Object({
  metric: Type.String({ description: 'without prefix, as asked' }),
  labels: Type.Record(Type.String(), Type.String()),
  points: Type.Array(Type.Tuple([Type.Number(), Type.Union([Type.Number(), Type.Null()])]), {
    description: '[Unix seconds, value or null]; equally spaced by step',
  }),
})

/** The past of a demonstration while it is being made up, newest first. */
export const FillingViewSchema = Type.Object(
  {
    from: Type.Integer({ description: 'ms since the Unix epoch: as far back as it will reach' }),
    reached: Type.Integer({ description: 'ms: as far back as it is there by now; what lies before is missing still' }),
    to: Type.Integer({ description: 'ms: where it ends, and what was measured begins' }),
  },
  { description: 'the simulated past is being filled, and the range reaches into what of it is missing still' },
)
/** How far a past that is being made up has come. */
export type FillingView = Static<typeof FillingViewSchema>

/** GET /api/v1/clusters/{name}/metrics/history and …/nodes/{node}/metrics/history */
export const HistoryViewSchema = Type.Object({
  metrics: Type.Array(Type.Object({ name: Type.String(), unit: Type.String(), title: Type.String() })),
  start: Type.Number({ description: 'Unix seconds' }),
  end: Type.Number({ description: 'Unix seconds' }),
  step: Type.Number({ description: 'seconds' }),
  series: Type.Array(SeriesViewSchema),
  spans: Type.Array(SpanViewSchema),
  filling: Type.Optional(FillingViewSchema),
  begins: Type.Optional(
    Type.Integer({
      description:
        'ms since the Unix epoch, the beginning of a step: nothing is kept from before, though the range reaches further back',
    }),
  ),
})
/** Values of metrics over time, with the spans in which they are missing or came another way. */
export type HistoryView = Static<typeof HistoryViewSchema>

/** More points per series than this are refused with a step that would do. */
export const maxHistoryPoints = 2000
/** More series per answer than this are refused. */
export const maxHistorySeries = 50

const Text = (maxLength: number, description: string) => Type.Optional(Type.String({ maxLength, description }))
const HistoryQuery = {
  metric: Text(2000, 'required: one name or several with commas between; no prefix'),
  range: Text(32, '5m to 30d, such as 90m, 1h30m or 7d; default 1h; with `start` or `end` it gives the other'),
  start: Text(40, 'Unix seconds or RFC 3339'),
  end: Text(40, 'Unix seconds or RFC 3339; default now'),
  step: Text(32, 'seconds or a duration; default max(collection interval, range/300), rounded up to a friendly one'),
  format: Type.Optional(
    Type.Union([Type.Literal('json'), Type.Literal('csv')], {
      description: 'csv: one row per time and thing, one column per metric; also by Accept: text/csv',
    }),
  ),
}

export const v1ClusterHistory = {
  method: 'GET',
  url: '/api/v1/clusters/:name/metrics/history',
  access: 'filtered',
  schema: {
    operationId: 'v1ClusterHistory',
    summary:
      'Metrics of one cluster over time; refused to callers who see only part of it (history_filtered) or may not see measurements (metrics_not_permitted)',
    params: ClusterParams,
    querystring: Type.Object(HistoryQuery),
    response: HistoryViewSchema,
  },
} as const satisfies RouteContract

export const v1NodeHistory = {
  method: 'GET',
  url: '/api/v1/clusters/:name/nodes/:node/metrics/history',
  access: 'filtered',
  schema: {
    operationId: 'v1NodeHistory',
    summary: 'Metrics of one node over time; without those that are summed over pods the caller may not see',
    params: Type.Object({ name: Name('cluster'), node: Name('node') }),
    querystring: Type.Object(HistoryQuery),
    response: HistoryViewSchema,
  },
} as const satisfies RouteContract

/** Several things of one cluster side by side. */
export const getHistory = {
  method: 'GET',
  url: '/api/v2/clusters/:name/history',
  access: 'filtered',
  schema: {
    operationId: 'getHistory',
    summary: 'Metrics of all or some nodes or operators of one cluster over time',
    params: ClusterParams,
    querystring: Type.Object({
      scope: Type.Optional(
        Type.Enum(['cluster', 'node', 'operator', 'clusterOperator'], { default: 'node', description: 'what of it' }),
      ),
      key: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
          maxItems: maxHistorySeries,
          description: 'names (repeatable); without it all that the caller may see',
        }),
      ),
      ...HistoryQuery,
    }),
    response: HistoryViewSchema,
  },
} as const satisfies RouteContract

/** Aggregations of a MetricSource; metric names are those of its aggregations. */
export const typeHistory = {
  method: 'GET',
  url: '/api/v2/clusters/:name/types/:type/history',
  access: 'filtered',
  schema: {
    operationId: 'typeHistory',
    summary:
      'Aggregations of one type on one cluster over time; refused to callers who see only some of its rows (history_filtered)',
    params: Type.Object({ name: Name('cluster'), type: Name('resource type') }),
    querystring: Type.Object({
      source: Text(507, 'where several MetricSources have this type name: namespace/name of the one'),
      ...HistoryQuery,
    }),
    response: HistoryViewSchema,
  },
} as const satisfies RouteContract
