import { type ReactNode, useCallback, useMemo } from 'react'
import type { ClusterView } from '../../contract.ts'
import { useFirstRows } from '../../live/use-rows.ts'
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
  const inNamespace = termText('namespace', ':', namespace)
  const within = namespace === '' ? {} : { namespace }
  const makers = useMakers(cluster, namespace, name)
  const keeps = useCallback(
    (object: string) => {
      const maker = makers.get(object)
      return maker === undefined ? isOfWorkload(reference, object) : maker === reference
    },
    [reference, makers],
  )
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

/** So many pods are asked whose they are. */
const ASKED = 500

/** The workload of each pod whose name begins as this one does, as far as it is known: names alone would lead to others. */
function useMakers(cluster: string, namespace: string, name: string): ReadonlyMap<string, string> {
  const query = { ...(namespace !== '' && { namespace }), where: [`name~${name}`] }
  const [paged] = useFirstRows(cluster, 'core/pods', query, ASKED)
  const rows = paged.state === 'here' ? paged.rows : null
  return useMemo(
    () =>
      new Map(
        [...(rows?.values() ?? [])].flatMap(({ name, values: { workload } }) =>
          typeof workload === 'string' ? [[`Pod/${name}`, workload] as const] : [],
        ),
      ),
    [rows],
  )
}
