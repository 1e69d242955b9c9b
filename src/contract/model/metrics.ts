/** What a metric is about, and which label names it beside `cluster`. */
export type MetricScope = 'cluster' | 'node' | 'operator' | 'clusterOperator' | 'custom'

/** The label that names the thing within its cluster; the cluster itself needs none. */
export const scopeLabel: Readonly<Record<MetricScope, string | null>> = {
  cluster: null,
  node: 'node',
  operator: 'operator',
  clusterOperator: 'operator',
  custom: 'source',
}

/** What the names of a scope begin with in PromQL. */
export const metricPrefix: Readonly<Record<MetricScope, string>> = {
  cluster: 'clusterpulse_cluster_',
  node: 'clusterpulse_node_',
  operator: 'clusterpulse_operator_',
  clusterOperator: 'clusterpulse_cluster_operator_',
  custom: 'clusterpulse_custom_resource_',
}

/** Units of metrics; `flag` is 0 or 1. */
export type MetricUnit = 'cores' | 'bytes' | 'percent' | 'count' | 'flag'

/** One metric of history: name, unit and meaning. */
export interface Metric {
  readonly scope: MetricScope
  /** without the prefix: what `metric=` of the history routes takes */
  readonly name: string
  readonly unit: MetricUnit
  /** for people */
  readonly title: string
}

const of =
  (scope: MetricScope) =>
  (name: string, unit: MetricUnit, title: string): Metric => ({ scope, name, unit, title })
const cluster = of('cluster')
const node = of('node')

/**
 * Every metric in the order it is written. The documented ones first; those marked "ours" complete what a chart needs.
 * Custom metrics are not listed: users declare them.
 */
export const metricsCatalogue: readonly Metric[] = [
  cluster('nodes_total', 'count', 'Nodes'),
  cluster('nodes_ready', 'count', 'Nodes ready'),
  cluster('pods_total', 'count', 'Pods'),
  cluster('pods_running', 'count', 'Pods running'),
  cluster('cpu_capacity', 'cores', 'CPU capacity'),
  cluster('memory_capacity_bytes', 'bytes', 'Memory capacity'),
  cluster('namespaces_total', 'count', 'Namespaces'),
  cluster('deployments_total', 'count', 'Deployments'),
  // ours
  cluster('cpu_allocatable', 'cores', 'CPU allocatable'),
  cluster('cpu_requested', 'cores', 'CPU requested'),
  cluster('cpu_used', 'cores', 'CPU used'),
  cluster('memory_allocatable_bytes', 'bytes', 'Memory allocatable'),
  cluster('memory_requested_bytes', 'bytes', 'Memory requested'),
  cluster('memory_used_bytes', 'bytes', 'Memory used'),
  cluster('pods_pending', 'count', 'Pods pending'),
  cluster('pods_failed', 'count', 'Pods failed'),
  cluster('deployments_ready', 'count', 'Deployments ready'),
  cluster('operators_total', 'count', 'Operators (OLM)'),
  cluster('operators_count', 'count', 'Cluster operators'),
  node('cpu_usage_percent', 'percent', 'CPU usage'),
  node('memory_usage_percent', 'percent', 'Memory usage'),
  node('pods_total', 'count', 'Pods'),
  node('pods_running', 'count', 'Pods running'),
  node('cpu_capacity', 'cores', 'CPU capacity'),
  node('memory_capacity_bytes', 'bytes', 'Memory capacity'),
  node('storage_capacity_bytes', 'bytes', 'Storage capacity'),
  node('pods_capacity', 'count', 'Pod capacity'),
  node('cpu_allocatable', 'cores', 'CPU allocatable'),
  node('memory_allocatable_bytes', 'bytes', 'Memory allocatable'),
  node('storage_allocatable_bytes', 'bytes', 'Storage allocatable'),
  node('pods_allocatable', 'count', 'Pods allocatable'),
  node('cpu_requested', 'cores', 'CPU requested'),
  node('memory_requested_bytes', 'bytes', 'Memory requested'),
  node('pods_pending', 'count', 'Pods pending'),
  node('pods_failed', 'count', 'Pods failed'),
  node('pods_succeeded', 'count', 'Pods succeeded'),
  // ours
  node('cpu_used', 'cores', 'CPU used'),
  node('memory_used_bytes', 'bytes', 'Memory used'),
  node('ready', 'flag', 'Ready'),
  of('operator')('installed', 'flag', 'Installed'),
  of('clusterOperator')('available', 'flag', 'Available'),
  of('clusterOperator')('progressing', 'flag', 'Progressing'),
  of('clusterOperator')('degraded', 'flag', 'Degraded'),
  of('clusterOperator')('upgradeable', 'flag', 'Upgradeable'),
]
