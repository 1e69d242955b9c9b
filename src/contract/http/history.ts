import { type Static, Type } from 'typebox'

/** A stretch in which numbers came another way, or will never come. */
export const SpanViewSchema = Type.Object({
  kind: Type.Union([Type.Literal('repaired'), Type.Literal('lost'), Type.Literal('pulled')]),
  from: Type.Integer({ description: 'ms since the Unix epoch' }),
  to: Type.Integer({ description: 'ms since the Unix epoch' }),
  cause: Type.String({ description: 'of a loss: thinned, dropped or damaged' }),
  count: Type.Integer({ description: 'batches' }),
})
export type SpanView = Static<typeof SpanViewSchema>

export const SeriesViewSchema = Type.Object({
  metric: Type.String({ description: 'without prefix, as asked' }),
  labels: Type.Record(Type.String(), Type.String()),
  points: Type.Array(Type.Tuple([Type.Number(), Type.Union([Type.Number(), Type.Null()])]), {
    description: '[Unix seconds, value or null]; equally spaced by step',
  }),
})

/** GET /api/v1/clusters/{name}/metrics/history and …/nodes/{node}/metrics/history */
export const HistoryViewSchema = Type.Object({
  metrics: Type.Array(Type.Object({ name: Type.String(), unit: Type.String(), title: Type.String() })),
  start: Type.Number({ description: 'Unix seconds' }),
  end: Type.Number({ description: 'Unix seconds' }),
  step: Type.Number({ description: 'seconds' }),
  series: Type.Array(SeriesViewSchema),
  spans: Type.Array(SpanViewSchema),
})
export type HistoryView = Static<typeof HistoryViewSchema>
