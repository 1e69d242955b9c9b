import type {
  ClusterOperatorView,
  ClusterView,
  DeploymentView,
  EventView,
  NamespaceView,
  NodeView,
  OperatorView,
  TypeView,
} from '#http'
import { age, type Column, share } from './format.ts'
import type { Noun } from './words.ts'

/** What `get` prints of each noun. */
export interface Rows {
  clusters: ClusterView
  nodes: NodeView
  namespaces: NamespaceView
  deployments: DeploymentView
  operators: OperatorView
  'cluster-operators': ClusterOperatorView
  events: EventView
  types: TypeView
  agents: ClusterView
}
export type Row<N extends Noun = Noun> = Rows[N]

const ratio = (part: number | undefined, total: number | undefined) =>
  part === undefined || total === undefined ? null : `${part}/${total}`

/** `AS-OF` is how old what we know is, `AGE` how old the thing itself is. */
export function columnsOf<N extends Noun>(noun: N, now: number): readonly Column<Row<N>>[] {
  const ago = (at: number | null | undefined) => (at === null || at === undefined ? null : age(now - at))
  const cluster: Column<{ readonly cluster: string }> = { header: 'CLUSTER', value: (row) => row.cluster }
  const asOf: Column<{ readonly freshness: { readonly observedAt: number } }> = {
    header: 'AS-OF',
    value: (row) => ago(row.freshness.observedAt),
  }
  const born: Column<{ readonly createdAt: number | null }> = {
    header: 'AGE',
    value: ({ createdAt }) => ago(createdAt),
  }
  const columns: { [N in Noun]: readonly Column<Row<N>>[] } = {
    clusters: [
      { header: 'NAME', value: ({ name }) => name },
      { header: 'HEALTH', value: ({ health, stale }) => (stale ? `${health} (stale)` : health) },
      { header: 'NODES', value: ({ nodes }) => ratio(nodes?.ready, nodes?.total) },
      { header: 'PODS', value: ({ pods }) => ratio(pods?.running, pods?.total) },
      { header: 'CPU', value: ({ cpuCores }) => share(cpuCores.used ?? cpuCores.requested, cpuCores.allocatable) },
      {
        header: 'MEMORY',
        value: ({ memoryBytes }) => share(memoryBytes.used ?? memoryBytes.requested, memoryBytes.allocatable),
      },
      {
        header: 'BASIS',
        value: ({ cpuCores }) => (cpuCores.used !== null ? 'used' : cpuCores.requested !== null ? 'requested' : null),
      },
      { header: 'VERSION', value: ({ facts }) => facts?.version ?? null },
      { header: 'MODE', value: ({ mode }) => mode },
      { header: 'AS-OF', value: ({ lastSyncAt }) => ago(lastSyncAt) },
      { header: 'ENDPOINT', value: ({ endpoint }) => endpoint, isWide: true },
      { header: 'OWNER', value: ({ owner }) => owner ?? null, isWide: true },
      { header: 'MESSAGE', value: ({ message }) => message },
    ],
    nodes: [
      cluster,
      { header: 'NAME', value: ({ name }) => name },
      {
        header: 'STATUS',
        value: ({ ready, unschedulable }) =>
          `${{ ready: 'Ready', notReady: 'NotReady', unknown: 'Unknown' }[ready]}${unschedulable ? ',SchedulingDisabled' : ''}`,
      },
      { header: 'ROLES', value: ({ roles }) => roles.join(',') },
      {
        header: 'CPU',
        value: ({ used, requested, allocatable }) =>
          share(used?.cpuCores ?? requested?.cpuCores ?? null, allocatable.cpuCores),
      },
      {
        header: 'MEMORY',
        value: ({ used, requested, allocatable }) =>
          share(used?.memoryBytes ?? requested?.memoryBytes ?? null, allocatable.memoryBytes),
      },
      { header: 'BASIS', value: ({ used, requested }) => (used ? 'used' : requested ? 'requested' : 'not shown') },
      { header: 'PODS', value: ({ pods }) => ratio(pods?.running, pods?.total) },
      { header: 'VERSION', value: ({ kubeletVersion }) => kubeletVersion },
      born,
      asOf,
    ],
    namespaces: [
      cluster,
      { header: 'NAME', value: ({ name }) => name },
      { header: 'PHASE', value: ({ phase }) => phase },
      { header: 'PODS', value: ({ pods }) => ratio(pods?.running, pods?.total) },
      { header: 'DEPLOYMENTS', value: ({ deployments }) => deployments?.toString() ?? null },
      born,
      asOf,
    ],
    deployments: [
      cluster,
      { header: 'NAMESPACE', value: ({ namespace }) => namespace },
      { header: 'NAME', value: ({ name }) => bareName(name) },
      { header: 'READY', value: ({ ready, replicas }) => ratio(ready, replicas) },
      { header: 'UP-TO-DATE', value: ({ updated }) => String(updated) },
      { header: 'AVAILABLE', value: ({ available }) => String(available) },
      asOf,
    ],
    operators: [
      cluster,
      { header: 'NAME', value: ({ csv }) => csv },
      { header: 'DISPLAY NAME', value: ({ displayName }) => displayName },
      { header: 'VERSION', value: ({ version }) => version },
      { header: 'STATUS', value: ({ status }) => status },
      { header: 'NAMESPACE', value: ({ namespace }) => namespace },
      {
        header: 'SCOPE',
        value: ({ clusterWide, availableInNamespaces }) => (clusterWide ? 'cluster' : availableInNamespaces.join(',')),
      },
      born,
      asOf,
    ],
    'cluster-operators': [
      cluster,
      { header: 'NAME', value: ({ name }) => name },
      { header: 'VERSION', value: ({ version }) => version },
      { header: 'AVAILABLE', value: ({ available }) => yes(available) },
      { header: 'PROGRESSING', value: ({ progressing }) => yes(progressing) },
      { header: 'DEGRADED', value: ({ degraded }) => yes(degraded) },
      { header: 'SINCE', value: ({ lastTransitionAt }) => ago(lastTransitionAt) },
      asOf,
      { header: 'MESSAGE', value: ({ message }) => message },
    ],
    events: [
      { header: 'AGE', value: ({ at }) => ago(at) },
      cluster,
      { header: 'TYPE', value: ({ type }) => type },
      { header: 'DATA', value: ({ data }) => data && JSON.stringify(data) },
    ],
    types: [
      { header: 'NAME', value: ({ type }) => type },
      { header: 'SOURCE', value: ({ sources }) => sources.map(({ id }) => id).join(',') },
      { header: 'KIND', value: ({ sources }) => [...new Set(sources.map(({ kind }) => kind))].join(',') },
      { header: 'CLUSTERS', value: ({ clusters }) => ratio(clusters.filter(isRead).length, clusters.length) },
      { header: 'ROWS', value: ({ count }) => String(count) },
      {
        header: 'AS-OF',
        value: ({ clusters }) => {
          const times = clusters.flatMap(({ part }) => part.freshness?.observedAt ?? [])
          return times.length === 0 ? null : ago(Math.min(...times))
        },
      },
    ],
    agents: [
      { header: 'CLUSTER', value: ({ name }) => name },
      {
        header: 'AGENT',
        value: ({ agent }) => (agent === null ? 'never seen' : agent.connected ? 'connected' : 'away'),
      },
      { header: 'SINCE', value: ({ agent }) => ago(agent?.since) },
      { header: 'COLLECTED BY', value: ({ source }) => (source === 'push' ? 'agent' : 'hub') },
      { header: 'HEARTBEAT', value: ({ agent }) => ago(agent?.heartbeatAt) },
      { header: 'BUFFERED', value: ({ agent }) => agent && String(agent.bufferedBatches) },
      { header: 'OLDEST', value: ({ agent }) => ago(agent?.oldestBufferedAt) },
      { header: 'LOST', value: ({ agent }) => agent && String(agent.lostBatches) },
      { header: 'TLS', value: ({ agent }) => agent && (agent.tls ? 'yes' : 'no') },
      // Who owns the cluster has its stream, log and state: `owner` where one process has all.
      { header: 'PROCESS', value: ({ agent }) => agent && (agent.process ?? 'owner') },
      { header: 'VERSION', value: ({ agent }) => agent?.version ?? null },
      { header: 'REASON', value: ({ agent }) => agent?.reason ?? null },
    ],
  }
  return columns[noun]
}

