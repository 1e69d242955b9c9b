import { Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { ClusterParams, Filter, PageQuery, SortBy } from './parameters.ts'
import { DeploymentViewSchema, NamespaceViewSchema, PageOf } from './views.ts'

export const listNamespaces = {
  method: 'GET',
  url: '/api/v2/clusters/:name/namespaces',
  access: 'filtered',
  schema: {
    operationId: 'listNamespaces',
    summary: 'Namespaces of one cluster with their pods and deployments',
    params: ClusterParams,
    querystring: Type.Object({
      phase: Filter('Active or Terminating'),
      sort: SortBy('name', 'pods', 'deployments'),
      ...PageQuery,
    }),
    response: PageOf(NamespaceViewSchema),
  },
} as const satisfies RouteContract

export const listDeployments = {
  method: 'GET',
  url: '/api/v2/clusters/:name/deployments',
  access: 'filtered',
  schema: {
    operationId: 'listDeployments',
    summary: 'Deployments of one cluster',
    params: ClusterParams,
    querystring: Type.Object({
      namespace: Filter('only deployments of this namespace'),
      sort: SortBy('name', 'replicas', 'ready'),
      ...PageQuery,
    }),
    response: PageOf(DeploymentViewSchema),
  },
} as const satisfies RouteContract
