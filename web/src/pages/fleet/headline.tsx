import { type ReactNode, useMemo } from 'react'
import { HealthMark } from '../../components/health.tsx'
import { LoadMeter } from '../../components/meter.tsx'
import { Flash, Missing, NotShown } from '../../components/text.tsx'
import type { ClusterView } from '../../contract.ts'
import { loadOf, type Need, needOf, needWord, sumAmounts } from '../../model/cluster.ts'
import { formatBytes, formatCores, formatCount, plural } from '../../model/format.ts'
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

export function Headline({ clusters, now }: { clusters: readonly ClusterView[]; now: number }): ReactNode {
  const counts = useMemo(() => countNeeds(clusters, now), [clusters, now])
  const nodes = sumOf(clusters, ({ nodes }) => nodes && { part: nodes.ready, all: nodes.total })
  const pods = sumOf(clusters, ({ pods }) => pods && { part: pods.running, all: pods.total - pods.succeeded })
  return (
    <section className="ledger" aria-label="The fleet in numbers">
      <div className="ledger-cell is-health">
        <h2>Clusters</h2>
        <HealthBar counts={counts} />
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
      </div>
      <Ready title="Nodes ready" sums={nodes} clusters={clusters} query="notready>0" rest="not ready" />
      <Ready
        title="Pods running"
        sums={pods}
        clusters={clusters}
        query={(pods?.failed ?? 0) > 0 ? 'failed>0' : 'pending>0'}
        rest="not running"
      />
      <Capacity title="CPU" clusters={clusters} />
      <Capacity title="Memory" clusters={clusters} />
      <Versions clusters={clusters} />
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

interface Sums {
  readonly part: number
  readonly all: number
  /** clusters that told it */
  readonly told: number
  readonly failed?: number
}

function sumOf(
  clusters: readonly ClusterView[],
  read: (cluster: ClusterView) => { part: number; all: number } | null,
): Sums | null {
  let [part, all, told] = [0, 0, 0]
  for (const cluster of clusters) {
    const one = read(cluster)
    if (!one) continue
    part += one.part
    all += one.all
    told++
  }
  return told === 0 ? null : { part, all, told }
}

function Ready({
  title,
  sums,
  clusters,
  query,
  rest,
}: {
  title: string
  sums: Sums | null
  clusters: readonly ClusterView[]
  query: string
  rest: string
}): ReactNode {
  const of = clusters.length
  return (
    <div className="ledger-cell">
      <h2>{title}</h2>
      {sums === null ? (
        <NoSum clusters={clusters} what={title.toLowerCase()} />
      ) : (
        <>
          <Count query={query}>
            <Flash value={`${sums.part}/${sums.all}`}>
              <span className="big">{formatCount(sums.part)}</span>
              <span className="of"> / {formatCount(sums.all)}</span>
            </Flash>
            <span className="vh">
              {' '}
              {title.toLowerCase()}: show clusters where some are {rest}
            </span>
          </Count>
          <p className="fine">
            {sums.all > sums.part ? `${formatCount(sums.all - sums.part)} ${rest}` : 'all of them'}
            {sums.told < of && ` · from ${formatCount(sums.told)} of ${formatCount(of)} clusters`}
          </p>
        </>
      )}
    </div>
  )
}

function Capacity({ title, clusters }: { title: 'CPU' | 'Memory'; clusters: readonly ClusterView[] }): ReactNode {
  const key = title === 'CPU' ? 'cpuCores' : 'memoryBytes'
  const say = title === 'CPU' ? formatCores : formatBytes
  // A cluster that is not measured, or tells nothing, would make the sum of use look like less use than there is.
  const told = useMemo(() => clusters.filter((cluster) => loadOf(cluster[key]) !== null), [clusters, key])
  const total = useMemo(() => sumAmounts(told.map((cluster) => cluster[key])), [told, key])
  const measured = told.filter((cluster) => cluster[key].used !== null)
  const asked = told.every((cluster) => cluster[key].requested !== null)
  const sums = {
    ...total,
    used: measured.length === told.length ? total.used : null,
    requested: asked ? total.requested : null,
  }
  const load = loadOf(sums)
  return (
    <div className="ledger-cell">
      <h2>{title}</h2>
      {load === null ? (
        <NoSum clusters={clusters} what={title} />
      ) : (
        <>
          <Count query={`${title.toLowerCase()}>80`}>
            <LoadMeter what={title} amounts={sums} wide />
            <span className="vh">. Show clusters above 80 %</span>
          </Count>
          <p className="fine">
            {say(load.amount)} {load.basis} of {say(load.limit)}
            {sums.used === null && measured.length > 0 && ` · measured in ${measured.length} of ${clusters.length}`}
            {told.length < clusters.length &&
              ` · from ${formatCount(told.length)} of ${plural(clusters.length, 'cluster')}`}
          </p>
        </>
      )}
    </div>
  )
}

function Versions({ clusters }: { clusters: readonly ClusterView[] }): ReactNode {
  const spread = useMemo(() => {
    const counts = new Map<string, number>()
    for (const cluster of clusters) {
      const version = versionOf(cluster)
      const release = version ? releaseOf(version) : ''
      counts.set(release, (counts.get(release) ?? 0) + 1)
    }
    return [...counts].sort(([a], [b]) => (a === '' ? 1 : b === '' ? -1 : (compareVersions(b, a) ?? 0)))
  }, [clusters])
  const most = Math.max(1, ...spread.map(([, count]) => count))
  const shown = spread.slice(0, spread.length > 4 ? 3 : 4)
  return (
    <div className="ledger-cell is-versions">
      <h2>Versions</h2>
      <ul className="versions">
        {shown.map(([release, count]) => (
          <li key={release}>
            <Count query={release === '' ? 'version:none' : `version:${release}`}>
              <span className="mono">{release === '' ? 'not known' : release}</span>
              <span className="version-bar" aria-hidden="true">
                <span style={{ width: `${(count / most) * 100}%` }} />
              </span>
              <b>{formatCount(count)}</b>
              <span className="vh"> {count === 1 ? 'cluster' : 'clusters'}</span>
            </Count>
          </li>
        ))}
      </ul>
      {spread.length > shown.length && <p className="fine">and {formatCount(spread.length - shown.length)} more</p>}
    </div>
  )
}
