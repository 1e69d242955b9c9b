/**
 * How a machine becomes a member of this hub, and how that ends. It shows a join token and asks for a certificate with a key that
 * never leaves it; a ManagedCluster and a CertificateSigningRequest say so in the hub's API, and both must be answered with yes.
 *
 *   connect → join token ─► join ─► HubJoins: token spent, objects made ─► accept ─► certificate ─► a member's stream
 *                                                                        └► deny          └► revoke: ended within seconds
 *
 * Nothing of it is kept here: after a crash of either end the agent asks again, with the same key, and finds what it asked for.
 */
export { fingerprintOf, trustedIn } from './authorities.ts'
export { type BootstrapOptions, bootstrapKubeconfig } from './bootstrap-kubeconfig.ts'
export { DecisionRights } from './decision-rights.ts'
export { accept, detach, MembershipError, refuse, revokeMember } from './decisions.ts'
export { HubJoins, type HubJoinsOptions } from './join-desk.ts'
export { JoinTokens } from './join-tokens.ts'
export {
  AUDITED_GROUPS,
  auditEntryOfRefusal,
  auditEntryOfWrite,
  auditedWrites,
  type ObservedWrite,
  type RefusedRequest,
} from './member-writes.ts'
export { hasCertificate, lostAuthority, Members, managedClusterOf, managedClusters } from './members.ts'
export { auditEntryOf, type JoinFact } from './record.ts'
export { RequestIndex } from './request-index.ts'
