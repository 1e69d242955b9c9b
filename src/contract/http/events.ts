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

const StreamQuery = {
  cluster: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
      maxItems: 32,
      description: 'also rows and events of these clusters',
    }),
  ),
  type: Type.Optional(
    Type.Array(Type.Enum(['node', 'namespace', 'deployment', 'operator', 'clusterOperator']), {
      maxItems: 5,
      description: 'which of these rows; none without it',
    }),
  ),
  clusters: Type.Optional(
    Type.Boolean({ default: true, description: 'false: rows alone, no clusters nor their events' }),
  ),
  rows: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 8192 }), {
      maxItems: 16,
      description:
        '`<type>?<query>`: rows of any kind over the fleet, with the words of GET /api/v2/rows/<type> (cluster, source, namespace, labels, q, where, sort, order, limit), URL-encoded as one value. With `limit` the first rows in order and how many there are, and what becomes of others that `also=<cluster>/<id>` names (up to 100 times); without it all, up to 50 000 (repeatable: several queries over one connection)',
    }),
  ),
  lastEventId: Type.Optional(
    Type.String({ maxLength: 2000, description: 'as the header Last-Event-ID, for clients that cannot set it' }),
  ),
}

export const openStream = {
  method: 'GET',
  url: '/api/v1/stream',
  access: 'filtered',
  contentType: 'text/event-stream',
  schema: {
    operationId: 'openStream',
    summary:
      'Server-sent events: a snapshot, then changes; resumes after Last-Event-ID where the caller still sees and asks the same',
    querystring: Type.Object(StreamQuery),
    response: Type.String({ description: 'see StreamMessage' }),
  },
} as const satisfies RouteContract

export const openStreamSocket = {
  method: 'GET',
  url: '/api/v1/stream/ws',
  access: 'filtered',
  contentType: 'text/event-stream',
  schema: {
    operationId: 'openStreamSocket',
    summary:
      'The same over WebSocket: one JSON message per event, with `kind` and, where there is one, `id`. What a client sends is ignored',
    querystring: Type.Object(StreamQuery),
    response: Type.String({ description: 'see StreamMessage' }),
  },
} as const satisfies RouteContract