const yes = (is: boolean): string => (is ? 'True' : 'False')
const isRead = ({ part }: TypeView['clusters'][number]): boolean => part.outcome === 'complete'
const bareName = (name: string): string => name.slice(name.lastIndexOf('/') + 1)

const healths = ['unhealthy', 'degraded', 'unknown', 'stale', 'healthy'] as const
type Rank = readonly (string | number)[]

/** What is to come first: what needs somebody most, then by name. The order of the page. */
const ranks: { readonly [N in Noun]: (row: Row<N>) => Rank } = {
  clusters: ({ health, stale, name }) => [healths.indexOf(health === 'healthy' && stale ? 'stale' : health), name],
  nodes: ({ ready, unschedulable, cluster, name }) => [
    ['notReady', 'unknown', 'ready'].indexOf(ready),
    unschedulable ? 0 : 1,
    cluster,
    name,
  ],
  namespaces: ({ phase, cluster, name }) => [phase === 'Active' ? 1 : 0, cluster, name],
  deployments: ({ ready, replicas, cluster, name }) => [
    ready >= replicas ? 1 : 0,
    replicas === 0 ? 1 : ready / replicas,
    cluster,
    name,
  ],
  operators: ({ status, cluster, csv }) => [status === 'Failed' ? 0 : status === 'Succeeded' ? 2 : 1, cluster, csv],
  'cluster-operators': ({ available, degraded, progressing, cluster, name }) => [
    !available ? 0 : degraded ? 1 : progressing ? 2 : 3,
    cluster,
    name,
  ],
  events: ({ at, cluster }) => [-at, cluster],
  types: ({ clusters, type }) => [clusters.every(isRead) ? 1 : 0, type],
  agents: ({ agent, name }) => [agent?.connected ? 1 : 0, name],
}

export function worstFirst<N extends Noun>(noun: N, rows: readonly Row<N>[]): Row<N>[] {
  return rows
    .map((row) => ({ row, rank: ranks[noun](row) }))
    .sort((left, right) => compare(left.rank, right.rank))
    .map(({ row }) => row)
}

function compare(left: Rank, right: Rank): number {
  const at = left.findIndex((value, index) => value !== right[index])
  const [one = 0, other = 0] = [left[at], right[at]]
  return at < 0 ? 0 : one < other ? -1 : 1
}

/** Names by which somebody may ask for a row. */
const callNames: { readonly [N in Noun]: (row: Row<N>) => readonly string[] } = {
  clusters: ({ name }) => [name],
  nodes: ({ name }) => [name],
  namespaces: ({ name }) => [name],
  deployments: ({ name }) => [name, bareName(name)],
  operators: ({ name, csv }) => [name, csv],
  'cluster-operators': ({ name }) => [name],
  events: ({ type }) => [type],
  types: ({ type }) => [type],
  agents: ({ name }) => [name],
}
export const namesOf = <N extends Noun>(noun: N, row: Row<N>): readonly string[] => callNames[noun](row)
