import { type ReactNode, useState } from 'react'
import { Jointed, Name } from '../../components/name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { Failure } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { useMemberRequests } from '../../live/use-members.ts'
import { formatCount, plural } from '../../model/format.ts'
import { type MemberRequest, requestsByMember, shortKey } from '../../model/members.ts'
import type { Asked } from './decide.tsx'
import { Fact } from './member-parts.tsx'

const stepOfShown = 50

/** Who asks to be a member, with what tells them apart; each waits for a person. */
export function Requests({ ask, of }: { ask: (asked: Asked) => void; of?: string }): ReactNode {
  const listed = useMemberRequests()
  const [most, setMost] = useState(stepOfShown)
  if (listed.state === 'failed')
    return <Failure problem={listed.problem} onRetry={listed.again} title="The requests to join could not be loaded" />
  if (listed.state === 'unread')
    return (
      <p className="notice is-degraded" role="status">
        Whether anybody asks to join is not known: {listed.part.message}.
      </p>
    )
  if (listed.state !== 'here') return null
  const asking = requestsByMember(listed.items.filter(({ member }) => of === undefined || member === of))
  if (asking.length === 0) return of === undefined ? <p className="fine nobody-asks">Nobody asks to join.</p> : null
  const count = asking.reduce((sum, [, requests]) => sum + requests.length, 0)
  return (
    <section className="panel requests" aria-labelledby="requests">
      <div className="panel-head">
        <h2 id="requests">{plural(count, 'request')} to join</h2>
      </div>
      <NotUpdated problem={listed.problem} onRetry={listed.again} />
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
                <Request key={request.name} request={request} ask={ask} />
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
    </section>
  )
}

function Request({ request, ask }: { request: MemberRequest; ask: (asked: Asked) => void }): ReactNode {
  const { name, member, key } = request
  const about = { member, request: name, facts: <RequestFacts request={request} /> }
  const which = `${member}${key ? `, key ${shortKey(key)}` : ''}`
  return (
    <li className="request">
      <RequestFacts request={request} />
      <span className="request-ways">
        <button
          type="button"
          className="button is-primary"
          onClick={() => ask({ ...about, decision: 'accept' })}
          aria-label={`Accept ${which}`}
        >
          Accept
        </button>
        <button
          type="button"
          className="button"
          onClick={() => ask({ ...about, decision: 'deny' })}
          aria-label={`Deny ${which}`}
        >
          Deny
        </button>
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
