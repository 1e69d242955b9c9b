import type { AuditEntry } from '#audit'
import { memberUser } from '#authority'

/** What is written down of who joins and who leaves. */
export type JoinEvent =
  | 'join_asked'
  | 'join_refused'
  | 'join_denied'
  | 'join_granted'
  | 'certificate_renewed'
  | 'member_accepted'
  | 'member_ended'
  | 'member_revoked'

/** One of these, of one cluster. */
export interface JoinFact {
  readonly event: JoinEvent
  readonly cluster: string
  readonly agent?: string
  /** name of the CertificateSigningRequest; '' where there is none */
  readonly request?: string
  /** of the peer; '' where nobody came */
  readonly address?: string
  readonly reason: string
}

const BAD = new Set<JoinEvent>(['join_refused', 'join_denied'])

/** The entry of the audit trail for it. */
export function auditEntryOf(fact: JoinFact, at: number): AuditEntry {
  const { event, cluster, agent, request = '', address = '', reason } = fact
  // Who is refused proved nothing: the name it gave itself may be a member's.
  const isProven = event !== 'join_refused'
  return {
    at,
    kind: BAD.has(event) ? 'denial' : 'administration',
    requestId: request,
    username: agent === undefined || !isProven ? '' : memberUser({ cluster, agent }),
    groups: [],
    // Strangers can make as many of them as they like: the trail counts those beyond some.
    method: event === 'join_refused' ? '' : 'JOIN',
    address,
    route: event,
    resource: `managedcluster ${cluster}`,
    status: BAD.has(event) ? 403 : 200,
    reason: isProven ? reason : `who says to be agent ${agent ?? ''} of ${cluster}: ${reason}`,
    policy: '',
    policyHash: '',
  }
}
