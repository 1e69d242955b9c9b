import { type ReactNode, useMemo } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { Age } from '../../components/text.tsx'
import type { ClusterView, EventView } from '../../contract.ts'
import { useLive } from '../../live/hooks.ts'
import { factsAt, healthChanges, isStale, needOf, needWord, severityOf } from '../../model/cluster.ts'
import { type EventLine, eventLine } from '../../model/events.ts'
import { clusterPath, Link, setQuery } from '../../router.tsx'

const shownAtMost = 5

/** Who needs a person, worst first, and why. */
export function Attention({ clusters, now }: { clusters: readonly ClusterView[]; now: number }): ReactNode {
  const needy = useMemo(
    () =>
      clusters
        .filter((cluster) => needOf(cluster, now) !== 'healthy')
        .sort((a, b) => severityOf(a, now) - severityOf(b, now) || (a.name < b.name ? -1 : 1)),
    [clusters, now],
  )
  return (
    <section className="panel attention" aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      {needy.length === 0 ? (
        <p className="calm">
          <HealthMark need="healthy" bare word="" /> Every cluster is healthy and was read on time.
        </p>
      ) : (
        <ul>
          {needy.slice(0, shownAtMost).map((cluster) => (
            <li key={cluster.name}>
              <HealthMark need={needOf(cluster, now)} bare />
              <div>
                <Link to={clusterPath(cluster.name)}>{cluster.displayName || cluster.name}</Link>{' '}
                <Reasons cluster={cluster} now={now} />
              </div>
            </li>
          ))}
        </ul>
      )}
      {needy.length > shownAtMost && (
        <button type="button" className="text-button" onClick={() => setQuery({ q: '-needs:healthy' })}>
          and {needy.length - shownAtMost} more
        </button>
      )}
    </section>
  )
}

function Reasons({ cluster, now }: { cluster: ClusterView; now: number }): ReactNode {
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
    </span>
  )
}

/** What turned within the last hour: health from the heartbeats, the rest as it was heard in this tab. */
export function RecentChanges({ clusters, now }: { clusters: readonly ClusterView[]; now: number }): ReactNode {
  const events = useLive((live) => live.fleet.events)
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
