import { type ReactNode, useCallback } from 'react'
import { Name } from '../../components/name.tsx'
import { ObjectEvents } from '../../components/object-events.tsx'
import { Empty, Failure, Skeleton } from '../../components/states.tsx'
import type { ClusterView } from '../../contract.ts'
import { termText } from '../../model/filter.ts'
import { isOfWorkload } from '../../model/kube-events.ts'
import { clusterPath, Link, namespacePath, whyPath } from '../../router.tsx'
import { AsOf, ValueText } from './parts.tsx'
import { Linked } from './row-links.tsx'
import { RowsOf, useRowsOf } from './rows-of.tsx'

/** A workload: how it is, its pods, and what happened to it and to them. @param id `namespace/name:Kind` */
export function WorkloadPage({ cluster: { name: cluster }, id }: { cluster: ClusterView; id: string }): ReactNode {
  const [, namespace = '', name = '', kind = ''] = /^([^/]*)\/(.*):([^:]*)$/.exec(id) ?? []
  const reference = `${kind}/${name}`
  const [fresh, again] = useRowsOf(cluster, 'workloads', { namespace, q: name, limit: 1000 })
  const keeps = useCallback((object: string) => isOfWorkload(reference, object), [reference])
  if (fresh.state === 'waiting') return <Skeleton label="Loading the workload" />
  if (fresh.state === 'failed')
    return <Failure problem={fresh.problem} onRetry={again} title="The workload could not be loaded" />
  const { items, on, source } = fresh.value
  const row = items.find((one) => one.id === id)
  if (!row)
    return (
      <Empty title={on.part.freshness ? 'This workload is not there' : 'Workloads were not read yet'}>
        <p>
          <b>{reference}</b> in {namespace || 'no namespace'} is not among the workloads of this cluster that you may
          see. It may have been removed since this link was made.
        </p>
        <p className="state-ways">
          <Link to={clusterPath(cluster, 'types', 'workloads')} className="button">
            All workloads
          </Link>
          <Link to={whyPath({ cluster, type: 'workloads', name, namespace })} className="button">
            Why do I not see it?
          </Link>
        </p>
      </Empty>
    )
  const inNamespace = termText('namespace', ':', namespace)
  const isCron = kind === 'CronJob'
  return (
    <div className="stack type-stack">
      <div className="type-head">
        <h2>
          <Name text={name} />
        </h2>
        <span className="tag">{kind}</span>
        <Link to={namespacePath(cluster, namespace)}>
          <span className="tag mono">{namespace}</span>
        </Link>
        <AsOf on={on} />
      </div>
      <dl className="pairs object-facts">
        {source.columns
          .filter(({ name: column }) => column !== 'kind' && row.values[column] !== null)
          .map((column) => (
            <div key={column.name}>
              <dt>{column.label}</dt>
              <dd>
                <Linked cluster={cluster} row={row} column={column.name}>
                  <ValueText value={row.values[column.name]} column={column} filtered={on.filtered} />
                </Linked>
              </dd>
            </div>
          ))}
      </dl>
      <section className="panel" aria-label="Kubernetes events">
        <div className="type-head">
          <h2>Kubernetes events</h2>
        </div>
        <ObjectEvents
          cluster={cluster}
          namespace={namespace}
          where={[`object~${name}`]}
          keeps={keeps}
          withObject
          filter={`${inNamespace} ${termText('object', '~', name)}`}
        />
      </section>
      {isCron ? (
        <RowsOf
          cluster={cluster}
          type="workloads"
          title="Jobs"
          query={{ namespace, where: [`owner=${reference}`], sort: 'status' }}
          filter={`${inNamespace} ${termText('owner', ':', reference)}`}
          columns={['status', 'succeeded', 'failed', 'createdAt']}
        />
      ) : (
        <RowsOf
          cluster={cluster}
          type="pods"
          title="Pods"
          query={{ namespace, where: [`workload=${reference}`], sort: 'status' }}
          filter={`${inNamespace} ${termText('workload', ':', reference)}`}
          columns={['status', 'ready', 'restarts', 'node', 'createdAt']}
        />
      )}
    </div>
  )
}
