import { type ReactNode, useMemo } from 'react'
import { Of, Pods } from '../../components/counts.tsx'
import { HealthMark } from '../../components/health.tsx'
import { Name } from '../../components/name.tsx'
import { Kept } from '../../components/past.tsx'
import { type Column, ResourceTable } from '../../components/resource-table.tsx'
import { RowLink } from '../../components/row-link.tsx'
import { Age, Flash, Missing, NotShown } from '../../components/text.tsx'
import type { ClusterOperatorView, ClusterView, DeploymentView, NamespaceView, OperatorView } from '../../contract.ts'
import { useNow } from '../../live/hooks.ts'
import type { Need } from '../../model/cluster.ts'
import { whyNotRead } from '../../model/current.ts'
import { createdExports, ofExports, podExports } from '../../model/export-columns.ts'
import { termText } from '../../model/filter.ts'
import { formatCount, formatSpan } from '../../model/format.ts'
import { clusterPath, Link } from '../../router.tsx'
import { noneOf, PartGate } from './part.tsx'

const nameOf = ({ name }: { name: string }) => name
const labelsOf = ({ labels }: NamespaceView) => labels
const operatorWords = ({ name, displayName, provider }: OperatorView) => `${name} ${displayName} ${provider}`
const clusterOperatorWords = ({ name, message }: ClusterOperatorView) => `${name} ${message}`

function namespaceColumns(now: number, cluster: ClusterView): readonly Column<NamespaceView>[] {
  const { filtered } = cluster
  const inNamespace = (row: NamespaceView, tab: 'deployments' | 'operators') =>
    `${clusterPath(row.cluster, tab)}?q=${encodeURIComponent(termText('namespace', ':', row.name))}`
  return [
    {
      id: 'name',
      header: 'Namespace',
      value: nameOf,
      cell: (row) => <RowLink to={inNamespace(row, 'deployments')}>{row.name}</RowLink>,
    },
    {
      id: 'phase',
      header: 'Phase',
      width: 140,
      value: ({ phase }) => phase || null,
      cell: ({ phase }) => <HealthMark need={phase === 'Active' ? 'healthy' : 'degraded'} word={phase || 'not told'} />,
    },
    {
      id: 'pods',
      header: 'Pods running',
      width: 120,
      align: 'end',
      kind: 'number',
      descendingFirst: true,
      value: ({ pods }) => pods?.running ?? null,
      exports: podExports,
      cell: ({ pods }) => (
        <Kept cluster={cluster} type="podSummary">
          <Pods pods={pods} hidden={filtered} />
        </Kept>
      ),
    },
    {
      id: 'deployments',
      header: 'Deployments',
      width: 120,
      align: 'end',
      kind: 'number',
      descendingFirst: true,
      value: ({ deployments }) => deployments,
      cell: (row) =>
        row.deployments === null ? (
          filtered ? (
            <NotShown what="deployments" />
          ) : (
            <Missing why={`deployments: ${whyNotRead(cluster, 'deployment')}`} />
          )
        ) : (
          <Kept cluster={cluster} type="deployment">
            <Link to={inNamespace(row, 'deployments')}>
              {formatCount(row.deployments)}
              <span className="vh"> deployments in {row.name}</span>
            </Link>
          </Kept>
        ),
    },
    {
      id: 'age',
      header: 'Age',
      width: 84,
      align: 'end',
      kind: 'time',
      descendingFirst: true,
      value: ({ createdAt }) => createdAt,
      exports: createdExports,
      cell: ({ createdAt }) =>
        createdAt === null ? <Missing why="no date of creation" /> : formatSpan(now - createdAt),
    },
  ]
}

export function NamespacesTab({ cluster }: { cluster: ClusterView }): ReactNode {
  const now = useNow(60_000)
  const columns = useMemo(() => namespaceColumns(now, cluster), [now, cluster])
  return (
    <PartGate<NamespaceView> cluster={cluster} type="namespace">
      {({ rows, stale, note, total, exports }) => (
        <ResourceTable
          caption={`Namespaces of ${cluster.name}`}
          id="namespaces"
          noun="namespaces"
          rows={rows}
          columns={columns}
          labels={labelsOf}
          words={nameOf}
          rowKey={nameOf}
          sort="name"
          example="phase:* pods>10 *=* name~*"
          empty={noneOf('namespaces', cluster, 'namespaces')}
          dim={() => stale}
          note={note}
          alsoExported={exports}
          total={total}
        />
      )}
    </PartGate>
  )
}

