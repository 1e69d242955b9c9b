import { type ReactNode, useCallback, useMemo } from 'react'
import { HealthMark, HeartbeatStrip, heartbeatText } from '../../components/health.tsx'
import { Jointed } from '../../components/name.tsx'
import { NotUpdated } from '../../components/not-updated.tsx'
import { Pairs } from '../../components/pairs.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { CLAIMS, type ClusterView, type MemberDecision, type MemberDecisionsView } from '../../contract.ts'
import { newestFirst } from '../../live/fleet.ts'
import { useAtTime, useCluster, useHub, useLive } from '../../live/hooks.ts'
import { type Answer, useAnswer } from '../../live/use-answer.ts'
import { useMemberDecisions } from '../../live/use-member-decisions.ts'
import { useMember } from '../../live/use-members.ts'
import type { Need } from '../../model/cluster.ts'
import { eventLine } from '../../model/events.ts'
import { beginningSentence, formatMoment, formatSpan } from '../../model/format.ts'
import {
  acceptedSince,
  certificateStateOf,
  hasTwoAgents,
  isEnded,
  isLockedOut,
  type Member,
  type MemberCondition,
  returnOf,
} from '../../model/members.ts'
import { clusterPath, Link, membersPath } from '../../router.tsx'
import { useSession } from '../../session.ts'
import { PageHeading } from '../../shell/page-heading.tsx'
import { type Asked, Lacking, useDecisions } from './decide.tsx'
import { CertificateEnd, Fact, MemberStateMark, noCertificate } from './member-parts.tsx'
import { Requests } from './requests.tsx'

/** One member: how it lives, by which certificate, what it says of itself, what its agent may, and what may be decided about it. */
export function MemberPage({ name }: { name: string }): ReactNode {
  const listed = useMember(name)
  const administrator = useSession()?.user?.administrator === true
  const [decisions, again] = useMemberDecisions(name)
  const { ask, shown } = useDecisions(again)
  const member = listed.state === 'here' ? listed.items[0] : undefined
  return (
    <>
      <PageHeading title={name} after={member && <StatusLine member={member} />}>
        {name}
      </PageHeading>
      {shown}
      {listed.state !== 'off' && <Requests ask={ask} decisions={decisions} again={again} of={name} />}
      {listed.state === 'waiting' ? (
        <Skeleton label="Loading the member" />
      ) : listed.state === 'failed' ? (
        <Failure problem={listed.problem} onRetry={listed.again} title="The member could not be loaded" />
      ) : listed.state === 'unread' ? (
        <Empty title="The members are not known yet">
          <p>The hub has not read them: {listed.part.message}. They appear here by themselves.</p>
        </Empty>
      ) : member === undefined ? (
        <NoSuchMember />
      ) : (
        <>
          {(isEnded(member) || isLockedOut(member) || hasTwoAgents(member)) && member.message !== '' && (
            <p className="notice is-unknown" role="status">
              <Jointed text={beginningSentence(member.message)} />
            </p>
          )}
          {listed.state === 'here' && <NotUpdated problem={listed.problem} asOf={listed.asOf} onRetry={listed.again} />}
          <Ways member={member} ask={ask} decisions={decisions} again={again} isTold={administrator} />
          <div className="member-panels">
            <Conditions member={member} />
            <Certificate member={member} />
            <Identity member={member} />
            <Amounts member={member} />
            <section className="panel" aria-labelledby="member-claims">
              <h2 id="member-claims">Claims</h2>
              <Pairs pairs={member.claims} none="It has told none." mono />
            </section>
            <Rights member={member} />
            <Availability member={member} />
          </div>
        </>
      )}
    </>
  )
}

const NoSuchMember = (): ReactNode => (
  <Empty title="There is no such member, or it is not for you to see">
    <p>It may have been detached since this link was made.</p>
    <Link to={membersPath()} className="button">
      To the members
    </Link>
  </Empty>
)

