/**
 * Members of the hub: ManagedClusters made true. A cluster asks to be one, a person accepts it, and from then on it has a
 * namespace, exactly the rights of its identity (rightsOf), a ClusterConnection where our agent speaks for it, and a life that
 * the hub judges by its stream or its lease.
 *
 *   ManagedCluster ─ membership ─▶ namespace, roles, bindings, ClusterConnection, HubAccepted; on deletion all of it in order
 *   state, leases  ─ life ───────▶ Joined, Available, ClockSynced, capacity, version, claims, taints, lease
 *   labels         ─ sets ───────▶ ClusterSetEmpty, Bound; the sets `default` and `global`
 *
 * Kinds, names and words are those of Open Cluster Management, so that its agents and tools work with them (docs/adr/0033-…).
 */
export { registrationAdmission } from './admission.ts'
export type { RuleDecision } from './approval.ts'
export type { Authorities } from './certificate-life.ts'
export { type RegistrationOptions, registrationReconcilers } from './controllers.ts'
export { type Judgement, MemberIndex } from './member-index.ts'
export { groupsOf, TRANSPORT } from './words.ts'
