import { type ReactNode, useEffect, useRef, useState } from 'react'
import { ClusterHealth } from '../../components/cluster-health.tsx'
import { ClusterCell } from '../../components/cluster-name.tsx'
import { Of, Pods } from '../../components/counts.tsx'
import { FilteredSign } from '../../components/filtered.tsx'
import { HeartbeatStrip } from '../../components/health.tsx'
import { LoadMeter } from '../../components/meter.tsx'
import { Kept } from '../../components/past.tsx'
import { ModeCell } from '../../components/push.tsx'
import type { TableView } from '../../components/resource-table.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { type ClusterView, causeIn } from '../../contract.ts'
import { useAtTime } from '../../live/hooks.ts'
import { factsAt, isHidden } from '../../model/cluster.ts'
import { isCurrent } from '../../model/current.ts'
import { clusterPath } from '../../router.tsx'
import { useSeesAll } from '../../session.ts'
import { versionOf } from './columns.tsx'

const portion = 60

/** The same rows as cards; more of them are made as their end comes near. */
export function ClusterCards({
  lines,
  gone,
  subtotal,
}: TableView<ClusterView> & { subtotal: (rows: readonly ClusterView[]) => ReactNode }): ReactNode {
  const [limit, setLimit] = useState(portion)
  const end = useRef<HTMLDivElement>(null)
  const more = lines.length > limit
  const blank = !useSeesAll()
  useEffect(() => {
    if (!more || !end.current) return
    const watch = new IntersectionObserver(
      (entries) => {
        if (entries.some(({ isIntersecting }) => isIntersecting)) setLimit((before) => before + portion)
      },
      { rootMargin: '800px' },
    )
    watch.observe(end.current)
    return () => watch.disconnect()
  }, [more])
  return (
    <>
      <ul className="cards">
        {lines.slice(0, limit).map((line) =>
          line.kind === 'group' ? (
            <li key={line.key} className="cards-group">
              <h3>{line.group}</h3> <span className="group-sum">{subtotal(line.rows)}</span>
            </li>
          ) : (
            <li key={line.key} className={gone.has(line.key) ? 'card gone' : 'card'}>
              {blank && gone.has(line.key) ? <article>no longer here</article> : <Card cluster={line.row} />}
            </li>
          ),
        )}
      </ul>
      {more && <div ref={end} />}
    </>
  )
}

function Card({ cluster }: { cluster: ClusterView }): ReactNode {
  const at = factsAt(cluster)
  const reason = cluster.health === 'healthy' ? undefined : (cluster.reasons[0]?.message ?? cluster.message)
  const current = useAtTime((now) => isCurrent(cluster, 'node', now))
  return (
    <article className={current ? '' : 'dim'}>
      <header>
        <h3>
          <ClusterCell name={cluster.name} displayName={cluster.displayName} to={clusterPath(cluster.name)}>
            {cluster.filtered && <FilteredSign />}
          </ClusterCell>
        </h3>
        <ClusterHealth cluster={cluster} />
      </header>
      <HeartbeatStrip heartbeats={cluster.heartbeats} filtered={cluster.filtered} />
      <p className="card-reason" data-tip={reason}>
        {causeIn(reason ?? ' ')}
      </p>
      <dl>
        <div>
          <dt>Nodes</dt>
          <dd>
            <Of
              part={cluster.nodes?.ready}
              all={cluster.nodes?.total}
              lacking="not ready"
              why="nodes were never read"
              hidden={isHidden(cluster, 'node') && 'nodes'}
            />
          </dd>
        </div>
        <div>
          <dt>Pods</dt>
          <dd>
            <Kept cluster={cluster} type="podSummary">
              <Pods pods={cluster.pods} hidden={isHidden(cluster, 'node')} />
            </Kept>
          </dd>
        </div>
        <div>
          <dt>CPU</dt>
          <dd>
            <LoadMeter what="CPU" amounts={cluster.cpuCores} hidden={cluster.filtered} />
          </dd>
        </div>
        <div>
          <dt>Memory</dt>
          <dd>
            <LoadMeter what="Memory" amounts={cluster.memoryBytes} hidden={cluster.filtered} />
          </dd>
        </div>
      </dl>
      <ModeCell cluster={cluster} />
      <footer>
        <span className="mono">{versionOf(cluster) ?? <Missing why="the cluster has not told its version" />}</span>
        <span>
          {at === null ? (
            'never read'
          ) : (
            <>
              as of <Age at={at} suffix=" ago" />
            </>
          )}
        </span>
      </footer>
    </article>
  )
}
