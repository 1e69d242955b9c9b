import { DECIDED_ANNOTATION, notedDecisionIn } from '#kinds'
import { AUTHORITY_LOST, FORGET_CERTIFICATE, type MemberState, seconds } from '#model'
import { revokedMs } from './certificate-life.ts'
import { conditionOf, type ManagedCluster } from './objects.ts'
import { CONDITIONS, TRANSPORT } from './words.ts'

/** The hub writes its condition that long after a decision at most, as a rule. */
const SAID_WITHIN_MS = seconds(60)

/** Why a member is as it is, for programs and for people. */
export interface Words {
  readonly reason: string
  readonly message: string
}

const LOCKED_OUT = 'Its certificate is of an authority that this hub no longer has'

/** Whether `lostAuthorityWords` were said of it. */
export const isLockedOut = (message: string | undefined): boolean => message?.startsWith(LOCKED_OUT) === true

/** Of a member whose certificate was signed by a CA that the hub has lost. */
export const lostAuthorityWords = (member: ManagedCluster): Words => ({
  reason: AUTHORITY_LOST,
  message: `${LOCKED_OUT}, so its agent is refused: let the cluster join anew (${howAnew(member)}), or, where that authority was lost and not ended, put it back from the backup (docs/guide/backup.md) and start the hub again.`,
})

/** Of a cluster that is accepted and waits for a certificate that cannot be signed. */
export const unsignedWords = (fault: string): Words => ({
  reason: 'AuthorityHarmed',
  message: `It waits for its certificate, and the hub can sign none: ${fault}`,
})

const howAnew = ({ metadata: { name, annotations } }: ManagedCluster): string =>
  annotations?.[TRANSPORT] === 'api'
    ? `there, \`${FORGET_CERTIFICATE}\`, and restart its agent: it asks with a bootstrap kubeconfig, and that is approved`
    : `clusterpulse connect ${name}`

/** Why a cluster is no member: by whom and when it was thrown out, or that nobody let it in; and what to do. undefined: it is one */
export function noMemberWords(member: ManagedCluster, state: MemberState): Words | undefined {
  const { name, deletionTimestamp } = member.metadata
  const accepted = conditionOf(member, CONDITIONS.accepted)
  switch (state) {
    case 'revoked': {
      const who = byWhom(member, 'revoke', revokedMs(member))
      const again = `the cluster must join anew (${howAnew(member)})`
      // An API server knows no revocation: what an agent of its own has is rights.
      const nothing =
        member.metadata.annotations?.[TRANSPORT] === 'api'
          ? 'it has no rights on the hub, also where it is accepted, until a later request of it is approved'
          : 'none of its certificates counts again, also where it is accepted'
      const message = `Revoked ${who}: ${nothing}; ${again}.`
      return { reason: 'Revoked', message }
    }
    case 'denied': {
      // Of one that was accepted and cannot be a member its condition says why.
      if (accepted?.reason === 'Error') return undefined
      const who = byWhom(member, 'deny', Date.parse(accepted?.lastTransitionTime ?? ''))
      const hasCome = conditionOf(member, CONDITIONS.joined)?.status === 'True'
      const again = hasCome
        ? `\`clusterpulse accept ${name}\` lets it in again`
        : `\`clusterpulse accept ${name}\` takes that back, and its machine asks anew (clusterpulse connect ${name})`
      const message = `Denied ${who}: it has no rights on the hub; ${again}.`
      return { reason: 'HubClusterAdminDenied', message }
    }
    case 'detaching': {
      const deleting = conditionOf(member, CONDITIONS.deleting)
      const who = byWhom(member, 'detach', Date.parse(deletionTimestamp ?? ''))
      const left = deleting?.message ?? 'what belongs to it is cleaned up first'
      return { reason: deleting?.reason ?? 'Detaching', message: `Detached ${who}: ${left}` }
    }
    case 'not accepted yet': {
      const who = `\`clusterpulse accept ${name}\` lets it in, and \`clusterpulse get memberrequests\` shows who asks`
      return { reason: 'NotAccepted', message: `Nobody has accepted it yet: ${who}.` }
    }
    default:
      return undefined
  }
}

/** @param at when it was decided, ms since the Unix epoch: what is noted of another decision does not count */
function byWhom({ metadata: { annotations } }: ManagedCluster, decision: string, at = Number.NaN): string {
  const when = Number.isNaN(at) || at === 0 ? '' : ` at ${new Date(at).toISOString().slice(0, 19)}Z`
  const noted = notedDecisionIn(annotations?.[DECIDED_ANNOTATION])
  const isOfIt = noted?.decision === decision && Math.abs(noted.at - at) <= SAID_WITHIN_MS
  return isOfIt ? `by ${noted.by} on the page${when}` : `at the hub's API${when}, by whom tells the audit trail`
}
