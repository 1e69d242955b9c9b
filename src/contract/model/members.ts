import type { ClusterState } from './fleet.ts'

/**
 * How a member is, in the words that people read of it everywhere: nobody decided; denied; none of its certificates counts; being
 * deleted; accepted and not come; and of one that came what is known of it: its API server does not answer, nothing is heard of it.
 */
export type MemberState =
  | 'not accepted yet'
  | 'denied'
  | 'revoked'
  | 'detaching'
  | 'not joined yet'
  | 'available'
  | 'unreachable'
  | 'lost'

/** A member of the hub, or a cluster that asks to be one, as lists show it. Times in ms since the Unix epoch. */
export interface MemberFacts {
  readonly name: string
  readonly state: MemberState
  readonly accepted: boolean
  readonly joined: boolean
  /** True, False, Unknown; null: nothing was ever said */
  readonly available: string | null
  /** why, for programs and for people; '' where nothing was said */
  readonly reason: string
  readonly message: string
  /** since when it is so, and not before it was accepted; null where nothing was said */
  readonly since: number | null
  readonly createdAt: number | null
  /** sets it is in, sorted */
  readonly sets: readonly string[]
  /** who speaks for it; null: nobody was accepted yet */
  readonly transport: 'stream' | 'api' | null
  readonly kubernetesVersion: string | null
  readonly clockSynced: boolean | null
  readonly taints: readonly string[]
  readonly claims: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  /** Kubernetes quantities, of all nodes and of those that take pods */
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  /** in the order they are stored */
  readonly conditions: readonly MemberCondition[]
  /** of the newest certificate that is known; null: none is */
  readonly certificate: CertificateLife | null
}

/** One condition of a member. */
export interface MemberCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly since: number | null
}

/** From when to when a certificate counts, ms since the Unix epoch. */
export interface CertificateLife {
  readonly from: number
  readonly until: number
  /** of the CA that signed it: the first 16 digits of its SHA-256, hex; absent: not noted */
  readonly issuer?: string
}

/** Reason of a member whose certificate counts no more, as the hub has lost the CA that signed it. */
export const AUTHORITY_LOST = 'AuthorityLost'

/**
 * Makes an agent of Open Cluster Management ask anew, once it is started again after it, on its own cluster: it shows the certificate in
 * that Secret as long as that is there, refused or not.
 */
export const FORGET_CERTIFICATE = 'kubectl -n open-cluster-management-agent delete secret hub-kubeconfig-secret'

/** Shares of a certificate's life left: our agent renews between the first two, OCM's own down to the last. */
const RENEWAL_LEFT = { first: 1 / 3, usual: 1 / 4, last: 1 / 5 } as const

/**
 * When a member renews its certificate, ms since the Unix epoch: from the first moment on, mostly before the second, and
 * something is wrong after the last.
 */
export function renewalOf({ from, until }: CertificateLife): { from: number; usual: number; latest: number } {
  const at = (left: number) => Math.round(until - left * (until - from))
  return { from: at(RENEWAL_LEFT.first), usual: at(RENEWAL_LEFT.usual), latest: at(RENEWAL_LEFT.last) }
}

/** One of the two decisions that make a member: about the certificate that is asked for, and about the cluster. */
export type MissingDecision = 'approval' | 'acceptance'

/** A request for a member's certificate that waits for a decision, as lists show it. */
export interface MemberRequest {
  /** of the CertificateSigningRequest */
  readonly name: string
  readonly cluster: string
  /** who asked the hub's API for it */
  readonly username: string
  /** of the machine, as the hub saw it; '' where it asked the hub's API by itself */
  readonly address: string
  /** SHA-256 of the public key, hex; '' where the request cannot be read */
  readonly key: string
  /** '' where it does not say */
  readonly agentVersion: string
  readonly requestedAt: number | null
  /** what nobody decided yet, at least one */
  readonly missing: readonly MissingDecision[]
}

