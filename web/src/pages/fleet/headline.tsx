import { type ReactNode, useMemo } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { LoadMeter } from '../../components/meter.tsx'
import { pastClass, SumAge } from '../../components/past.tsx'
import { Flash, Missing, NotShown } from '../../components/text.tsx'
import type { ClusterView } from '../../contract.ts'
import { type Need, needOf, needWord } from '../../model/cluster.ts'
import { formatBytes, formatCores, formatCount, formatPercent } from '../../model/format.ts'
import { basisOf, type LoadSum, type ShareSum, sumLoad, sumNodes, sumPods } from '../../model/sums.ts'
import { compareVersions, releaseOf } from '../../model/versions.ts'
import { Link, setQuery } from '../../router.tsx'
import { versionOf } from './columns.tsx'

const needs: readonly Need[] = ['unhealthy', 'degraded', 'unknown', 'stale', 'healthy']

/** A number that is a filter: it leads to the clusters it counts. */
function Count({ query, children, label }: { query: string; children: ReactNode; label?: string }): ReactNode {
  return (
    <Link
      to={`/?q=${encodeURIComponent(query)}`}
      className="count-link"
      {...(label && { 'aria-label': label })}
      onClick={(event) => {
        // Grouping, order and layout stay as they are.
        if (event.metaKey || event.ctrlKey || event.shiftKey) return
        event.preventDefault()
        setQuery({ q: query })
      }}
    >
      {children}
    </Link>
  )
}

/** How many clusters need what, beside the heading; each count leads to its clusters. */
export function NeedCounts({ clusters, now }: { clusters: readonly ClusterView[]; now: number }): ReactNode {
  const counts = useMemo(() => countNeeds(clusters, now), [clusters, now])
  return (
    <section className="needs" aria-label="Clusters by health">
      <ul className="need-counts">
        {needs.map((need) => (
          <li key={need} className={counts[need] === 0 ? 'none' : ''}>
            <Count query={`needs:${need}`}>
              <HealthMark need={need} bare word="" />
              <Flash value={counts[need]}>
                <b>{formatCount(counts[need])}</b>
              </Flash>{' '}
              {needWord[need].toLowerCase()}
            </Count>
          </li>
        ))}
      </ul>
      <HealthBar counts={counts} />
    </section>
  )
}

export function Headline({ clusters, now }: { clusters: readonly ClusterView[]; now: number }): ReactNode {
  const nodes = useMemo(() => sumNodes(clusters, now), [clusters, now])
  const pods = useMemo(() => sumPods(clusters, now), [clusters, now])
  return (
    <section className="ledger" aria-label="The fleet in numbers">
      <Ready title="Nodes ready" sums={nodes} clusters={clusters} query="notready>0" rest="not ready" usual={0} />
      <Ready
        title="Pods running"
        sums={pods}
        clusters={clusters}
        query="notrunning>0"
        rest="not running"
        usual={Math.max(5, (pods?.all ?? 0) / 20)}
      />
      <Capacity title="CPU" clusters={clusters} now={now} />
      <Capacity title="Memory" clusters={clusters} now={now} />
      <Versions clusters={clusters} now={now} />
    </section>
  )
}

/** No cluster tells it: kept from whoever looks, or not known. */
const NoSum = ({ clusters, what }: { clusters: readonly ClusterView[]; what: string }): ReactNode =>
  clusters.some(({ filtered }) => filtered) ? (
    <NotShown what={what} focusable />
  ) : (
    <Missing why="no cluster has told it yet" focusable />
  )

type Counts = Readonly<Record<Need, number>>

export function countNeeds(clusters: readonly ClusterView[], now: number): Counts {
  const counts = { unhealthy: 0, degraded: 0, unknown: 0, stale: 0, healthy: 0 }
  for (const cluster of clusters) counts[needOf(cluster, now)]++
  return counts
}

function HealthBar({ counts }: { counts: Counts }): ReactNode {
  return (
    <div className="health-bar" aria-hidden="true">
      {needs.map(
        (need) => counts[need] > 0 && <span key={need} className={`is-${need}`} style={{ flexGrow: counts[need] }} />,
      )}
    </div>
  )
}

