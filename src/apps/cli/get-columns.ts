import type { ClusterView, EventView, TypeView } from '#http'
import { absenceOfRead, absenceWord, eventWords, rivalryOf, type TimeWords, unfinishedPods } from '#model'
import { age, type Column, share } from './format.ts'
import type { Noun } from './words.ts'

/** What `get` prints of each noun. */
export interface Rows {
  clusters: ClusterView
  events: EventView
  types: TypeView
  agents: ClusterView
}
export type Row<N extends Noun = Noun> = Rows[N]

const times: TimeWords = {
  stretch: (from, to) => `${new Date(from).toISOString()} to ${new Date(to).toISOString()}`,
  span: age,
}

/** Why there is no number of this part of a cluster; null: it is not known. */
const unread = ({ parts, filtered }: ClusterView, type: string): string | null => {
  const absence = absenceOfRead(parts[type], filtered)
  return absence === 'unknown' ? null : absenceWord[absence]
}

const ratio = (part: number, total: number) => `${part}/${total}`

/** `AS-OF` is how old what we know is, `AGE` how old the thing itself is. */
export function columnsOf<N extends Noun>(noun: N, now: number): readonly Column<Row<N>>[] {
  const ago = (at: number | null | undefined) => (at === null || at === undefined ? null : age(now - at))
  const cluster: Column<{ readonly cluster: string }> = { header: 'CLUSTER', value: (row) => row.cluster }
  const columns: { [N in Noun]: readonly Column<Row<N>>[] } = {
    clusters: [
      { header: 'NAME', value: ({ name }) => name },
      { header: 'HEALTH', value: ({ health, stale }) => (stale ? `${health} (stale)` : health) },
      {
        header: 'NODES',
        value: (row) => (row.nodes ? ratio(row.nodes.ready, row.nodes.total) : unread(row, 'node')),
      },
      {
        header: 'PODS',
        value: (row) => (row.pods ? ratio(row.pods.running, unfinishedPods(row.pods)) : unread(row, 'node')),
      },
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
    events: [
      { header: 'AGE', value: ({ at }) => ago(at) },
      cluster,
      { header: 'TYPE', value: ({ type }) => type },
      { header: 'MESSAGE', value: (event) => eventWords(event, times).text },
    ],
    types: [
      { header: 'NAME', value: ({ type }) => type },
      { header: 'SOURCE', value: ({ sources }) => sources.map(({ id }) => id).join(',') },
      { header: 'KIND', value: ({ sources }) => [...new Set(sources.map(({ kind }) => kind))].join(',') },
      {
        header: 'CLUSTERS',
        value: ({ clusters, sources }) =>
          sources[0]?.scope === 'Fleet' ? null : ratio(clusters.filter(isRead).length, clusters.length),
      },
      { header: 'ROWS', value: ({ count }) => (count === null ? null : String(count)) },
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
      {
        header: 'COLLECTED BY',
        // Of one that was never there the mode alone says push.
        value: ({ source, agent }) => (source === 'pull' ? 'hub' : agent === null ? null : 'agent'),
      },
      { header: 'HEARTBEAT', value: ({ agent }) => ago(agent?.heartbeatAt) },
      { header: 'BUFFERED', value: ({ agent }) => agent && String(agent.bufferedBatches) },
      { header: 'OLDEST', value: ({ agent }) => ago(agent?.oldestBufferedAt) },
      { header: 'LOST', value: ({ agent }) => agent && String(agent.lostBatches) },
      { header: 'TLS', value: ({ agent }) => agent && (agent.tls ? 'yes' : 'no') },
      // Who owns the cluster has its stream, log and state: `owner` where one process has all.
      { header: 'PROCESS', value: ({ agent }) => agent && (agent.process ?? 'owner') },
      { header: 'VERSION', value: ({ agent }) => agent?.version ?? null },
      { header: 'REASON', value: ({ agent }) => agent && (rivalryOf(agent) || agent.reason) },
    ],
  }
  return columns[noun]
}

const isRead = ({ part }: TypeView['clusters'][number]): boolean => part.outcome === 'complete'

const healths = ['unhealthy', 'degraded', 'unknown', 'stale', 'healthy'] as const
type Rank = readonly (string | number)[]

/** What is to come first: what needs somebody most, then by name. The order of the page. */
const ranks: { readonly [N in Noun]: (row: Row<N>) => Rank } = {
  clusters: ({ health, stale, name }) => [healths.indexOf(health === 'healthy' && stale ? 'stale' : health), name],
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
  events: ({ type }) => [type],
  types: ({ type }) => [type],
  agents: ({ name }) => [name],
}
export const namesOf = <N extends Noun>(noun: N, row: Row<N>): readonly string[] => callNames[noun](row)