const replicaRatio = ({ ready, replicas }: DeploymentView) => (replicas === 0 ? null : ready / replicas)
function replicaNeed({ ready, replicas }: DeploymentView): { need: Need; word: string } {
  if (replicas === 0) return { need: 'unknown', word: 'Scaled to 0' }
  if (ready >= replicas) return { need: 'healthy', word: 'Ready' }
  return ready === 0 ? { need: 'unhealthy', word: 'None ready' } : { need: 'degraded', word: 'Partly ready' }
}
const shortName = ({ name }: { name: string }) => name.slice(name.indexOf('/') + 1)

const deploymentColumns: readonly Column<DeploymentView>[] = [
  { id: 'name', header: 'Deployment', value: shortName },
  { id: 'namespace', header: 'Namespace', width: 220, value: ({ namespace }) => namespace },
  {
    id: 'ready',
    header: 'Ready',
    width: 150,
    kind: 'percent',
    value: replicaRatio,
    exports: [{ id: 'state', header: 'State', value: (row) => replicaNeed(row).word }],
    cell: (row) => {
      const { need, word } = replicaNeed(row)
      return (
        <Flash value={word}>
          <HealthMark need={need} word={word} />
        </Flash>
      )
    },
  },
  {
    id: 'replicas',
    header: 'Replicas',
    width: 100,
    align: 'end',
    kind: 'number',
    descendingFirst: true,
    value: ({ replicas }) => replicas,
    exports: ofExports('replicas', 'Replicas', ({ ready, replicas }) => ({ ready, total: replicas })),
    cell: ({ ready, replicas }) => <Of part={Math.min(ready, replicas)} all={replicas} lacking="not ready" why="" />,
  },
  { id: 'updated', header: 'Updated', width: 90, align: 'end', kind: 'number', value: ({ updated }) => updated },
  {
    id: 'available',
    header: 'Available',
    width: 96,
    align: 'end',
    kind: 'number',
    value: ({ available }) => available,
  },
]

export function DeploymentsTab({ cluster }: { cluster: ClusterView }): ReactNode {
  return (
    <PartGate<DeploymentView> cluster={cluster} type="deployment">
      {({ rows, stale, note, total, exports }) => (
        <ResourceTable
          caption={`Deployments of ${cluster.name}`}
          id="deployments"
          noun="deployments"
          rows={rows}
          columns={deploymentColumns}
          words={nameOf}
          rowKey={nameOf}
          sort="ready"
          example="namespace:* ready<100"
          empty={noneOf('deployments', cluster, 'namespaces')}
          dim={() => stale}
          note={note}
          alsoExported={exports}
          total={total}
        />
      )}
    </PartGate>
  )
}

const phases: Readonly<Record<string, Need>> = { Succeeded: 'healthy', Failed: 'unhealthy', Unknown: 'unknown' }
export const phaseNeed = (status: string): Need => phases[status] ?? 'degraded'

const operatorColumns: readonly Column<OperatorView>[] = [
  {
    id: 'name',
    header: 'Operator',
    value: ({ displayName, csv }) => displayName || csv,
    exports: [
      {
        id: 'operator',
        header: 'Operator',
        value: ({ displayName, csv, name }) => displayName || csv || shortName({ name }),
      },
      { id: 'csv', header: 'ClusterServiceVersion', value: ({ csv }) => csv || null },
    ],
    cell: ({ displayName, csv, name }) => (
      <span className="name-cell">
        <Name text={displayName || csv || shortName({ name })} />
        <span className="sub mono">
          <Name text={csv} />
        </span>
      </span>
    ),
  },
  {
    id: 'status',
    header: 'Status',
    width: 150,
    value: ({ status }) => status,
    cell: ({ status }) => (
      <Flash value={status}>
        <HealthMark need={phaseNeed(status)} word={status} />
      </Flash>
    ),
  },
  {
    id: 'version',
    header: 'Version',
    width: 120,
    kind: 'version',
    value: ({ version }) => version || null,
    cell: ({ version }) => (version ? <span className="mono">{version}</span> : <Missing why="no installed version" />),
  },
  { id: 'namespace', header: 'Namespace', width: 190, value: ({ namespace }) => namespace },
  {
    id: 'scope',
    header: 'Scope',
    width: 150,
    value: ({ clusterWide, availableInNamespaces }) => (clusterWide ? 'cluster-wide' : availableInNamespaces),
    cell: ({ clusterWide, availableInNamespaces }) =>
      clusterWide ? (
        'cluster-wide'
      ) : availableInNamespaces.length === 1 ? (
        availableInNamespaces[0]
      ) : (
        <span data-tip={availableInNamespaces.join(', ')}>{formatCount(availableInNamespaces.length)} namespaces</span>
      ),
  },
  { id: 'provider', header: 'Provider', width: 160, value: ({ provider }) => provider || null },
  { id: 'mode', header: 'Install mode', width: 140, extra: true, value: ({ installMode }) => installMode || null },
]