function Ready({
  title,
  sums,
  clusters,
  query,
  rest,
  usual,
}: {
  title: string
  sums: ShareSum | null
  clusters: readonly ClusterView[]
  query: string
  rest: string
  /** so many may lack without a word of warning: a few pods are always on their way */
  usual: number
}): ReactNode {
  return (
    <div className={`ledger-cell ${pastClass(sums)}`}>
      <h2>{title}</h2>
      {sums === null ? (
        <NoSum clusters={clusters} what={title.toLowerCase()} />
      ) : (
        <>
          <p>
            <Flash value={`${sums.part}/${sums.all}`}>
              <span className="big">{formatCount(sums.part)}</span>
              <span className="of">/ {formatCount(sums.all)}</span>
            </Flash>
          </p>
          <p className="fine">
            {sums.all > sums.part ? (
              <Count query={query} label={`${formatCount(sums.all - sums.part)} ${rest}: show their clusters`}>
                <span className={sums.all - sums.part > usual ? 'short' : ''}>
                  {formatCount(sums.all - sums.part)} {rest}
                </span>
              </Count>
            ) : (
              'all of them'
            )}
            {' · '}
            <SumAge basis={sums} />
          </p>
        </>
      )}
    </div>
  )
}

function Capacity({
  title,
  clusters,
  now,
}: {
  title: 'CPU' | 'Memory'
  clusters: readonly ClusterView[]
  now: number
}): ReactNode {
  const key = title === 'CPU' ? 'cpuCores' : 'memoryBytes'
  const say = title === 'CPU' ? formatCores : formatBytes
  const sum = useMemo(() => sumLoad(clusters, key, now), [clusters, key, now])
  return (
    <div className={`ledger-cell ${pastClass(sum)}`}>
      <h2>{title}</h2>
      {sum === null ? (
        <NoSum clusters={clusters} what={title} />
      ) : (
        <>
          <Count query={`${title.toLowerCase()}>80`}>
            <LoadMeter what={title} amounts={sum.amounts} wide />
            <span className="vh">. Show clusters above 80 %</span>
          </Count>
          <p className="fine">
            {say(sum.load.amount)} {sum.load.basis} of {say(sum.load.limit)} · <SumAge basis={sum} />
            <Over sum={sum} of={clusters.length} />
          </p>
        </>
      )}
    </div>
  )
}

/** Over which clusters a load is, where that is not all of them. */
function Over({ sum: { counted, requestedRatio, load }, of }: { sum: LoadSum; of: number }): ReactNode {
  if (counted === of) return null
  const which = `${formatCount(counted)} of ${formatCount(of)} clusters`
  const asked = requestedRatio === null ? '' : `Requested in all that tell it: ${formatPercent(requestedRatio)}`
  return (
    <span {...(asked && { 'data-tip': asked })}>
      {' '}
      · {load.basis === 'used' ? 'measured in' : 'from'} {which}
    </span>
  )
}

function Versions({ clusters, now }: { clusters: readonly ClusterView[]; now: number }): ReactNode {
  const basis = useMemo(() => basisOf(clusters, 'cluster', now, (one) => versionOf(one) !== null), [clusters, now])
  const spread = useMemo(() => {
    const counts = new Map<string, number>()
    for (const cluster of clusters) {
      const version = versionOf(cluster)
      const release = version ? releaseOf(version) : ''
      counts.set(release, (counts.get(release) ?? 0) + 1)
    }
    return [...counts].sort(([a], [b]) => (a === '' ? 1 : b === '' ? -1 : (compareVersions(b, a) ?? 0)))
  }, [clusters])
  const shown = spread.slice(0, spread.length > 4 ? 3 : 4)
  return (
    <div className={`ledger-cell is-versions ${pastClass(basis)}`}>
      <h2>Versions</h2>
      <ul className="versions">
        {shown.map(([release, count]) => (
          <li key={release}>
            <Count query={release === '' ? 'version:none' : `version:${release}`}>
              <span className="mono">{release === '' ? 'not known' : release}</span>
              <b>{formatCount(count)}</b>
              <span className="vh"> {count === 1 ? 'cluster' : 'clusters'}</span>
            </Count>
          </li>
        ))}
        {spread.length > shown.length && <li className="fine">and {formatCount(spread.length - shown.length)} more</li>}
      </ul>
      {basis && basis.current < basis.counted && (
        <p className="fine">
          <SumAge basis={basis} />
        </p>
      )}
    </div>
  )
}
