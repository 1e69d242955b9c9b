import type { ReactNode } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Warned } from '../../components/push.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { useAtTime } from '../../live/hooks.ts'
import { beginningSentence, formatMoment, formatSpan } from '../../model/format.ts'
import { certificateStateOf, type Member, memberNeed } from '../../model/members.ts'

export const stateText = ({ state }: Pick<Member, 'state'>): string => beginningSentence(state)

/** How a member is, and why on hover. */
export function MemberStateMark({ member }: { member: Member }): ReactNode {
  return (
    <span {...(member.message !== '' && { 'data-tip': `${member.reason}: ${member.message}` })}>
      <HealthMark need={memberNeed[member.state]} word={stateText(member)} />
    </span>
  )
}

/** How long the certificate of a member still counts, and whether it ought to be another by now. */
export function CertificateEnd({ member }: { member: Member }): ReactNode {
  const { accepted, certificateUntil } = member
  const state = useAtTime((now) => certificateStateOf(member, now))
  // Of one that is no member nothing is expected.
  const isLate = accepted && state === 'overdue'
  const left = useAtTime((now) => formatSpan(Math.abs((certificateUntil ?? now) - now)))
  if (certificateUntil === null) return <Missing why="the hub has not seen a certificate of it signed" />
  if (state === 'ended')
    return (
      <span className="short" data-tip={formatMoment(certificateUntil)}>
        {accepted && <Warned />}
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
