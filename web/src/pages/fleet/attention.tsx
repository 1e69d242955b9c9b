import { type ReactNode, useMemo, useState } from 'react'
import { ClusterName } from '../../components/cluster-name.tsx'
import { HealthMark } from '../../components/health.tsx'
import { Jointed, WithNames } from '../../components/name.tsx'
import { AgentMark, Warned } from '../../components/push.tsx'
import { Age } from '../../components/text.tsx'
import { AUTHORITY_LOST, type ClusterView, causeIn, type EventView } from '../../contract.ts'
import { newestFirst } from '../../live/fleet.ts'
import { useAllOld, useLive } from '../../live/hooks.ts'
import { useSetName } from '../../live/use-cluster-set.ts'
import { useTroubledMembers } from '../../live/use-members.ts'
import {
  type Cause,
  type ChangeGroup,
  type Complaint,
  clustersOf,
  groupCauses,
  groupChanges,
  sharedText,
} from '../../model/causes.ts'
import {
  factsAt,
  forgotten,
  healthChanges,
  type Need,
  needOf,
  needWord,
  severityOf,
  turnText,
} from '../../model/cluster.ts'
import { isCurrent } from '../../model/current.ts'
import { type EventLine, eventLine } from '../../model/events.ts'
import { formatCount, plural } from '../../model/format.ts'
import { type Member, type MemberTrouble, memberTroubles } from '../../model/members.ts'
import { type AgentTrouble, agentTroubles, isWaitedFor, severityOfTrouble, troubleOf } from '../../model/push.ts'
import { clusterPath, eventsPath, Link, membersPath, navigate, setQuery } from '../../router.tsx'
import { useSeesMembers } from '../../types-seen.ts'
import { lostLately } from './use-losses.ts'

const shownAtMost = 5
const HOUR_MS = 3_600_000

interface StripProps {
  readonly clusters: readonly ClusterView[]
  /** of batches that will never come, newest first */
  readonly losses: readonly EventView[]
  readonly now: number
}

/**
 * Who needs a person, worst first, and why; then the agents that do, of clusters that are well. Equal causes are one line, and so
 * are members that are lost, however many and whatever is said of their clusters.
 */
export function Attention(props: StripProps): ReactNode {
  return useSeesMembers() ? <WithMembers {...props} /> : <Needs {...props} troubled={nobody} unknown={null} />
}

const nobody: readonly Member[] = []

function WithMembers(props: StripProps): ReactNode {
  const { members, unknown } = useTroubledMembers()
  const set = useSetName()
  return (
    <Needs
      {...props}
      troubled={set === '' ? members : members.filter(({ sets }) => sets.includes(set))}
      unknown={unknown}
    />
  )
}

interface NeedsProps extends StripProps {
  /** members that need somebody */
  readonly troubled: readonly Member[]
  /** why it is not known whether members do; null: it is */
  readonly unknown: string | null
}

