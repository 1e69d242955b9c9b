import { Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { ClusterParams, Filter, Name, PageQuery, SortBy } from './parameters.ts'
import { NodeViewSchema, PageOf } from './views.ts'

export const listNodes = {
  method: 'GET',
  url: '/api/v2/clusters/:name/nodes',
  access: 'filtered',
  schema: {
    operationId: 'listNodes',
    summary: 'Nodes of one cluster',
    params: ClusterParams,
    querystring: Type.Object({
      role: Filter('only nodes with this role'),
      ready: Type.Optional(Type.Union([Type.Literal('ready'), Type.Literal('notReady'), Type.Literal('unknown')])),
      sort: SortBy('name', 'ready', 'cpu', 'memory', 'pods'),
      ...PageQuery,
    }),
    response: PageOf(NodeViewSchema),
  },
} as const satisfies RouteContract

export const getNode = {
  method: 'GET',
  url: '/api/v2/clusters/:name/nodes/:node',
  access: 'filtered',
  schema: {
    operationId: 'getNode',
    summary: 'One node',
    params: Type.Object({ name: Name('cluster'), node: Name('node') }),
    response: NodeViewSchema,
  },
} as const satisfies RouteContract
