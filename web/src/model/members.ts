import { AUTHORITY_LOST, type MemberState, type TableRowView, TWO_AGENTS } from '../contract.ts'
import type { Need } from './cluster.ts'

/** A member, or a cluster that asks to be one, as its row tells it. Times in ms since the Unix epoch; null: not known. */
export interface Member {
  readonly name: string
  readonly state: MemberState
  readonly accepted: boolean
  readonly joined: boolean
  readonly sets: readonly string[]
  readonly version: string | null
  /** of the newest one that was handed out, whether or not it counts */
  readonly certificateFrom: number | null
  /** null, too, where none counts */
  readonly certificateUntil: number | null
  readonly renewsFrom: number | null
  readonly renewBy: number | null
  readonly since: number | null
  readonly createdAt: number | null
  readonly reason: string
  readonly message: string
  readonly transport: 'stream' | 'api' | null
  readonly taints: readonly string[]
  readonly claims: Readonly<Record<string, string>>
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  readonly conditions: readonly MemberCondition[]
  readonly labels: Readonly<Record<string, string>>
}

export interface MemberCondition {
  readonly type: string
  readonly status: string
  readonly reason: string
  readonly message: string
  readonly since: number | null
}

/** The kind has a column for each property; what a member says of itself may be missing. */
export function memberOf({ name, labels, values }: Pick<TableRowView, 'name' | 'labels' | 'values'>): Member {
  const { reason, message, ...told } = values
  return { ...told, name, labels, reason: reason ?? '', message: message ?? '' } as unknown as Member
}

/** The sets that are known and those that members are in, by name, each with how many of these members are in it. */
export function setsOfMembers(
  known: readonly { readonly name: string }[],
  members: readonly Pick<Member, 'sets'>[],
): readonly { readonly name: string; readonly count: number }[] {
  const counts = new Map(known.map(({ name }) => [name, 0]))
  for (const set of members.flatMap(({ sets }) => sets)) counts.set(set, (counts.get(set) ?? 0) + 1)
  return [...counts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, count]) => ({ name, count }))
}

/** A request to become a member that waits for a decision. */
export interface MemberRequest {
  /** of the CertificateSigningRequest */
  readonly name: string
  readonly member: string
  readonly address: string | null
  /** SHA-256 of the public key, hex */
  readonly key: string | null
  readonly requestedAt: number | null
  readonly username: string | null
  readonly agentVersion: string | null
  /** of the two decisions, about the certificate and about the cluster, those that nobody took yet */
  readonly missing: readonly ('approval' | 'acceptance')[]
}

export const requestOf = ({ name, values }: Pick<TableRowView, 'name' | 'values'>): MemberRequest =>
  ({ ...values, name }) as unknown as MemberRequest // as above

/** Of a request that was half decided, by `kubectl` or ahead, what is still missing; null: all of it is. */
export function halfDecided({ missing }: Pick<MemberRequest, 'missing'>): string | null {
  if (missing.length > 1) return null
  return missing.includes('acceptance')
    ? 'Its certificate is approved; the cluster is not accepted yet.'
    : 'The cluster is accepted; this certificate is not approved yet.'
}

export const memberNeed: Readonly<Record<MemberState, Need>> = {
  ...{ lost: 'unhealthy', unreachable: 'unhealthy', 'not accepted yet': 'degraded', detaching: 'degraded' },
  ...{ 'not joined yet': 'unknown', denied: 'unknown', revoked: 'unknown', available: 'healthy' },
}
/** Whether its certificate counts no more, as the hub has lost the CA that signed it: its message says so. */
export const isLockedOut = ({ reason }: Pick<Member, 'reason'>): boolean => reason === AUTHORITY_LOST

/** Whether two agents speak for it, of which one may be a thief's: its message names both, and what helps. */
export const hasTwoAgents = ({ reason }: Pick<Member, 'reason'>): boolean => reason === TWO_AGENTS

const endedStates: ReadonlySet<MemberState> = new Set(['denied', 'revoked', 'detaching'])
/** Whether somebody threw it out or let it go: its message says by whom, when, and what brings it back. */
export const isEnded = ({ state }: Pick<Member, 'state'>): boolean => endedStates.has(state)