function Needs({ clusters, losses, now, troubled, unknown }: NeedsProps): ReactNode {
  const ofMembers = memberTroubles(troubled, now)
  // What is said of their clusters is that nothing is heard of them.
  const lost = ofMembers
    .filter(({ code }) => code === 'lost' || code === 'locked-out')
    .flatMap(({ members }) => members.map(({ name }) => name))
    .join(' ')
  const heard = useMemo(() => {
    const names = new Set(lost.split(' '))
    return lost === '' ? clusters : clusters.filter(({ name }) => !names.has(name))
  }, [clusters, lost])
  const { needy, agents, troubles } = useMemo(() => whoNeeds(heard, losses, now), [heard, losses, now])
  const causes = useMemo(() => needs.flatMap((need) => causesOf(needy, need, now)), [needy, now])
  const agentCauses = useMemo(
    () => groupCauses(agents, (cluster) => agentComplaint(cluster, troubles.get(cluster.name))),
    [agents, troubles],
  )
  // However many clusters are ill, one line is for the agents.
  const room = shownAtMost - ofMembers.length
  const shown = causes.slice(0, room - Math.min(agentCauses.length, 1))
  const shownAgents = agentCauses.slice(0, room - shown.length)
  const isAllOld = useAllOld()
  const partly = clusters.some(({ filtered }) => filtered)
  const awaited = clusters.filter((cluster) => !cluster.agent?.connected && isWaitedFor(cluster, now)).length
  const [moreNeedy, moreAgents] = [restOf(causes, shown), restOf(agentCauses, shownAgents)]
  return (
    <section className="panel attention" aria-labelledby="attention">
      <div className="panel-head">
        <h2 id="attention">Needs attention</h2>
        {moreNeedy > 0 && (
          <button type="button" className="text-button" onClick={() => setQuery({ q: '-needs:healthy' })}>
            and {formatCount(moreNeedy)} more
          </button>
        )}
        {moreAgents > 0 && (
          <button type="button" className="text-button" onClick={() => setQuery({ q: agentsQuery })}>
            and {plural(moreAgents, 'more agent')}
          </button>
        )}
      </div>
      {unknown !== null && <p className="fine short">▲ Whether members need somebody is not known: {unknown}</p>}
      {needy.length + agents.length + ofMembers.length === 0 ? (
        <p className="calm">
          <HealthMark need="healthy" bare word="" />{' '}
          {isAllOld || awaited > 0
            ? 'As last heard, every cluster was healthy and had been read on time'
            : 'Every cluster is healthy and was read on time'}
          {partly && ', as far as you see it'}.
          {awaited > 0 && ` The hub was away a moment ago and waits for the agents of ${plural(awaited, 'cluster')}.`}
        </p>
      ) : (
        <ul>
          {ofMembers.map((trouble) => (
            <MemberLine key={trouble.code} trouble={trouble} />
          ))}
          {shown.map(({ need, query, key, text, items: [cluster, ...others], isSame }) => (
            <li key={`${need} ${key}`}>
              <HealthMark need={need} bare />
              {cluster && others.length === 0 ? (
                <div className="line">
                  <Reason cluster={cluster} text={complaintOf(cluster, need).text} />
                  <Chips cluster={cluster} troubles={troubles.get(cluster.name) ?? []} now={now} />
                </div>
              ) : (
                cluster && (
                  <Several
                    title={`${plural(others.length + 1, 'cluster')}: ${text}`}
                    items={[cluster, ...others]}
                    to={({ name }) => clusterPath(name)}
                    onAll={() => setQuery({ q: query })}
                    say={(each) => (isSame ? '' : complaintOf(each, need).text)}
                    chips={(each) => <Chips cluster={each} troubles={troubles.get(each.name) ?? []} now={now} />}
                    asOf={<AsOfTag clusters={[cluster, ...others]} now={now} />}
                  />
                )
              )}
            </li>
          ))}
          {shownAgents.map(({ key, text, items: [cluster, ...others], isSame }) => (
            <li key={key}>
              <AgentMark />
              {cluster && others.length === 0 ? (
                <AgentLine cluster={cluster} troubles={troubles.get(cluster.name) ?? []} now={now} />
              ) : (
                cluster && (
                  <Several
                    title={`${plural(others.length + 1, 'agent')}: ${text}`}
                    items={[cluster, ...others]}
                    to={({ name }) =>
                      clusterPath(name, troubles.get(cluster.name)?.[0]?.code === 'lost' ? 'history' : 'overview')
                    }
                    onAll={() => setQuery({ q: agentsQuery })}
                    say={(each) => (isSame ? '' : (troubles.get(each.name)?.[0]?.text ?? ''))}
                    chips={(each) => <AgentChips cluster={each} troubles={troubles.get(each.name) ?? []} now={now} />}
                    asOf={<AsOfTag clusters={[cluster, ...others]} now={now} />}
                  />
                )
              )}
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

const needs: readonly Need[] = ['unhealthy', 'degraded', 'unknown', 'stale']

const restOf = (all: readonly Cause<unknown>[], shown: readonly Cause<unknown>[]): number =>
  all.slice(shown.length).reduce((sum, { items }) => sum + items.length, 0)

function causesOf(needy: readonly ClusterView[], need: Need, now: number) {
  const clusters = needy.filter((cluster) => needOf(cluster, now) === need)
  return groupCauses(clusters, (cluster) => complaintOf(cluster, need)).map((cause) => {
    const code = cause.items[0]?.reasons[0]?.code
    return { ...cause, need, query: `needs:${need}${need !== 'stale' && code ? ` reason:${code}` : ''}` }
  })
}

/** The first of what a cluster suffers: what its line says. */
function complaintOf(cluster: ClusterView, need: Need): Complaint {
  const [first] = cluster.reasons
  const text = need === 'stale' ? staleText : causeIn(first?.message ?? (cluster.message || needWord[need]))
  return { code: need === 'stale' ? 'stale' : (first?.code ?? ''), text, shared: sharedText(text, cluster) }
}
const staleText = 'healthy when last read, but not read on time since'

const agentComplaint = (cluster: ClusterView, [first]: readonly AgentTrouble[] = []): Complaint => ({
  code: first?.code ?? '',
  text: first?.text ?? '',
  shared: sharedText(first?.text ?? '', cluster),
})

/** So many names are unfolded; the table has them all. */
const namesAtMost = 40

const memberWords = {
  'locked-out': {
    need: 'unhealthy',
    one: 'must join anew: the hub no longer has the authority of its certificate',
    many: 'members must join anew: the hub no longer has the authority of their certificates',
  },
  lost: { need: 'unhealthy', one: 'lost: nothing is heard of it', many: 'members lost: nothing is heard of them' },
  unreachable: {
    need: 'unhealthy',
    one: 'unreachable: its API does not answer',
    many: 'members unreachable: their APIs do not answer',
  },
  certificate: {
    need: 'degraded',
    one: 'its certificate was not renewed in time: it ends soon, or has ended',
    many: 'members: certificates were not renewed in time, and end soon or have ended',
  },
} as const
const memberQueries = {
  'locked-out': `reason:${AUTHORITY_LOST}`,
  lost: `state:lost -reason:${AUTHORITY_LOST}`,
  unreachable: 'state:unreachable',
  certificate: 'renewBy>0s',
} as const

/** Members that suffer the same, since when the first does. */
function MemberLine({ trouble: { code, members, since } }: { trouble: MemberTrouble }): ReactNode {
  const { need, one, many } = memberWords[code]
  const [first, ...others] = members
  const age = since !== null && (
    <span className="tag">
      {others.length > 0 && 'first '}
      <Age at={since} suffix=" ago" />
    </span>
  )
  return (
    <li>
      <HealthMark need={need} bare />
      {others.length === 0 ? (
        <div className="line">
          <span className="cut">
            <Link to={membersPath(first.name)}>
              <ClusterName name={first.name} />
            </Link>{' '}
            <span className="why" title={code === 'locked-out' ? first.message : one}>
              {one}
            </span>
          </span>
          {age}
        </div>
      ) : (
        <Several
          title={`${formatCount(members.length)} ${many}`}
          items={members}
          to={({ name }) => membersPath(name)}
          onAll={() => navigate(`${membersPath()}?${new URLSearchParams({ q: memberQueries[code] })}`)}
          say={({ reason }) => (code === 'certificate' || code === 'locked-out' ? '' : reason)}
          chips={() => null}
          asOf={age}
        />
      )}
    </li>
  )
}

/** Several clusters of one cause: a line that unfolds into their names. */
function Several<T extends { readonly name: string }>({
  title,
  items,
  to,
  onAll,
  say,
  chips,
  asOf,
}: {
  title: string
  items: readonly T[]
  /** where one of them is shown */
  to: (item: T) => string
  /** shows all of them in their table */
  onAll: () => void
  /** of one its own words; '' where they are those of the line */
  say: (item: T) => string
  /** what else is to be known of one */
  chips: (item: T) => ReactNode
  /** of when the line is */
  asOf: ReactNode
}): ReactNode {
  return (
    <details className="several">
      <summary>
        <span className="line">
          <span className="cut" title={title}>
            {title}
          </span>{' '}
          {asOf}
        </span>
      </summary>
      <ul className="names">
        {items.slice(0, namesAtMost).map((item) => (
          <li key={item.name}>
            <Link to={to(item)}>
              <ClusterName name={item.name} />
            </Link>{' '}
            <span className="why">
              <Jointed text={say(item)} />
              {chips(item)}
            </span>
          </li>
        ))}
        <li>
          <button type="button" className="text-button" onClick={onAll}>
            {items.length > namesAtMost ? `all ${formatCount(items.length)} in the table` : 'in the table'}
          </button>
        </li>
      </ul>
    </details>
  )
}

const agentsQuery = 'needs:healthy push:odd,two-agents,silent,catching-up,lost,plaintext'

function whoNeeds(clusters: readonly ClusterView[], losses: readonly EventView[], now: number) {
  const lost = lostLately(losses, now)
  const troubles = new Map<string, readonly AgentTrouble[]>()
  for (const cluster of clusters) {
    const found = agentTroubles(cluster, now, lost.get(cluster.name))
    if (found.length > 0) troubles.set(cluster.name, found)
  }
  const byName = (a: ClusterView, b: ClusterView) => (a.name < b.name ? -1 : 1)
  const rank = ({ name }: ClusterView) => severityOfTrouble(troubles.get(name))
  return {
    needy: clusters
      .filter((cluster) => troubleOf(cluster, now) !== 'healthy')
      .sort((a, b) => severityOf(a, now) - severityOf(b, now) || byName(a, b)),
    agents: clusters
      .filter((cluster) => troubleOf(cluster, now) === 'healthy' && troubles.has(cluster.name))
      .sort((a, b) => rank(a) - rank(b) || byName(a, b)),
    troubles,
  }
}

/** Who suffers and of what; the words give way to the chips behind them where there is little room. */
const Reason = ({
  cluster: { name },
  tab = 'overview',
  text,
}: {
  cluster: ClusterView
  tab?: 'overview' | 'history'
  text: string
}): ReactNode => (
  <span className="cut">
    <Link to={clusterPath(name, tab)}>
      <ClusterName name={name} />
    </Link>{' '}
    <span className="why" title={text}>
      <Jointed text={text} />
    </span>
  </span>
)

interface ChipsProps {
  readonly cluster: ClusterView
  readonly troubles: readonly AgentTrouble[]
  readonly now: number
}

function AgentLine({ cluster, troubles, now }: ChipsProps): ReactNode {
  const [first] = troubles
  return (
    <div className="line">
      <Reason cluster={cluster} tab={first?.code === 'lost' ? 'history' : 'overview'} text={first?.text ?? ''} />
      <AgentChips cluster={cluster} troubles={troubles} now={now} />
    </div>
  )
}

/** The first trouble is said in words. */
const AgentChips = ({ cluster, troubles, now }: ChipsProps): ReactNode => (
  <>
    <AsOfTag clusters={[cluster]} now={now} />
    <TroubleTags troubles={troubles.slice(1)} />
  </>
)

const TroubleTags = ({ troubles }: { troubles: readonly AgentTrouble[] }): ReactNode =>
  troubles.map(({ code, short, text }) => (
    <span key={code} className="tag is-warning" data-tip={text}>
      <Warned />
      {short}
    </span>
  ))

/** What stands behind the first reason of a cluster, folded or not: how many more there are, of when it is, what its agent suffers. */
function Chips({ cluster, troubles, now }: ChipsProps): ReactNode {
  const more = cluster.reasons.length - 1
  return (
    <>
      {needOf(cluster, now) !== 'stale' && more > 0 && <span className="tag">+{formatCount(more)}</span>}
      <AsOfTag clusters={[cluster]} now={now} />
      <TroubleTags troubles={troubles} />
    </>
  )
}

/** Of when what is said of these clusters is, where it is not of now: the oldest of it. */
function AsOfTag({ clusters, now }: { clusters: readonly ClusterView[]; now: number }): ReactNode {
  const isAllOld = useAllOld()
  const times = clusters.flatMap((cluster) => {
    const at = factsAt(cluster) ?? (isAllOld ? cluster.checkedAt : null)
    return at !== null && (isAllOld || !isCurrent(cluster, 'node', now)) ? [at] : []
  })
  if (times.length === 0) return null
  return (
    <span className="tag">
      as of <Age at={Math.min(...times)} suffix=" ago" />
    </span>
  )
}

/** What turned within the last hour: health from the heartbeats, the rest as it was heard in this tab. */
export function RecentChanges({ clusters, losses, now }: StripProps): ReactNode {
  const heard = useLive((live) => live.fleet.events)
  const events = useMemo(() => newestFirst(heard, losses), [heard, losses])
  const groups = useMemo(() => groupChanges(recentLines(clusters, events, now)), [clusters, events, now])
  const more = groups.length - shownAtMost
  const { count, knownSince } = forgotten(clusters, now - HOUR_MS)
  const [openedAt] = useState(() => now - performance.now())
  const isYoung = openedAt > now - HOUR_MS
  return (
    <section className="panel changes" aria-labelledby="changes">
      <div className="panel-head">
        <h2 id="changes">Changes of the last hour</h2>
        {more > 0 && (
          <p className="fine">
            and {formatCount(more)} more<span className="wide-only">, on the Events tab of each cluster</span>
          </p>
        )}
      </div>
      {groups.length === 0 ? (
        <p className="calm">{count === 0 && !isYoung ? 'Nothing has changed.' : 'Nothing is known to have changed.'}</p>
      ) : (
        <ol>
          {groups.slice(0, shownAtMost).map((group) => (
            <Change key={group.lines.at(-1)?.key} group={group} />
          ))}
        </ol>
      )}
      {isYoung && (
        <p className="fine">
          Health of the last hour; all else since this page was opened <Age at={openedAt} suffix=" ago" />. Before that:{' '}
          <Link to={eventsPath}>Events</Link>.
        </p>
      )}
      {count > 0 && (
        <p className="fine">
          The health of {plural(count, 'cluster')} is remembered for the last <Age at={knownSince} /> only.
        </p>
      )}
    </section>
  )
}

function Change({ group: { lines, of } }: { group: ChangeGroup }): ReactNode {
  const [{ at, need, cluster, text }] = lines
  return (
    <li>
      <Age at={at} />
      <HealthMark need={need} bare word="" />
      {of === 'one' ? (
        <span className="line">
          <Link to={clusterPath(cluster)}>
            <ClusterName name={cluster} />
          </Link>{' '}
          <WithNames text={text} />
        </span>
      ) : (
        <details className="several">
          <summary className="line">
            {of === 'clusters' ? (
              severalText(lines)
            ) : (
              <>
                <ClusterName name={cluster} /> <WithNames text={text} />{' '}
                <span className="tag">+{formatCount(lines.length - 1)} alike</span>
              </>
            )}
          </summary>
          <ul className="names">
            {lines.slice(0, namesAtMost).map((line) => (
              <li key={line.key}>
                <Link to={clusterPath(line.cluster)}>
                  <ClusterName name={line.cluster} />
                </Link>{' '}
                <span className="why">
                  {of === 'kind' && <WithNames text={line.text} />} <Age at={line.at} suffix=" ago" />
                </span>
              </li>
            ))}
            {lines.length > namesAtMost && <li className="fine">and {formatCount(lines.length - namesAtMost)} more</li>}
          </ul>
        </details>
      )}
    </li>
  )
}

/** `4 clusters, 7 times: turned degraded, was healthy` */
function severalText(lines: ChangeGroup['lines']): string {
  const count = clustersOf(lines)
  const times = lines.length > count ? `, ${formatCount(lines.length)} times` : ''
  return `${plural(count, 'cluster')}${times}: ${lines[0].text}`
}

export function recentLines(clusters: readonly ClusterView[], events: readonly EventView[], now: number): EventLine[] {
  const since = now - HOUR_MS
  const turns = healthChanges(clusters, since).map(
    (change): EventLine => ({
      key: `${change.cluster} ${change.at} health`,
      cluster: change.cluster,
      type: 'cluster.health',
      at: change.at,
      need: change.to,
      text: turnText(change),
      detail: '',
    }),
  )
  const known = new Set(clusters.map(({ name }) => name))
  const heard = events
    .filter(
      ({ type, at, cluster }) =>
        at >= since && known.has(cluster) && !type.startsWith('cluster.health') && type !== 'cluster.reconciled',
    )
    .map(eventLine)
  return [...turns, ...heard].sort((a, b) => b.at - a.at)
}
