import { ClusterHealth } from '../../components/cluster-health.tsx'
import { ClusterCell } from '../../components/cluster-name.tsx'
import { Of, Pods } from '../../components/counts.tsx'
import { FilteredSign } from '../../components/filtered.tsx'
import { HeartbeatStrip } from '../../components/health.tsx'
import { LoadMeter } from '../../components/meter.tsx'
import { Name } from '../../components/name.tsx'
import { Kept } from '../../components/past.tsx'
import { ModeCell } from '../../components/push.tsx'
import type { Column } from '../../components/resource-table.tsx'
import { Age, Missing } from '../../components/text.tsx'
import { type ClusterView, type RowType, unfinishedPods } from '../../contract.ts'
import { factsAt, isHidden, loadOf, needOf, needWord, severityOf } from '../../model/cluster.ts'
import { whyNotRead } from '../../model/current.ts'
import { absenceOfType, clusterNameExports, loadExports, ofExports, podExports } from '../../model/export-columns.ts'
import type { Field } from '../../model/filter.ts'
import { formatCount } from '../../model/format.ts'
import { pushStatus } from '../../model/push.ts'
import { clusterPath } from '../../router.tsx'

export const versionOf = (cluster: ClusterView): string | null => cluster.facts?.version ?? null

/** Not every cluster has a channel; of one that was never read nothing is known. */
const ofFacts = ({ facts }: ClusterView) => (facts ? 'none' : 'unknown')

/** `now` is the hub's time when the order was last looked at: severity depends on it. */
export function fleetColumns(now: number): readonly Column<ClusterView>[] {
  return [
    {
      id: 'name',
      header: 'Cluster',
      value: ({ name }) => name,
      exports: clusterNameExports,
      cell: (cluster) => (
        <ClusterCell name={cluster.name} displayName={cluster.displayName} to={clusterPath(cluster.name)}>
          {cluster.filtered && <FilteredSign />}
        </ClusterCell>
      ),
    },
    {
      id: 'needs',
      header: 'Health',
      width: 168,
      least: 116,
      value: (cluster) => needWord[needOf(cluster, now)],
      order: (cluster) => severityOf(cluster, now),
      cell: (cluster) => <ClusterHealth cluster={cluster} />,
    },
    {
      id: 'heartbeats',
      header: 'Rounds',
      width: 204,
      least: 56,
      value: ({ heartbeats }) => heartbeats.filter(({ health }) => health !== 'healthy').length,
      kind: 'number',
      descendingFirst: true,
      exports: [
        {
          id: 'roundsNotHealthy',
          header: 'Last rounds not healthy',
          value: ({ heartbeats }) => heartbeats.filter(({ health }) => health !== 'healthy').length,
        },
        { id: 'rounds', header: 'Last rounds', value: ({ heartbeats }) => heartbeats.length },
      ],
      cell: ({ heartbeats, filtered }) => <HeartbeatStrip heartbeats={heartbeats} filtered={filtered} />,
    },
    {
      id: 'nodes',
      header: 'Nodes',
      width: 104,
      least: 72,
      align: 'end',
      kind: 'number',
      descendingFirst: true,
      value: ({ nodes }) => nodes?.total ?? null,
      exports: ofExports('nodes', 'Nodes', ({ nodes }) => nodes, 'node'),
      cell: (cluster) => (
        <Of
          part={cluster.nodes?.ready}
          all={cluster.nodes?.total}
          lacking="not ready"
          why="nodes were never read"
          hidden={isHidden(cluster, 'node') && 'nodes'}
        />
      ),
    },
    {
      id: 'pods',
      header: 'Pods',
      width: 104,
      least: 84,
      align: 'end',
      kind: 'number',
      descendingFirst: true,
      value: ({ pods }) => pods?.running ?? null,
      exports: podExports,
      cell: (cluster) => (
        <Kept cluster={cluster} type="podSummary">
          <Pods pods={cluster.pods} hidden={isHidden(cluster, 'node')} />
        </Kept>
      ),
    },
    {
      id: 'cpu',
      header: 'CPU',
      width: 122,
      least: 76,
      kind: 'percent',
      descendingFirst: true,
      value: ({ cpuCores }) => loadOf(cpuCores)?.ratio ?? null,
      exports: loadExports('cpu', 'CPU', ({ cpuCores }) => cpuCores),
      cell: ({ cpuCores, filtered }) => <LoadMeter what="CPU" amounts={cpuCores} hidden={filtered} />,
    },
    {
      id: 'memory',
      header: 'Memory',
      width: 122,
      least: 76,
      kind: 'percent',
      descendingFirst: true,
      value: ({ memoryBytes }) => loadOf(memoryBytes)?.ratio ?? null,
      exports: loadExports('memory', 'Memory', ({ memoryBytes }) => memoryBytes),
      cell: ({ memoryBytes, filtered }) => <LoadMeter what="Memory" amounts={memoryBytes} hidden={filtered} />,
    },
    {
      id: 'version',
      header: 'Version',
      width: 116,
      least: 88,
      kind: 'version',
      value: versionOf,
      cell: (cluster) =>
        versionOf(cluster) ? (
          <Name text={versionOf(cluster) ?? ''} className="mono" />
        ) : (
          <Missing why="the cluster has not told its version" />
        ),
    },
    {
      id: 'mode',
      header: 'Mode',
      width: 124,
      least: 104,
      value: ({ mode }) => mode,
      cell: (cluster) => <ModeCell cluster={cluster} />,
    },
    {
      id: 'age',
      header: 'As of',
      width: 78,
      least: 64,
      align: 'end',
      kind: 'time',
      descendingFirst: true,
      value: factsAt,
      cell: (cluster) => {
        const at = factsAt(cluster)
        return at === null ? <Missing why="never read" /> : <Age at={at} />
      },
    },
    {
      id: 'distribution',
      header: 'Distribution',
      width: 120,
      extra: true,
      value: ({ facts }) => facts?.distribution ?? null,
      absence: ofFacts,
    },
    {
      id: 'platform',
      header: 'Platform',
      width: 130,
      extra: true,
      value: ({ facts }) => facts?.platform ?? null,
      absence: ofFacts,
    },
    {
      id: 'channel',
      header: 'Channel',
      width: 120,
      extra: true,
      value: ({ facts }) => facts?.channel ?? null,
      absence: ofFacts,
    },
    {
      id: 'namespaces',
      header: 'Namespaces',
      width: 108,
      align: 'end',
      extra: true,
      kind: 'number',
      value: ({ namespaces }) => namespaces,
      absence: absenceOfType('namespace'),
      cell: (cluster) => <CountOf cluster={cluster} type="namespace" count={cluster.namespaces} />,
    },
    {
      id: 'deployments',
      header: 'Deployments',
      width: 112,
      align: 'end',
      extra: true,
      kind: 'number',
      value: ({ deployments }) => deployments?.total ?? null,
      exports: ofExports('deployments', 'Deployments', ({ deployments }) => deployments, 'deployment'),
      cell: (cluster) => (
        <Kept cluster={cluster} type="deployment">
          <Of
            part={cluster.deployments?.ready}
            all={cluster.deployments?.total}
            lacking="not ready"
            why={whyNotRead(cluster, 'deployment')}
            hidden={isHidden(cluster, 'deployment') && 'deployments'}
          />
        </Kept>
      ),
    },
    {
      id: 'operators',
      header: 'Operators',
      width: 100,
      align: 'end',
      extra: true,
      kind: 'number',
      value: ({ operators }) => operators?.total ?? null,
      absence: absenceOfType('operator'),
      cell: (cluster) => <CountOf cluster={cluster} type="operator" count={cluster.operators?.total ?? null} />,
    },
    { id: 'endpoint', header: 'Endpoint', width: 240, extra: true, value: ({ endpoint }) => endpoint },
  ]
}