/** Who needs a person first. */
const order: readonly MemberState[] = [
  ...(['lost', 'unreachable', 'not accepted yet', 'detaching', 'not joined yet'] as const),
  ...(['denied', 'revoked', 'available'] as const),
]
export const severityOfMember = ({ state }: Member): number => order.indexOf(state)

/** Since when it is a member, ms since the Unix epoch: of what was before its availability tells nothing. null: it is none */
export const acceptedSince = ({ conditions }: Pick<Member, 'conditions'>): number | null =>
  conditions.find(({ type, status }) => type === 'HubAcceptedManagedCluster' && status === 'True')?.since ?? null

export type CertificateState = 'none' | 'valid' | 'renewing' | 'overdue' | 'ended'

/** How the certificate of a member stands: one that is overdue should have been renewed by now. */
export function certificateStateOf(
  { certificateUntil, renewsFrom, renewBy }: Pick<Member, 'certificateUntil' | 'renewsFrom' | 'renewBy'>,
  now: number,
): CertificateState {
  if (certificateUntil === null || renewsFrom === null || renewBy === null) return 'none'
  if (now >= certificateUntil) return 'ended'
  if (now >= renewBy) return 'overdue'
  return now >= renewsFrom ? 'renewing' : 'valid'
}

/** What becomes of a cluster that is no member where it is accepted while no request of it waits. */
export type Return = 'comes back' | 'comes back unless revoked' | 'must join anew' | 'must ask anew' | 'never joined'

export function returnOf({
  state,
  joined,
  certificateFrom,
  transport,
}: Pick<Member, 'state' | 'joined' | 'certificateFrom' | 'transport'>): Return {
  if (state === 'revoked') return transport === 'api' ? 'must ask anew' : 'must join anew'
  if (!joined && certificateFrom === null) return 'never joined'
  // Of a client of the hub's API nobody tells the page whether its certificate was revoked.
  return transport === 'stream' ? 'comes back' : 'comes back unless revoked'
}

/** As people compare keys: the first 16 digits, as the agent and the command line say them. */
export const shortKey = (key: string): string => key.slice(0, 16)

/** The requests of each cluster, in the order of their clusters; several keys of one cluster stand beside each other. */
export function requestsByMember(
  requests: readonly MemberRequest[],
): readonly (readonly [member: string, requests: readonly [MemberRequest, ...MemberRequest[]]])[] {
  const byMember = new Map<string, [MemberRequest, ...MemberRequest[]]>()
  for (const request of requests) {
    const others = byMember.get(request.member)
    if (others) others.push(request)
    else byMember.set(request.member, [request])
  }
  return [...byMember].sort(([a], [b]) => (a < b ? -1 : 1))
}

/** What several members suffer, as one line however many they are. */
export interface MemberTrouble {
  readonly code: 'locked-out' | 'lost' | 'unreachable' | 'certificate'
  readonly members: readonly [Member, ...Member[]]
  /** since when the first of them does, ms since the Unix epoch; null: not known */
  readonly since: number | null
}

/** Members that are locked out, lost ones of which that is not known, unreachable ones, and those that did not renew their certificates in time: one trouble each. */
export function memberTroubles(members: readonly Member[], now: number): readonly MemberTrouble[] {
  const trouble = (
    code: MemberTrouble['code'],
    suffers: (member: Member) => boolean,
    sinceOf: (member: Member) => number | null,
  ): readonly MemberTrouble[] => {
    const [first, ...others] = members.filter(suffers)
    if (!first) return []
    const all = [first, ...others] as const
    const times = all.map(sinceOf).filter((at) => at !== null)
    return [{ code, members: all, since: times.length > 0 ? Math.min(...times) : null }]
  }
  const isLate = (member: Member) => ['overdue', 'ended'].includes(certificateStateOf(member, now))
  return [
    ...trouble('locked-out', isLockedOut, ({ since }) => since),
    ...trouble(
      'lost',
      (member) => member.state === 'lost' && !isLockedOut(member),
      ({ since }) => since,
    ),
    ...trouble(
      'unreachable',
      ({ state }) => state === 'unreachable',
      ({ since }) => since,
    ),
    ...trouble('certificate', isLate, ({ renewBy }) => renewBy),
  ]
}
