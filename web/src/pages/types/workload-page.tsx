import { type ReactNode, useCallback } from 'react'
import type { ClusterView } from '../../contract.ts'
import { termText } from '../../model/filter.ts'
import { isOfWorkload } from '../../model/kube-events.ts'
import { clusterPath, Link, namespacePath, whyPath } from '../../router.tsx'
import { ObjectPage } from './object-page.tsx'
import { RowsOf } from './rows-of.tsx'

const words = { one: 'workload', many: 'Workloads' } as const
const ofCronJob = {
  ...{ type: 'workloads', title: 'Jobs', by: 'owner' },
  columns: ['status', 'succeeded', 'failed', 'createdAt'],
}
const ofOthers = {
  ...{ type: 'pods', title: 'Pods', by: 'workload' },
  columns: ['status', 'ready', 'restarts', 'node', 'createdAt'],
}

/** A workload: how it is, its pods, and what happened to it and to them. @param id `namespace/name:Kind` */
export function WorkloadPage({ cluster: { name: cluster }, id }: { cluster: ClusterView; id: string }): ReactNode {
  const [, namespace = '', name = '', kind = ''] = /^([^/]*)\/(.*):([^:]*)$/.exec(id) ?? []
  const reference = `${kind}/${name}`
  const keeps = useCallback((object: string) => isOfWorkload(reference, object), [reference])
  const inNamespace = termText('namespace', ':', namespace)
  const within = namespace === '' ? {} : { namespace }
  const { by, ...parts } = kind === 'CronJob' ? ofCronJob : ofOthers
  return (
    <ObjectPage
      {...{ cluster, words, name }}
      type="workloads"
      query={{ ...within, where: [`name=${name}`] }}
      isIt={(row) => row.rowId === id}
      tags={
        <>
          <span className="tag">{kind}</span>
          <Link to={namespacePath(cluster, namespace)}>
            <span className="tag mono">{namespace}</span>
          </Link>
        </>
      }
      absent={
        <>
          <b>{reference}</b> in {namespace || 'no namespace'} is not among the workloads of this cluster that you may
          see. It may have been removed since this link was made.
        </>
      }
      allPath={clusterPath(cluster, 'types', 'workloads')}
      whyPath={whyPath({ cluster, type: 'workloads', name, namespace })}
      shows={({ name: column }, row) => column !== 'kind' && row.values[column] !== null}
      events={{
        ...{ namespace, keeps, where: [`object~${name}`] },
        filter: `${inNamespace} ${termText('object', '~', name)}`,
      }}
    >
      <RowsOf
        {...{ cluster, ...parts }}
        query={{ ...within, where: [`${by}=${reference}`], sort: 'status' }}
        filter={`${inNamespace} ${termText(by, ':', reference)}`}
      />
    </ObjectPage>
  )
}