/** A plain count of one type, with its time where it is of the past, and the reason where there is none. */
function CountOf({ cluster, type, count }: { cluster: ClusterView; type: RowType; count: number | null }) {
  if (count === null) return <Missing why={whyNotRead(cluster, type)} />
  return (
    <Kept cluster={cluster} type={type}>
      {formatCount(count)}
    </Kept>
  )
}

const healths = ['healthy', 'degraded', 'unhealthy', 'unknown']
const yesNo = ['yes', 'no']

/** What can be asked for besides the columns. */
export function fleetFields(now: number): Readonly<Record<string, Field<ClusterView>>> {
  return {
    health: { kind: 'text', read: ({ health }) => health, values: healths },
    stale: { kind: 'text', read: (cluster) => needOf(cluster, now) === 'stale', values: yesNo },
    needs: {
      kind: 'text',
      read: (cluster) => needWord[needOf(cluster, now)],
      values: Object.values(needWord),
    },
    notready: { kind: 'number', read: ({ nodes }) => nodes?.notReady ?? null },
    notrunning: {
      kind: 'number',
      read: ({ pods }) => pods && unfinishedPods(pods) - pods.running,
    },
    failed: { kind: 'number', read: ({ pods }) => pods?.failed ?? null },
    pending: { kind: 'number', read: ({ pods }) => pods?.pending ?? null },
    source: { kind: 'text', read: ({ source }) => source },
    agent: {
      kind: 'text',
      read: ({ agent }) => (agent === null ? 'none' : agent.connected ? 'connected' : 'away'),
      values: ['connected', 'away'],
    },
    push: {
      kind: 'text',
      read: (cluster) =>
        [pushStatus(cluster, now)].flatMap(({ instead, notes }) => [
          ...(instead ? ['odd'] : []),
          ...notes.map(({ code }) => code),
        ]),
    },
    filtered: { kind: 'text', read: ({ filtered }) => filtered, values: yesNo },
    buffered: { kind: 'number', read: ({ agent }) => agent?.bufferedBatches ?? null },
    reason: { kind: 'text', read: ({ reasons }) => reasons.map(({ code }) => code) },
  }
}
