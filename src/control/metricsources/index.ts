/**
 * MetricSources of the hub: each is compiled, put into the catalog that collectors and readers go by, and told in its status
 * how it does on every cluster. A faulty revision leaves the one before in force. A deleted source takes with it what it
 * collected, even if nobody looked when it went.
 *
 *   MetricSource → compile → catalog → (collected on each cluster) → state → status
 */
export { type MetricSourcesOptions, metricSourceReconcilers } from './controllers.ts'
export type { AgentRoles, SourceRemover } from './reconciler.ts'
