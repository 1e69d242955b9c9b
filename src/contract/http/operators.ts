import { Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { ClusterParams, Filter, PageQuery, SortBy } from './parameters.ts'
import { ClusterOperatorViewSchema, OperatorViewSchema, PageOf } from './views.ts'

export const listOperators = {
  method: 'GET',
  url: '/api/v2/clusters/:name/operators',
  access: 'filtered',
  schema: {
    operationId: 'listOperators',
    summary: 'Operators that OLM installed in one cluster',
    params: ClusterParams,
    querystring: Type.Object({
      namespace: Filter('only operators available in this namespace'),
      status: Filter('only operators in this phase'),
      sort: SortBy('name', 'displayName', 'status'),
      ...PageQuery,
    }),
    response: PageOf(OperatorViewSchema),
  },
} as const satisfies RouteContract

export const listClusterOperators = {
  method: 'GET',
  url: '/api/v2/clusters/:name/cluster-operators',
  access: 'filtered',
  schema: {
    operationId: 'listClusterOperators',
    summary: 'OpenShift cluster operators of one cluster',
    params: ClusterParams,
    querystring: Type.Object({
      degraded: Type.Optional(Type.Boolean()),
      available: Type.Optional(Type.Boolean()),
      sort: SortBy('name'),
      ...PageQuery,
    }),
    response: PageOf(ClusterOperatorViewSchema),
  },
} as const satisfies RouteContract