function StatusLine({ member }: { member: Member }): ReactNode {
  const cluster = useCluster(member.name)
  return (
    <p className="status-line">
      <MemberStateMark member={member} />
      {member.since !== null && (
        <span className="as-of">
          for <Age at={member.since} focusable />
        </span>
      )}
      {member.version !== null && <span className="mono">{member.version}</span>}
      {cluster && <Link to={clusterPath(member.name)}>As a cluster of the fleet</Link>}
    </p>
  )
}

/** What may be decided about it as it is now, by whoever looks. Of one that asks, its requests say it. */
function Ways({
  member,
  ask,
  decisions,
  again,
  isTold,
}: {
  member: Member
  ask: (asked: Asked) => void
  decisions: Answer<MemberDecisionsView>
  again: () => void
  /** who may nothing is told what is missing */
  isTold: boolean
}): ReactNode {
  const { name } = member
  const asks = decisions.state === 'here' && decisions.value.requests.length > 0
  // Who asks now is accepted with the key in view.
  const possible = waysOf(member).filter((way) => way !== 'accept' || !asks)
  const becomes = returnOf(member)
  const ways = {
    accept: becomes,
    revoke: returnOf({ ...member, state: 'revoked' }),
    deny: undefined,
    detach: undefined,
  }
  const may = decisions.state === 'here' ? possible.filter((way) => decisions.value.may.includes(way)) : []
  if (possible.length === 0) return null
  return (
    <>
      {may.length > 0 && (
        <fieldset className="member-ways" aria-label={`Decide about ${name}`}>
          {may.map((decision) => (
            <button
              key={decision}
              type="button"
              className="button"
              onClick={() => ask({ decision, member: name, ...(ways[decision] && { becomes: ways[decision] }) })}
            >
              {decision === 'accept' && becomes !== 'never joined' ? 'Accept again' : beginningSentence(decision)}…
            </button>
          ))}
        </fieldset>
      )}
      {(isTold || may.length > 0) && <Lacking decisions={decisions} of={possible} onRetry={again} />}
    </>
  )
}

function waysOf(member: Member): readonly MemberDecision[] {
  const { accepted, state } = member
  if (state === 'detaching') return []
  const isOut = !accepted && state !== 'not accepted yet'
  return [...(isOut ? (['accept'] as const) : accepted ? (['deny'] as const) : []), 'revoke', 'detach']
}

/** Conditions of which True is no good news. */
const badWhenTrue = new Set(['Deleting'])

function needOfCondition({ type, status }: Pick<MemberCondition, 'type' | 'status'>): Need {
  if (status === 'Unknown') return 'unknown'
  return (status === 'True') === badWhenTrue.has(type) ? 'unhealthy' : 'healthy'
}