export function OperatorsTab({ cluster }: { cluster: ClusterView }): ReactNode {
  return (
    <PartGate<OperatorView> cluster={cluster} type="operator">
      {({ rows, stale, note, total, exports }) => (
        <ResourceTable
          caption={`Operators of ${cluster.name}`}
          id="operators"
          noun="operators"
          rows={rows}
          columns={operatorColumns}
          words={operatorWords}
          rowKey={nameOf}
          sort="name"
          rowHeight={48}
          example="status:* namespace:*"
          empty={noneOf('operators', cluster, 'operators')}
          dim={() => stale}
          note={note}
          alsoExported={exports}
          total={total}
        />
      )}
    </PartGate>
  )
}

function operatorNeed({ available, degraded, progressing }: ClusterOperatorView): { need: Need; word: string } {
  if (!available) return { need: 'unhealthy', word: 'Not available' }
  if (degraded) return { need: 'degraded', word: 'Degraded' }
  return { need: 'healthy', word: progressing ? 'Progressing' : 'Available' }
}
const needOrder: readonly Need[] = ['unhealthy', 'degraded', 'healthy']

const clusterOperatorColumns: readonly Column<ClusterOperatorView>[] = [
  { id: 'name', header: 'Cluster operator', width: 260, value: nameOf },
  {
    id: 'status',
    header: 'Status',
    width: 150,
    value: (row) => operatorNeed(row).word,
    order: (row) => needOrder.indexOf(operatorNeed(row).need),
    cell: (row) => {
      const { need, word } = operatorNeed(row)
      return (
        <Flash value={word}>
          <HealthMark need={need} word={word} />
        </Flash>
      )
    },
  },
  {
    id: 'version',
    header: 'Version',
    width: 110,
    kind: 'version',
    value: ({ version }) => version || null,
    cell: ({ version }) => (version ? <span className="mono">{version}</span> : <Missing why="not told" />),
  },
  {
    id: 'since',
    header: 'Since',
    width: 80,
    align: 'end',
    kind: 'time',
    value: ({ lastTransitionAt }) => lastTransitionAt,
    cell: ({ lastTransitionAt }) =>
      lastTransitionAt === null ? <Missing why="no date given" /> : <Age at={lastTransitionAt} />,
  },
  { id: 'upgradeable', header: 'Upgradeable', width: 110, value: ({ upgradeable }) => upgradeable },
  {
    id: 'message',
    header: 'Message',
    value: ({ message }) => message || null,
    cell: ({ message, reason }) =>
      message ? (
        <span className="clip" data-tip={`${reason ? `${reason}: ` : ''}${message}`}>
          {message}
        </span>
      ) : (
        <Missing why="the operator says nothing" />
      ),
  },
]
const clusterOperatorFields = {
  available: { kind: 'text' as const, read: ({ available }: ClusterOperatorView) => available, values: ['yes', 'no'] },
  degraded: { kind: 'text' as const, read: ({ degraded }: ClusterOperatorView) => degraded, values: ['yes', 'no'] },
  progressing: {
    kind: 'text' as const,
    read: ({ progressing }: ClusterOperatorView) => progressing,
    values: ['yes', 'no'],
  },
}

export function ClusterOperatorsTab({ cluster }: { cluster: ClusterView }): ReactNode {
  return (
    <PartGate<ClusterOperatorView> cluster={cluster} type="clusterOperator">
      {({ rows, stale, note, total, exports }) => (
        <ResourceTable
          caption={`Cluster operators of ${cluster.name}`}
          id="cluster-operators"
          noun="cluster operators"
          rows={rows}
          columns={clusterOperatorColumns}
          fields={clusterOperatorFields}
          words={clusterOperatorWords}
          rowKey={nameOf}
          sort="status"
          example="degraded:yes"
          empty={noneOf('cluster operators', cluster, 'operators')}
          dim={() => stale}
          note={note}
          alsoExported={exports}
          total={total}
        />
      )}
    </PartGate>
  )
}
