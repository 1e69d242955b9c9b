import { COMMON_NAME, type NameWord, ORGANIZATION } from './certificate-request.ts'

/** Who a member's agent is: the cluster, and the agent that speaks for it. */
export interface MemberName {
  readonly cluster: string
  readonly agent: string
}

const PREFIX = 'system:open-cluster-management:'

/** The group of all members, which a member's certificate may have beside its own. */
export const MEMBERS_GROUP = `${PREFIX}managed-clusters`

/** `system:open-cluster-management:<cluster>:<agent>`: the user name of a member. */
export const memberUser = ({ cluster, agent }: MemberName): string => `${PREFIX}${cluster}:${agent}`

/** `system:open-cluster-management:<cluster>`: the group that the rights of a member hang on. */
export const memberGroup = (cluster: string): string => PREFIX + cluster

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const AGENT = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/

/** Whether a cluster can be called so: a DNS label of at most 63 characters, and not the group of all members. */
export const isMemberCluster = (name: string): boolean =>
  name.length <= 63 && LABEL.test(name) && memberGroup(name) !== MEMBERS_GROUP

/** Namespaces in which an agent must have no rights, whatever its cluster is called. */
const RESERVED = /^(default|kube-.*|open-cluster-management(-.*)?|openshift(-.*)?)$/

/** Whether a cluster cannot be a member under this name because its namespace belongs to Kubernetes, OpenShift or OCM. */
export const isReservedNamespace = (name: string): boolean => RESERVED.test(name)

/** The member of a user name; undefined where it is no member's. */
export function memberOfUser(user: string): MemberName | undefined {
  if (!user.startsWith(PREFIX)) return undefined
  const [cluster = '', agent = '', ...more] = user.slice(PREFIX.length).split(':')
  const fits = more.length === 0 && isMemberCluster(cluster) && agent.length <= 253 && AGENT.test(agent)
  return fits ? { cluster, agent } : undefined
}

/** The cluster of a group; undefined where it is no single member's. */
export function clusterOfGroup(group: string): string | undefined {
  const cluster = group.startsWith(PREFIX) ? group.slice(PREFIX.length) : ''
  return isMemberCluster(cluster) ? cluster : undefined
}

/** A subject that names one member and nothing else. */
export interface MemberSubject {
  readonly member: MemberName
  /** the member's group, and that of all members where it was asked for */
  readonly organizations: readonly string[]
}

/**
 * The member that the subject of a request or certificate names: one common name of a cluster and an agent, and as organisations the
 * group of that very cluster, beside it at most the group of all members.
 * @returns a sentence where it names none, more than one, or anything else
 */
export function subjectOf(words: readonly NameWord[]): MemberSubject | string {
  const valuesOf = (wanted: string) => words.filter(({ oid }) => oid === wanted).map(({ value }) => value)
  const [name, ...others] = valuesOf(COMMON_NAME)
  const organizations = [...new Set(valuesOf(ORGANIZATION))]
  const foreign = words.find(({ oid }) => oid !== COMMON_NAME && oid !== ORGANIZATION)
  if (foreign)
    return `the subject holds ${foreign.oid}=${quoted(foreign.value)}: a member has a common name and its organisation alone`
  if (name === undefined || others.length > 0) return 'the subject must have one common name'
  const member = memberOfUser(name)
  if (!member) return `the common name ${quoted(name)} is not ${PREFIX}<cluster>:<agent>`
  const own = memberGroup(member.cluster)
  const group = organizations.filter((each) => each !== MEMBERS_GROUP)
  if (group.length !== 1 || group[0] !== own)
    return `the organisation must be exactly ${quoted(own)}, as the common name says, not ${group.map(quoted).join(', ') || 'none'}`
  return { member, organizations: [own, ...organizations.filter((each) => each === MEMBERS_GROUP)] }
}

/** Texts of others: cut, and with whatever could break a line escaped. */
export const quoted = (text: string): string => JSON.stringify(text.length > 120 ? `${text.slice(0, 120)}…` : text)
