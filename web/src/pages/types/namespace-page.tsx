import type { ReactNode } from 'react'
import { Name } from '../../components/name.tsx'
import { ObjectEvents } from '../../components/object-events.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import type { ClusterView } from '../../contract.ts'
import { termText } from '../../model/filter.ts'
import { clusterPath, Link, whyPath } from '../../router.tsx'
import { AsOf, ValueText } from './parts.tsx'
import { RowsOf, useRowsOf } from './rows-of.tsx'

/** A namespace: what stands in it, and what happened there. */
export function NamespacePage({ cluster: { name: cluster }, name }: { cluster: ClusterView; name: string }): ReactNode {
  const [fresh, again] = useRowsOf(cluster, 'namespaces', { q: name, limit: 1000 })
  if (fresh.state === 'waiting') return <Skeleton label="Loading the namespace" />
  if (fresh.state === 'failed')
    return <Failure problem={fresh.problem} onRetry={again} title="The namespace could not be loaded" />
  const { items, on, source } = fresh.value
  const row = items.find((one) => one.name === name)
  if (!row)
    return (
      <Empty title={on.part.freshness ? 'This namespace is not there' : 'Namespaces were not read yet'}>
        <p>
          <b>{name}</b> is not among the namespaces of this cluster that you may see.
        </p>
        <p className="state-ways">
          <Link to={clusterPath(cluster, 'namespaces')} className="button">
            All namespaces
          </Link>
          <Link to={whyPath({ cluster, type: 'namespaces', name })} className="button">
            Why do I not see it?
          </Link>
        </p>
      </Empty>
    )
  const query = { namespace: name, sort: 'status' }
  const filter = termText('namespace', ':', name)
  const common = { cluster, filter }
  return (
    <div className="stack type-stack">
      <div className="type-head">
        <h2>
          <Name text={name} />
        </h2>
        <span className="tag">Namespace</span>
        <AsOf on={on} />
      </div>
      <dl className="pairs object-facts">
        {source.columns
          .filter(({ extra }) => !extra)
          .map((column) => (
            <div key={column.name}>
              <dt>{column.label}</dt>
              <dd>
                <ValueText value={row.values[column.name]} column={column} filtered={on.filtered} />
              </dd>
            </div>
          ))}
      </dl>
      <section className="panel" aria-label="Kubernetes events">
        <div className="type-head">
          <h2>Kubernetes events</h2>
        </div>
        <ObjectEvents cluster={cluster} namespace={name} where={[]} withObject filter={filter} />
      </section>
      <RowsOf
        {...common}
        type="pods"
        title="Pods"
        query={query}
        columns={['status', 'restarts', 'node', 'createdAt']}
      />
      <RowsOf
        {...common}
        type="workloads"
        title="Workloads"
        query={query}
        columns={['kind', 'status', 'ready', 'desired']}
      />
      <RowsOf
        {...common}
        type="persistentvolumeclaims"
        title="Volume claims"
        query={query}
        columns={['status', 'capacity', 'storageClass']}
      />
      <RowsOf
        {...common}
        type="services"
        title="Services"
        query={{ namespace: name }}
        columns={['type', 'clusterIp', 'ports']}
      />
    </div>
  )
}
