/**
 * ClusterConnections made true: each names a cluster, where it is and with what credentials; this module reads the cluster
 * round by round (pull), hands every round to the ingester and writes the object's status.
 *
 *   object, Secret → decide (settings, access) → collectRound → Ingester.accept → status → again after the interval
 *
 * One round at a time per cluster, a bounded number over all. A round whose connection or credentials changed meanwhile is
 * thrown away. A failing cluster touches no other and heals by itself.
 */
export {
  AgentCredentials,
  type AgentCredentialsOptions,
  type IssuedToken,
  UnknownConnectionError,
} from './agent-credentials.ts'
export type { AgentInstall } from './agent-objects.ts'
export { agentPlans } from './agent-plans.ts'
export { type ConnectionsOptions, connectionReconcilers } from './controllers.ts'
export { type Defaults, MIN_INTERVAL_S, MIN_TIMEOUT_S } from './settings.ts'