/** Why what is known of members is of then, and not of now. */
export interface Behind {
  /** ms */
  readonly since: number
  readonly code: 'hub_api_away' | 'members_not_judged'
  readonly message: string
}

export const hubAway = (
  trouble: { readonly since: number; readonly message: string } | undefined,
): Behind | undefined =>
  trouble && {
    since: trouble.since,
    code: 'hub_api_away',
    message: `the hub's API does not tell of members: ${trouble.message}`,
  }

/** Who is a member, from memory: no call waits. */
export interface MemberReader {
  /** sorted by name */
  members(): readonly MemberFacts[]
  member(name: string): MemberFacts | undefined
  /** names of all sets of clusters, sorted */
  sets(): readonly string[]
  /** rises with every change */
  version(): number
  /** false: the first list is not in */
  isKnown(): boolean
  /** undefined: what is known is of now */
  behind(): Behind | undefined
}

/** Who asks to be a member, from memory: no call waits. */
export interface MemberRequestReader {
  /** undecided ones, sorted by cluster, then by time */
  requests(): readonly MemberRequest[]
  /** rises with every change */
  version(): number
  /** false: the first list is not in */
  isKnown(): boolean
  /** undefined: what is known is of now */
  behind(): Behind | undefined
}

/** The label that names the one exclusive set of a cluster, as Open Cluster Management has it. */
export const CLUSTER_SET_LABEL = 'cluster.open-cluster-management.io/clusterset'

/**
 * Sets a cluster is in: those of its member, which selectors may choose; of one that is monitored only, the set its label names.
 * @param members absent: only labels are known
 */
export function clusterSetsOf(
  { name, connection }: Pick<ClusterState, 'name' | 'connection'>,
  members?: Pick<MemberReader, 'member'>,
): readonly string[] {
  const member = members?.member(name)
  if (member) return member.sets
  const set = connection?.labels[CLUSTER_SET_LABEL]
  return set ? [set] : []
}

/** What a person may decide about a cluster that is a member or asks to be one. */
export type MemberDecision = (typeof memberDecisions)[number]
export const memberDecisions = ['accept', 'deny', 'revoke', 'detach'] as const

/** Somebody as the hub's API knows them. */
export interface HubUser {
  readonly username: string
  readonly groups: readonly string[]
  /** what its authenticator says besides, such as scopes of a token */
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/**
 * Which rights at the hub's API somebody lacks for a decision, each as kubectl would name it; none: they may.
 * @param cluster absent: about every cluster
 * @throws FleetError `rights_unknown` where the API does not say
 */
export type LackedRights = (
  who: HubUser,
  decision: MemberDecision,
  cluster: string | undefined,
) => Promise<readonly string[]>

/** One thing that was done about a member, as the audit trail calls it whoever does it, on the page, by a command or by kubectl. */
export interface MemberAct {
  readonly act:
    | 'request_approved'
    | 'request_denied'
    | 'cluster_accepted'
    | 'cluster_denied'
    | 'cluster_revoked'
    | 'cluster_deleted'
  /** what was done, for people */
  readonly words: string
  /** of the CertificateSigningRequest; absent: it is about the ManagedCluster */
  readonly request?: string
}

/** A person who decided on the page or its API: what is written at the hub's API has the account of the page. */
export interface MemberDecider {
  readonly username: string
  /** as the audit trail of the page has it */
  readonly requestId: string
}

/**
 * Carries a decision out, whole, also where nobody waits for the answer any more.
 * @param about.request of several that wait, the one that is meant
 * @param about.by named in what is written
 * @param did hears of each act as soon as it is done, also where a later one fails
 * @returns what was done, for people
 * @throws FleetError with a sentence where it cannot be done
 */
export type DecideMember = (
  decision: MemberDecision,
  about: { readonly cluster: string; readonly request?: string; readonly by: MemberDecider },
  did?: (act: MemberAct) => void,
) => Promise<readonly string[]>
