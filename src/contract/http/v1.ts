import { Type } from 'typebox'
import type { RouteContract } from './contract.ts'
import { ClusterParams, Filter, Name } from './parameters.ts'

/**
 * The documented routes that existing clients know: bare arrays, snake_case documents as they lie in the store. Unknown query
 * parameters are ignored, as they always were. Lists are never null and always sorted.
 */
const Document = (description: string) =>
  Type.Object({}, { additionalProperties: true, description: `${description}; readers ignore unknown fields` })

const ClusterDocument = {
  name: Type.String(),
  spec: Document('displayName, endpoint, labels, monitoring'),
  info: Document('api_url, version, platform and more'),
  metrics: Document(
    'nodes, nodes_ready, pods, pods_running, cpu_capacity, memory_capacity and more, summed over what the caller sees; what could not be read is left out; where that is not all, `filtered` is true and `filter_metadata` says by which filters',
  ),
  status: Document('health, message, last_check, stale'),
  operator_count: Type.Optional(Type.Integer({ description: 'left out where operators could not be read' })),
  freshness: Document('observed_at and received_at of the nodes; source'),
}

export const v1ListClusters = {
  method: 'GET',
  url: '/api/v1/clusters',
  access: 'filtered',
  schema: {
    operationId: 'v1ListClusters',
    summary: 'Clusters the caller may see, by name',
    response: Type.Array(Type.Object({ ...ClusterDocument, accessible: Type.Boolean() })),
  },
} as const satisfies RouteContract

export const v1GetCluster = {
  method: 'GET',
  url: '/api/v1/clusters/:name',
  access: 'filtered',
  schema: {
    operationId: 'v1GetCluster',
    summary: 'One cluster',
    params: ClusterParams,
    response: Type.Object(ClusterDocument),
  },
} as const satisfies RouteContract

export const v1ListNodes = {
  method: 'GET',
  url: '/api/v1/clusters/:name/nodes',
  access: 'filtered',
  schema: {
    operationId: 'v1ListNodes',
    summary: 'Nodes of one cluster, by name; fields of what the caller may not see are left out',
    params: ClusterParams,
    querystring: Type.Object({ role: Filter('exact'), status: Filter('exact') }),
    response: Type.Array(Document('node')),
  },
} as const satisfies RouteContract

export const v1GetNode = {
  method: 'GET',
  url: '/api/v1/clusters/:name/nodes/:node',
  access: 'filtered',
  schema: {
    operationId: 'v1GetNode',
    summary: 'One node; with its last samples, newest first, where `include_metrics` is exactly `true`',
    params: Type.Object({ name: Name('cluster'), node: Name('node') }),
    querystring: Type.Object({ include_metrics: Filter('true') }),
    response: Document('node'),
  },
} as const satisfies RouteContract

export const v1ListOperators = {
  method: 'GET',
  url: '/api/v1/clusters/:name/operators',
  access: 'filtered',
  schema: {
    operationId: 'v1ListOperators',
    summary: 'Operators that OLM installed in one cluster',
    params: ClusterParams,
    querystring: Type.Object({ namespace: Filter('available in this namespace'), status: Filter('exact') }),
    response: Type.Array(Document('operator')),
  },
} as const satisfies RouteContract

export const v1ListClusterOperators = {
  method: 'GET',
  url: '/api/v1/clusters/:name/cluster-operators',
  access: 'filtered',
  schema: {
    operationId: 'v1ListClusterOperators',
    summary: 'OpenShift cluster operators of one cluster',
    params: ClusterParams,
    response: Type.Array(Document('cluster operator')),
  },
} as const satisfies RouteContract

export const v1ListNamespaces = {
  method: 'GET',
  url: '/api/v1/clusters/:name/namespaces',
  access: 'filtered',
  schema: {
    operationId: 'v1ListNamespaces',
    summary: 'Names of namespaces; with counts when asked with exactly `true`',
    params: ClusterParams,
    querystring: Type.Object({ with_operator_count: Filter('true'), with_resource_counts: Filter('true') }),
    response: Type.Array(
      Type.Union([Type.String(), Document('name, operator_count, resource_counts, total_resources')]),
    ),
  },
} as const satisfies RouteContract

export const v1ListAlerts = {
  method: 'GET',
  url: '/api/v1/clusters/:name/alerts',
  access: 'filtered',
  schema: {
    operationId: 'v1ListAlerts',
    summary: 'Alerts of one cluster as flat maps of text',
    params: ClusterParams,
    querystring: Type.Object({ severity: Filter('exact') }),
    response: Type.Array(Type.Record(Type.String(), Type.String())),
  },
} as const satisfies RouteContract

export const v1ListEvents = {
  method: 'GET',
  url: '/api/v1/clusters/:name/events',
  access: 'filtered',
  schema: {
    operationId: 'v1ListEvents',
    summary: 'What happened to one cluster, newest first',
    params: ClusterParams,
    querystring: Type.Object({ limit: Filter('1 to 10000; 100 where it is no such number') }),
    response: Type.Array(Document('type, cluster, timestamp, data')),
  },
} as const satisfies RouteContract

export const routesV1: readonly RouteContract[] = [
  v1ListClusters,
  v1GetCluster,
  v1ListNodes,
  v1GetNode,
  v1ListOperators,
  v1ListClusterOperators,
  v1ListNamespaces,
  v1ListAlerts,
  v1ListEvents,
]
