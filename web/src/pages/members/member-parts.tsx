import type { ReactNode } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Warned } from '../../components/push.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { useAtTime } from '../../live/hooks.ts'
import { beginningSentence, formatMoment, formatSpan } from '../../model/format.ts'
import { certificateStateOf, isEnded, isLockedOut, type Member, memberNeed } from '../../model/members.ts'

export const stateText = ({ state }: Pick<Member, 'state'>): string => beginningSentence(state)

/** How a member is, and why on hover. */
export function MemberStateMark({ member }: { member: Member }): ReactNode {
  return (
    <span {...(member.message !== '' && { 'data-tip': `${member.reason}: ${member.message}` })}>
      <HealthMark need={memberNeed[member.state]} word={stateText(member)} />
    </span>
  )
}

/** Why there is no certificate to tell of. */
export function noCertificate({ state, accepted, joined, certificateFrom, reason, message }: Member): string {
  if (isLockedOut({ reason })) return message
  if (state === 'revoked') return 'It was revoked: no certificate of it counts.'
  if (accepted && joined) return 'The hub has seen no certificate of it signed.'
  if (accepted) return 'None counts yet: nobody joined under this name since it was accepted.'
  if (state === 'not accepted yet')
    return 'None counts yet: one is handed out when its request is approved and the cluster is accepted.'
  const why = 'None counts: the cluster is not accepted.'
  return certificateFrom === null ? why : `${why} Accepted again, the one it has counts until it ends.`
}

/** How long the certificate of a member still counts, and whether it ought to be another by now. */
export function CertificateEnd({ member }: { member: Member }): ReactNode {
  const { certificateUntil } = member
  const state = useAtTime((now) => certificateStateOf(member, now))
  const isLate = state === 'overdue'
  const left = useAtTime((now) => formatSpan(Math.abs((certificateUntil ?? now) - now)))
  if (certificateUntil === null)
    return isEnded(member) ? (
      <span className="quiet" data-tip={noCertificate(member)}>
        {member.state}
      </span>
    ) : (
      <Missing why={noCertificate(member)} />
    )
  if (state === 'ended')
    return (
      <span className="short" data-tip={formatMoment(certificateUntil)}>
        <Warned />
        ended <Age at={certificateUntil} suffix=" ago" />
      </span>
    )
  return (
    <span className={isLate ? 'short' : ''} data-tip={formatMoment(certificateUntil)}>
      {isLate && <Warned />}
      in {left}
      {isLate && <span className="sub">not renewed</span>}
    </span>
  )
}

/** One line of a list of names and values. */
export const Fact = ({ name, children }: { name: string; children: ReactNode }): ReactNode => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)
