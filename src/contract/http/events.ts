import { Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { ClusterParams, Filter, PageQuery } from './parameters.ts'
import { EventViewSchema, PageOf } from './views.ts'

export const listEvents = {
  method: 'GET',
  url: '/api/v2/clusters/:name/events',
  access: 'filtered',
  schema: {
    operationId: 'listEvents',
    summary: 'What happened to one cluster, newest first',
    params: ClusterParams,
    querystring: Type.Object({
      type: Filter('only events of this type'),
      limit: PageQuery.limit,
      cursor: PageQuery.cursor,
    }),
    response: PageOf(EventViewSchema),
  },
} as const satisfies RouteContract

export const openStream = {
  method: 'GET',
  url: '/api/v1/stream',
  access: 'filtered',
  contentType: 'text/event-stream',
  schema: {
    operationId: 'openStream',
    summary:
      'Server-sent events: a snapshot, then changes. Administrators resume after Last-Event-ID; for others, from whom something may be hidden, it begins with a new snapshot',
    querystring: Type.Object({
      cluster: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
          maxItems: 32,
          description: 'also rows and events of these clusters',
        }),
      ),
      type: Type.Optional(
        Type.Array(Type.Enum(['node', 'namespace', 'deployment', 'operator', 'clusterOperator']), {
          maxItems: 5,
          description: 'which rows; none without it',
        }),
      ),
      lastEventId: Type.Optional(
        Type.String({ maxLength: 500, description: 'as the header Last-Event-ID, for clients that cannot set it' }),
      ),
    }),
    response: Type.String({ description: 'see StreamMessage' }),
  },
} as const satisfies RouteContract
