import { type ReactNode, useMemo } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { AgentMark, Warned } from '../../components/push.tsx'
import { Age } from '../../components/text.tsx'
import type { ClusterView, EventView } from '../../contract.ts'
import { newestFirst } from '../../live/fleet.ts'
import { useLive } from '../../live/hooks.ts'
import { factsAt, healthChanges, isStale, needOf, needWord, severityOf } from '../../model/cluster.ts'
import { type EventLine, eventLine } from '../../model/events.ts'
import { plural } from '../../model/format.ts'
import { type AgentTrouble, agentTroubles, severityOfTrouble } from '../../model/push.ts'
import { clusterPath, Link, setQuery } from '../../router.tsx'
import { lostLately } from './use-losses.ts'

const shownAtMost = 5

interface StripProps {
  readonly clusters: readonly ClusterView[]
  /** of batches that will never come, newest first */
  readonly losses: readonly EventView[]
  readonly now: number
}

/** Who needs a person, worst first, and why; then the agents that do, of clusters that are well. */
export function Attention({ clusters, losses, now }: StripProps): ReactNode {
  const { needy, agents, troubles } = useMemo(() => whoNeeds(clusters, losses, now), [clusters, losses, now])
  // However many clusters are ill, one line is for the agents.
  const shownNeedy = needy.slice(0, shownAtMost - Math.min(agents.length, 1))
  const shownAgents = agents.slice(0, shownAtMost - shownNeedy.length)
  const partly = clusters.some(({ filtered }) => filtered)
  const [moreNeedy, moreAgents] = [needy.length - shownNeedy.length, agents.length - shownAgents.length]
  return (
    <section className="panel attention" aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      {needy.length + agents.length === 0 ? (
        <p className="calm">
          <HealthMark need="healthy" bare word="" /> Every cluster is healthy and was read on time
          {partly && ', as far as you see it'}.
        </p>
      ) : (
        <ul>
          {shownNeedy.map((cluster) => (
            <li key={cluster.name}>
              <HealthMark need={needOf(cluster, now)} bare />
              <div>
                <Link to={clusterPath(cluster.name)}>{cluster.displayName || cluster.name}</Link>{' '}
                <Reasons cluster={cluster} troubles={troubles.get(cluster.name) ?? []} now={now} />
              </div>
            </li>
          ))}
          {shownAgents.map((cluster) => (
            <li key={cluster.name}>
              <AgentMark />
              <AgentLine cluster={cluster} troubles={troubles.get(cluster.name) ?? []} />
            </li>
          ))}
        </ul>
      )}
      {moreNeedy > 0 && (
        <button type="button" className="text-button" onClick={() => setQuery({ q: '-needs:healthy' })}>
          and {moreNeedy} more
        </button>
      )}
      {moreAgents > 0 && (
        <button type="button" className="text-button" onClick={() => setQuery({ q: agentsQuery })}>
          and {plural(moreAgents, 'more agent')}
        </button>
      )}
    </section>
  )
}

const agentsQuery = 'needs:healthy push:odd,silent,catching-up,lost,plaintext'

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
      .filter((cluster) => needOf(cluster, now) !== 'healthy')
      .sort((a, b) => severityOf(a, now) - severityOf(b, now) || byName(a, b)),
    agents: clusters
      .filter((cluster) => needOf(cluster, now) === 'healthy' && troubles.has(cluster.name))
      .sort((a, b) => rank(a) - rank(b) || byName(a, b)),
    troubles,
  }
}

function AgentLine({ cluster, troubles }: { cluster: ClusterView; troubles: readonly AgentTrouble[] }): ReactNode {
  const [first, ...more] = troubles
  return (
    <div>
      <Link to={clusterPath(cluster.name, first?.code === 'lost' ? 'history' : 'overview')}>
        {cluster.displayName || cluster.name}
      </Link>{' '}
      <span className="why">
        {first?.text}
        <TroubleTags troubles={more} />
      </span>
    </div>
  )
}

const TroubleTags = ({ troubles }: { troubles: readonly AgentTrouble[] }): ReactNode =>
  troubles.map(({ code, short, text }) => (
    <span key={code} className="tag is-warning" data-tip={text}>
      <Warned />
      {short}
    </span>
  ))

function Reasons({
  cluster,
  troubles,
  now,
}: {
  cluster: ClusterView
  troubles: readonly AgentTrouble[]
  now: number
}): ReactNode {
  const at = factsAt(cluster)
  const need = needOf(cluster, now)
  const old = isStale(cluster, now)
  const [first, ...more] = cluster.reasons
  return (
    <span className="why">
      {need === 'stale'
        ? 'was healthy, but has not been read on time'
        : (first?.message ?? (cluster.message || needWord[need]))}
      {need !== 'stale' && more.length > 0 && <span className="tag">+{more.length}</span>}
      {old && at !== null && (
        <span className="tag">
          as of <Age at={at} suffix=" ago" />
        </span>
      )}
      <TroubleTags troubles={troubles} />
    </span>
  )
}

/** What turned within the last hour: health from the heartbeats, the rest as it was heard in this tab. */
export function RecentChanges({ clusters, losses, now }: StripProps): ReactNode {
  const heard = useLive((live) => live.fleet.events)
  const events = useMemo(() => newestFirst(heard, losses), [heard, losses])
  const lines = useMemo(() => recentLines(clusters, events, now), [clusters, events, now])
  return (
    <section className="panel changes" aria-labelledby="changes">
      <h2 id="changes">Changes of the last hour</h2>
      {lines.length === 0 ? (
        <p className="calm">Nothing has changed.</p>
      ) : (
        <ol>
          {lines.slice(0, shownAtMost).map((line) => (
            <li key={line.key}>
              <Age at={line.at} />
              <HealthMark need={line.need} bare word="" />
              <span>
                <Link to={clusterPath(line.cluster)}>{line.cluster}</Link> {line.text}
              </span>
            </li>
          ))}
        </ol>
      )}
      {lines.length > shownAtMost && (
        <p className="fine">and {lines.length - shownAtMost} more, on the Events tab of each cluster</p>
      )}
    </section>
  )
}

export function recentLines(clusters: readonly ClusterView[], events: readonly EventView[], now: number): EventLine[] {
  const since = now - 3_600_000
  const turns = healthChanges(clusters, since).map(
    ({ cluster, at, from, to }): EventLine => ({
      key: `${cluster} ${at} health`,
      cluster,
      at,
      need: to,
      text: `turned ${to}, was ${from}`,
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
