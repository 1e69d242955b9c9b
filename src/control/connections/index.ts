/**
 * ClusterConnections made true: each names a cluster, where it is and with what credentials. In pull mode this module reads
 * the cluster round by round, hands every round to the ingester and writes the object's status.
 *
 *   object, Secret → decide (settings, access) → collectRound → Ingester.accept → status → again after the interval
 *
 * In push mode it knows who may speak for the cluster (AgentCredentials), brings the agent to the member and takes it away
 * (AgentInstall; joinManifest where the hub cannot get there), says what is to be collected (agentPlans), and reads the
 * cluster itself only while no agent delivers.
 *
 * MetricSources in force are read from the same clusters beside the rounds (SourceReading), and are part of what agents are
 * asked; the agent's role on the member follows them. sourceTrial reads a cluster once, for previews.
 *
 * One round at a time per cluster, a bounded number over all. A round whose connection or credentials changed meanwhile, or
 * whose agent came back, is thrown away. A failing cluster touches no other and heals by itself.
 */
export {
  AgentCredentials,
  type AgentCredentialsOptions,
  type IssuedToken,
  type Membership,
  UnknownConnectionError,
} from './agent-credentials.ts'
export { type AgentInstall, IMAGE, IMAGE_GROUP, imageOf } from './agent-objects.ts'
export { agentPlans } from './agent-plans.ts'
export type { RoleGap } from './agent-role.ts'
export { type ConnectionsOptions, connectionReconcilers } from './controllers.ts'
export { caFingerprints, type Joining, type JoiningByManifest, joinCommand, joinManifest } from './join.ts'
export { joinContainer } from './join-container.ts'
export { clusterOfCertificate } from './peer-certificate.ts'
export { type Defaults, MIN_INTERVAL_S, MIN_TIMEOUT_S } from './settings.ts'
export { type SourceTrialOptions, sourceTrial } from './source-trial.ts'
