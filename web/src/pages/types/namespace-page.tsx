import type { ReactNode } from 'react'
import type { ClusterView } from '../../contract.ts'
import { termText } from '../../model/filter.ts'
import { clusterPath, whyPath } from '../../router.tsx'
import { ObjectPage } from './object-page.tsx'
import { RowsOf } from './rows-of.tsx'

const words = { one: 'namespace', many: 'Namespaces' } as const
/** What may stand in a namespace, with the columns that are shown of it. */
const within = [
  { type: 'pods', title: 'Pods', sort: 'status', columns: ['status', 'restarts', 'node', 'createdAt'] },
  { type: 'workloads', title: 'Workloads', sort: 'status', columns: ['kind', 'status', 'ready', 'desired'] },
  {
    ...{ type: 'persistentvolumeclaims', title: 'Volume claims', sort: 'status' },
    columns: ['status', 'capacity', 'storageClass'],
  },
  { type: 'services', title: 'Services', sort: 'name', columns: ['type', 'clusterIp', 'ports'] },
] as const

/** A namespace: what stands in it, and what happened there. */
export function NamespacePage({ cluster: { name: cluster }, name }: { cluster: ClusterView; name: string }): ReactNode {
  const filter = termText('namespace', ':', name)
  return (
    <ObjectPage
      {...{ cluster, words, name }}
      type="namespaces"
      query={{ where: [`name=${name}`] }}
      isIt={(row) => row.name === name}
      tags={<span className="tag">Namespace</span>}
      absent={
        <>
          <b>{name}</b> is not among the namespaces of this cluster that you may see.
        </>
      }
      allPath={clusterPath(cluster, 'namespaces')}
      whyPath={whyPath({ cluster, type: 'namespaces', name })}
      shows={({ extra }) => !extra}
      events={{ namespace: name, where: [], filter }}
    >
      {within.map(({ sort, ...rest }) => (
        <RowsOf key={rest.type} {...{ cluster, filter, ...rest }} query={{ namespace: name, sort }} />
      ))}
    </ObjectPage>
  )
}
