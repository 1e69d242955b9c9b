import type { AdmissionUser } from '../admission.ts'

/** How the users of members, and of their add-ons, begin. */
export const MEMBERS = 'system:open-cluster-management:'
/** Whose token is in a bootstrap kubeconfig. */
export const BOOTSTRAP_ACCOUNT = 'system:serviceaccount:open-cluster-management:agent-registration-bootstrap'
/** How the users of bootstrap tokens begin. */
export const BOOTSTRAP_TOKENS = 'system:bootstrap:'
const BOOTSTRAP_GROUP = 'system:bootstrappers:managedcluster'

/** Whether a user holds a credential that is shared by those who ask to join. */
export const isBootstrapUser = (name: string): boolean =>
  name === BOOTSTRAP_ACCOUNT || name.startsWith(BOOTSTRAP_TOKENS)

const MEMBER_USER = /^system:open-cluster-management:[^:]+:[^:]+$/
const MEMBER_GROUP = /^(?:system:)?open-cluster-management:(?!managed-clusters$)[^:]+$/

/** The sort of agent that a user is: a member's own, or one that asks to join. undefined: neither, such as a person or an add-on */
export function agentOf({ name, groups }: AdmissionUser): 'member' | 'bootstrap' | undefined {
  if (isBootstrapUser(name) || groups.includes(BOOTSTRAP_GROUP)) return 'bootstrap'
  return MEMBER_USER.test(name) || groups.some((group) => MEMBER_GROUP.test(group)) ? 'member' : undefined
}