function Conditions({ member: { conditions, taints } }: { member: Member }): ReactNode {
  return (
    <section className="panel is-wide" aria-labelledby="member-conditions">
      <h2 id="member-conditions">Conditions</h2>
      {conditions.length === 0 ? (
        <p className="fine">The cluster is neither accepted nor denied yet, so nothing is said of it.</p>
      ) : (
        <ul className="conditions">
          {conditions.map(({ type, status, reason, message, since }) => (
            <li key={type} className="condition">
              <b>
                <Jointed text={type} />
              </b>
              <HealthMark need={needOfCondition({ type, status })} word={status} />
              <span className="as-of">
                {since === null ? (
                  <Missing why="the condition does not say since when" focusable />
                ) : (
                  <>
                    for <Age at={since} focusable />
                  </>
                )}
              </span>
              <p>
                <Jointed text={message || reason} />
                {message !== '' && <span className="sub mono">{reason}</span>}
              </p>
            </li>
          ))}
        </ul>
      )}
      {taints.length > 0 && (
        <ul className="tags" aria-label="Taints">
          {taints.map((taint) => (
            <li key={taint} className="tag is-warning">
              <Jointed text={taint} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

const certificateWord = {
  valid: 'counts',
  renewing: 'counts; it is renewed these days',
  overdue: 'counts, and ought to have been renewed',
  ended: 'has ended',
} as const

function Certificate({ member }: { member: Member }): ReactNode {
  const { certificateFrom, certificateUntil, renewsFrom, renewBy } = member
  const state = useAtTime((now) => certificateStateOf(member, now))
  return (
    <section className="panel" aria-labelledby="member-certificate">
      <h2 id="member-certificate">Certificate</h2>
      {state === 'none' || certificateFrom === null || renewsFrom === null || renewBy === null ? (
        <p className="fine">{noCertificate(member)}</p>
      ) : (
        <dl className="pairs">
          <Fact name="State">{certificateWord[state]}</Fact>
          <Fact name="From">
            <Moment at={certificateFrom} />
          </Fact>
          <Fact name="Ends">
            <CertificateEnd member={member} />
            {certificateUntil !== null && <Exactly at={certificateUntil} />}
          </Fact>
          <Fact name="Next renewal">
            <Moment at={renewsFrom} />
            <Exactly at={renewBy} words="late after" />
          </Fact>
        </dl>
      )}
    </section>
  )
}

/** Past or to come, with the moment itself below. */
function Moment({ at }: { at: number }): ReactNode {
  const text = useAtTime((now) => (at > now ? `in ${formatSpan(at - now)}` : `${formatSpan(now - at)} ago`))
  return (
    <>
      {text}
      <Exactly at={at} />
    </>
  )
}

/** The moment here and in UTC; neither is broken in itself. */
const Exactly = ({ at, words = '' }: { at: number; words?: string }): ReactNode => (
  <span className="sub">
    {words}{' '}
    {formatMoment(at)
      .split(' · ')
      .map((part, place) => (
        <span key={part}>
          {place > 0 && ' · '}
          <span className="whole">{part}</span>
        </span>
      ))}
  </span>
)

function Identity({ member }: { member: Member }): ReactNode {
  const { transport, createdAt, sets, labels } = member
  return (
    <section className="panel" aria-labelledby="member-identity">
      <h2 id="member-identity">What it is</h2>
      <dl className="pairs">
        <Fact name="Speaks by">
          {transport === 'stream' ? (
            'our agent, on its stream'
          ) : transport === 'api' ? (
            'an agent that is a client of the hub’s API'
          ) : (
            <Missing why="nobody was accepted yet" focusable />
          )}
        </Fact>
        <Fact name="Known since">
          {createdAt === null ? <Missing why="the hub does not say" focusable /> : <Age at={createdAt} focusable />}
        </Fact>
        <Fact name="Sets">
          {sets.length === 0
            ? 'none'
            : sets.map((set, place) => (
                <span key={set}>
                  {place > 0 && ', '}
                  <Link to={`/?set=${encodeURIComponent(set)}`}>{set}</Link>
                </span>
              ))}
        </Fact>
      </dl>
      {Object.keys(labels).length > 0 && (
        <ul className="tags" aria-label="Labels">
          {Object.entries(labels).map(([key, value]) => (
            <li className="tag mono" key={key}>
              <Jointed text={`${key}=${value}`} />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function Amounts({ member: { capacity, allocatable } }: { member: Member }): ReactNode {
  const names = [...new Set([...Object.keys(capacity), ...Object.keys(allocatable)])]
  return (
    <section className="panel" aria-labelledby="member-amounts">
      <h2 id="member-amounts">Capacity</h2>
      {names.length === 0 ? (
        <p className="fine">It has told none.</p>
      ) : (
        <table className="facts amounts">
          <thead>
            <tr>
              <th scope="col">Resource</th>
              <th scope="col">Capacity</th>
              <th scope="col">Allocatable</th>
            </tr>
          </thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td className="mono">{capacity[name] ?? <Missing why="not told" focusable />}</td>
                <td className="mono">{allocatable[name] ?? <Missing why="not told" focusable />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}

/** As the hub gives them to every member (docs/guide/members.md). */
const rightsOnHub: readonly (readonly [rights: string, on: string])[] = [
  ['create, read', 'certificate requests; renew its own certificate'],
  ['read, update, status', 'its own ManagedCluster, whose addresses it may change, and neither labels nor taints'],
  ['read, update', 'leases in its namespace'],
  ['read, status', 'add-ons in its namespace'],
  ['read, update, status', 'works in its namespace; it neither makes nor deletes them'],
  ['create, update', 'events in its namespace'],
]

function Rights({ member: { name, accepted, claims } }: { member: Member }): ReactNode {
  const onCluster = claims[CLAIMS.rights]
  return (
    <section className="panel is-wide" aria-labelledby="member-rights">
      <h2 id="member-rights">Rights of its agent on the hub</h2>
      {accepted ? (
        <dl className="pairs">
          {rightsOnHub.map(([rights, on]) => (
            <Fact key={on} name={rights}>
              {on}
            </Fact>
          ))}
        </dl>
      ) : (
        <p>It may read its own ManagedCluster, {name}, and nothing else.</p>
      )}
      <h3>On its own cluster, as it tells</h3>
      {onCluster === undefined ? (
        <p className="fine">It has not told; that was chosen where it joined.</p>
      ) : (
        <>
          <p>
            <Jointed text={onCluster} />
          </p>
          <p className="fine">The member says so; the hub cannot look. Roles on the cluster decide.</p>
        </>
      )}
    </section>
  )
}

const lifeEvents = new Set(['agent.connected', 'agent.disconnected', 'cluster.health', 'cluster.added'])
const mostEvents = 12

function Availability({ member }: { member: Member }): ReactNode {
  const cluster = useCluster(member.name)
  const available = member.conditions.find(({ type }) => type === 'ManagedClusterConditionAvailable')
  // Rounds that were buffered before, and what was said of a former membership, are no part of this one.
  const from = acceptedSince(member) ?? 0
  return (
    <section className="panel is-wide changes" aria-labelledby="member-availability">
      <h2 id="member-availability">Availability so far</h2>
      {available?.since != null && (
        <p>
          {available.status === 'True' ? 'Available' : available.status === 'False' ? 'Not available' : 'Not heard of'}{' '}
          for <Age at={Math.max(available.since, from)} focusable />.
        </p>
      )}
      {cluster ? (
        <Past cluster={cluster} from={from} />
      ) : (
        <p className="fine">
          The hub does not monitor this cluster, or not for you, so it keeps no more of its past than since when its
          conditions are as they are.
        </p>
      )}
    </section>
  )
}

/** @param from what is older is not of it, ms since the Unix epoch */
function Past({ cluster, from }: { cluster: ClusterView; from: number }): ReactNode {
  const { client } = useHub()
  const { name, filtered } = cluster
  const heartbeats = useMemo(() => cluster.heartbeats.filter(({ at }) => at >= from), [cluster.heartbeats, from])
  const beats = useAtTime((now) => heartbeatText({ heartbeats, filtered }, now))
  const ask = useCallback((signal: AbortSignal) => client.events(name, { limit: 100 }, signal), [client, name])
  const [answer, again] = useAnswer(ask)
  const heard = useLive((live) => live.fleet.events)
  const lines = useMemo(() => {
    const told = answer.state === 'here' ? answer.value.items : []
    const mine = heard.filter((event) => event.cluster === name)
    return newestFirst(mine, told)
      .filter(({ type, at }) => lifeEvents.has(type) && at >= from)
      .slice(0, mostEvents)
      .map(eventLine)
  }, [heard, answer, name, from])
  return (
    <>
      <HeartbeatStrip heartbeats={heartbeats} filtered={filtered} />
      <p className="fine">{beats}.</p>
      {answer.state === 'failed' && (
        <p className="fine">
          What happened before could not be loaded: {answer.problem.message}{' '}
          <button type="button" className="text-button" onClick={again}>
            Retry
          </button>
        </p>
      )}
      <ol>
        {lines.map((line) => (
          <li key={line.key}>
            <Age at={line.at} />
            <HealthMark need={line.need} bare word="" />
            <span>
              <Jointed text={line.text} />
            </span>
          </li>
        ))}
      </ol>
      <p>
        <Link to={clusterPath(name, 'events')}>All events</Link> ·{' '}
        <Link to={clusterPath(name, 'history')}>History</Link>
      </p>
    </>
  )
}
