import { type ReactNode, useState } from 'react'
import { Jointed, Name } from '../../components/name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { Failure } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import type { MemberDecision, MemberDecisionsView } from '../../contract.ts'
import type { Answer } from '../../live/use-answer.ts'
import { useMemberRequests } from '../../live/use-members.ts'
import { beginningSentence, formatCount, plural } from '../../model/format.ts'
import { halfDecided, type MemberRequest, requestsByMember, shortKey } from '../../model/members.ts'
import { useSession } from '../../session.ts'
import { type Asked, Lacking } from './decide.tsx'
import { Fact } from './member-parts.tsx'

const stepOfShown = 50

interface RequestsProps {
  readonly ask: (asked: Asked) => void
  readonly decisions: Answer<MemberDecisionsView>
  /** asks again what may be decided, and for whoever is no administrator who asks */
  readonly again: () => void
  /** those of one cluster alone */
  readonly of?: string
}

/** Who asks to be a member, for administrators and for whoever may decide it. */
export function Requests(props: RequestsProps): ReactNode {
  const administrator = useSession()?.user?.administrator === true
  if (administrator) return <Streamed {...props} />
  const { decisions } = props
  if (decisions.state !== 'here' || !answers.some((decision) => decisions.value.may.includes(decision))) return null
  return <Asking {...props} requests={decisions.value.requests} total={decisions.value.waiting} />
}

/** What answers a request. */
const answers = ['accept', 'deny'] as const

function Streamed(props: RequestsProps): ReactNode {
  const listed = useMemberRequests()
  if (listed.state === 'failed')
    return <Failure problem={listed.problem} onRetry={listed.again} title="The requests to join could not be loaded" />
  if (listed.state === 'unread')
    return (
      <p className="notice is-degraded" role="status">
        Whether anybody asks to join is not known: {listed.part.message}.
      </p>
    )
  if (listed.state !== 'here') return null
  return (
    <Asking {...props} requests={listed.items} total={listed.total}>
      <NotUpdated problem={listed.problem} asOf={listed.asOf} onRetry={listed.again} />
    </Asking>
  )
}

/** Requests with what tells them apart; each waits for a person. */
function Asking({
  ask,
  decisions,
  again,
  of,
  requests: all,
  total,
  children,
}: RequestsProps & {
  readonly requests: readonly MemberRequest[]
  readonly total: number
  readonly children?: ReactNode
}): ReactNode {
  const [most, setMost] = useState(stepOfShown)
  const may = decisions.state === 'here' ? decisions.value.may : []
  const asking = requestsByMember(all.filter(({ member }) => of === undefined || member === of))
  if (asking.length === 0) return of === undefined ? <p className="fine nobody-asks">Nobody asks to join.</p> : null
  const count = asking.reduce((sum, [, requests]) => sum + requests.length, 0)
  return (
    <section className="panel requests" aria-labelledby="requests">
      <div className="panel-head">
        <h2 id="requests">{plural(count, 'request')} to join</h2>
      </div>
      {children}
      <Lacking decisions={decisions} of={answers} onRetry={again} />
      <ul>
        {asking.slice(0, most).map(([member, requests]) => (
          <li key={member}>
            <p className="request-head">
              <b className="mono">
                <Name text={member} />
              </b>{' '}
              {requests.length > 1 && (
                <span className="tag is-warning">
                  ▲ {formatCount(requests.length)} requests: only one of them is {member}
                </span>
              )}
            </p>
            <ul>
              {requests.map((request) => (
                <Request key={request.name} request={request} ask={ask} may={may} />
              ))}
            </ul>
          </li>
        ))}
      </ul>
      {asking.length > most && (
        <button type="button" className="text-button" onClick={() => setMost(most + stepOfShown)}>
          and {formatCount(asking.length - most)} more
        </button>
      )}
      {of === undefined && total > all.length && (
        <p className="fine">{formatCount(total - all.length)} more wait; they come when some of these are decided.</p>
      )}
    </section>
  )
}

function Request({
  request,
  ask,
  may,
}: {
  request: MemberRequest
  ask: (asked: Asked) => void
  may: readonly MemberDecision[]
}): ReactNode {
  const { name, member, key, missing } = request
  const about = { member, request: name, missing, facts: <RequestFacts request={request} /> }
  const half = halfDecided(request)
  const which = `${member}${key ? `, key ${shortKey(key)}` : ''}`
  return (
    <li className="request">
      <div className="request-who">
        <RequestFacts request={request} />
        {half !== null && <p className="fine">{half}</p>}
      </div>
      <span className="request-ways">
        {answers
          .filter((decision) => may.includes(decision))
          .map((decision) => (
            <button
              key={decision}
              type="button"
              className={decision === 'accept' ? 'button is-primary' : 'button'}
              onClick={() => ask({ ...about, decision })}
              aria-label={`${beginningSentence(decision)} ${which}`}
            >
              {beginningSentence(decision)}
            </button>
          ))}
      </span>
    </li>
  )
}

/** From where, with which key, when: what a person compares with what the machine says. */
function RequestFacts({ request }: { request: MemberRequest }): ReactNode {
  const { name, address, key, requestedAt, username, agentVersion } = request
  return (
    <dl className="request-facts">
      <Fact name="From">
        {address !== null ? (
          <span className="mono">{address}</span>
        ) : (
          <>
            {username === null ? <Missing why="the request does not say it" /> : <Jointed text={username} />}
            <span className="sub">at the hub’s API</span>
          </>
        )}
      </Fact>
      <Fact name="Key">
        {key === null ? (
          <Missing why="the request cannot be read" />
        ) : (
          <span className="mono" data-tip={`SHA-256 ${key}`}>
            {shortKey(key)}
          </span>
        )}
      </Fact>
      <Fact name="Asked">
        {requestedAt === null ? <Missing why="the hub has no time for it" /> : <Age at={requestedAt} suffix=" ago" />}
      </Fact>
      <Fact name="Request">
        <Name text={name} className="mono" />
      </Fact>
      {agentVersion !== null && <Fact name="Agent">{agentVersion}</Fact>}
    </dl>
  )
}
