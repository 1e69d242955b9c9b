/** Who may do what, by Roles, ClusterRoles and their bindings, as Kubernetes evaluates them. */
export { aggregatedRules, CollectingRoles } from './aggregation.ts'
export { Authorizer, type HeldRules } from './authorizer.ts'
export { isRbac, refuseEscalation } from './escalation.ts'
export { COLLECTIONS, type RoleObject } from './objects.ts'
export type { Attempt } from './rule.ts'
export { seedDefaultRoles } from './seed.ts'
