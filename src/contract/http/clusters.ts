import { Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { ClusterParams, Filter, InSet, PageQuery, SortBy } from './parameters.ts'
import { ClusterViewSchema, HealthSchema, PageOf } from './views.ts'

export const listClusters = {
  method: 'GET',
  url: '/api/v2/clusters',
  access: 'filtered',
  schema: {
    operationId: 'listClusters',
    summary: 'Clusters of the fleet with health, age, capacity and counts',
    querystring: Type.Object({
      health: Type.Optional(HealthSchema),
      stale: Type.Optional(Type.Boolean()),
      label: Filter('`key=value`: only clusters with this label'),
      ...InSet,
      sort: SortBy('name', 'health', 'nodes', 'cpu', 'memory', 'checkedAt'),
      ...PageQuery,
    }),
    response: PageOf(ClusterViewSchema),
  },
} as const satisfies RouteContract

export const getCluster = {
  method: 'GET',
  url: '/api/v2/clusters/:name',
  access: 'filtered',
  schema: {
    operationId: 'getCluster',
    summary: 'One cluster',
    params: ClusterParams,
    response: ClusterViewSchema,
  },
} as const satisfies RouteContract
