import {
  ApiProblem,
  type Client,
  type ClusterView,
  createClient,
  type NamespaceView,
  type NodeView,
  type OperatorView,
} from '#http'
import { age, type Column, type OutputFormat, print, share } from './format.ts'

export const nouns = ['clusters', 'nodes', 'namespaces', 'operators', 'agents'] as const
export type Noun = (typeof nouns)[number]

export interface GetOptions {
  readonly noun: Noun
  readonly server: string
  readonly clusters: readonly string[]
  readonly output: OutputFormat
  /** bearer token, for a hub that asks who calls */
  readonly token?: string
}

/** A client of the hub at this address, as the bearer of the token. */
export const clientOf = (server: string, token: string | undefined): Client =>
  createClient({ baseUrl: server, ...(token && { headers: { authorization: `Bearer ${token}` } }) })

/** What a command prints on standard output, and notes beside it for standard error. */
export interface Printed {
  readonly text: string
  readonly notes: readonly string[]
}

/** @throws ApiProblem where the hub refuses or cannot be reached */
export async function get({ noun, server, clusters, output, token }: GetOptions, now = Date.now()): Promise<Printed> {
  const client = clientOf(server, token)
  const all = await collect(client.all((cursor) => client.clusters({ limit: 1000, ...(cursor && { cursor }) })))
  const unknown = clusters.filter((name) => !all.some((cluster) => cluster.name === name))
  if (unknown.length > 0) {
    const known = all.map((cluster) => cluster.name).join(', ')
    throw new ApiProblem(404, {
      error: `no cluster named ${unknown.join(', ')}; ${known === '' ? 'the hub has none that you may see' : `there are ${known}`}`,
      code: 'cluster_not_found',
      requestId: '',
    })
  }
  const chosen = clusters.length === 0 ? all : all.filter((cluster) => clusters.includes(cluster.name))
  if (noun === 'clusters') return { text: print(output, clusterColumns(now), chosen), notes: staleNotes(chosen, now) }
  if (noun === 'agents') {
    const agents = chosen.filter(({ agent, mode }) => agent !== null || mode === 'push')
    const rows = output === 'table' || output === 'wide' ? agents : agents.map(agentRow)
    return { text: print(output, agentColumns(now), rows as ClusterView[]), notes: staleNotes(agents, now) }
  }

  const rows = await rowsOf(client, noun, chosen)
  return {
    text: print(output, columnsOf(noun, now), rows.items as never[]),
    notes: [...rows.notes, ...staleNotes(chosen, now)],
  }
}

const agentRow = ({ name, mode, source, owner, agent }: ClusterView) => ({
  ...{ name, mode, source },
  ...(owner !== undefined && { owner }),
  agent,
})

type Row = NodeView | NamespaceView | OperatorView

async function rowsOf(client: Client, noun: Exclude<Noun, 'clusters' | 'agents'>, clusters: readonly ClusterView[]) {
  const items: Row[] = []
  const notes: string[] = []
  for (const cluster of clusters) {
    const list = { nodes: client.nodes, namespaces: client.namespaces, operators: client.operators }[noun]
    const found = await collect<Row>(
      client.all<Row>((cursor) => list(cluster.name, { limit: 1000, ...(cursor && { cursor }) })),
    )
    items.push(...found)
    const part = cluster.parts[{ nodes: 'node', namespaces: 'namespace', operators: 'operator' }[noun]]
    if (!part) notes.push(`${cluster.name}: ${noun} were not read yet`)
    else if (part.outcome !== 'complete') notes.push(`${cluster.name}: ${noun} are ${part.outcome}: ${part.message}`)
  }
  return { items, notes }
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

const staleNotes = (clusters: readonly ClusterView[], now: number) =>
  clusters
    .filter((cluster) => cluster.stale)
    .map((cluster) =>
      cluster.lastSyncAt === null
        ? `${cluster.name}: never read: ${cluster.message}`
        : `${cluster.name}: as of ${age(now - cluster.lastSyncAt)} ago: ${cluster.message}`,
    )

const ratio = (part: number | undefined, total: number | undefined) =>
  part === undefined || total === undefined ? null : `${part}/${total}`

function clusterColumns(now: number): Column<ClusterView>[] {
  return [
    { header: 'NAME', value: (cluster) => cluster.name },
    { header: 'HEALTH', value: (cluster) => (cluster.stale ? `${cluster.health} (stale)` : cluster.health) },
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
    { header: 'VERSION', value: (cluster) => cluster.facts?.version ?? null },
    { header: 'MODE', value: (cluster) => cluster.mode },
    { header: 'AGE', value: (cluster) => (cluster.lastSyncAt === null ? null : age(now - cluster.lastSyncAt)) },
    { header: 'ENDPOINT', value: (cluster) => cluster.endpoint, isWide: true },
    { header: 'OWNER', value: (cluster) => cluster.owner ?? null, isWide: true },
    { header: 'MESSAGE', value: (cluster) => cluster.message },
  ]
}

function agentColumns(now: number): Column<ClusterView>[] {
  const ago = (at: number | null | undefined) => (at === null || at === undefined ? null : age(now - at))
  return [
    { header: 'CLUSTER', value: ({ name }) => name },
    {
      header: 'AGENT',
      value: ({ agent }) => (agent === null ? 'never seen' : `${agent.connected ? 'connected' : 'away'}`),
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
  ]
}

function columnsOf(noun: Exclude<Noun, 'clusters' | 'agents'>, now: number): Column<never>[] {
  const seen: Column<Row> = { header: 'AGE', value: (row) => age(now - row.freshness.observedAt) }
  const cluster: Column<Row> = { header: 'CLUSTER', value: (row) => row.cluster }
  const nodes: Column<NodeView>[] = [
    cluster,
    { header: 'NAME', value: (node) => node.name },
    {
      header: 'STATUS',
      value: (node) =>
        `${{ ready: 'Ready', notReady: 'NotReady', unknown: 'Unknown' }[node.ready]}${node.unschedulable ? ',SchedulingDisabled' : ''}`,
    },
    { header: 'ROLES', value: (node) => node.roles.join(',') },
    {
      header: 'CPU',
      value: (node) => share(node.used?.cpuCores ?? node.requested?.cpuCores ?? null, node.allocatable.cpuCores),
    },
    {
      header: 'MEMORY',
      value: (node) =>
        share(node.used?.memoryBytes ?? node.requested?.memoryBytes ?? null, node.allocatable.memoryBytes),
    },
    { header: 'BASIS', value: (node) => (node.used ? 'used' : node.requested ? 'requested' : 'not shown') },
    { header: 'PODS', value: (node) => ratio(node.pods?.running, node.pods?.total) },
    { header: 'VERSION', value: (node) => node.kubeletVersion },
    seen,
  ]
  const namespaces: Column<NamespaceView>[] = [
    cluster,
    { header: 'NAME', value: (namespace) => namespace.name },
    { header: 'PHASE', value: (namespace) => namespace.phase },
    { header: 'PODS', value: ({ pods }) => ratio(pods?.running, pods?.total) },
    { header: 'DEPLOYMENTS', value: ({ deployments }) => deployments?.toString() ?? null },
    seen,
  ]
  const operators: Column<OperatorView>[] = [
    cluster,
    { header: 'NAME', value: (operator) => operator.csv },
    { header: 'DISPLAY NAME', value: (operator) => operator.displayName },
    { header: 'VERSION', value: (operator) => operator.version },
    { header: 'STATUS', value: (operator) => operator.status },
    { header: 'NAMESPACE', value: (operator) => operator.namespace },
    {
      header: 'SCOPE',
      value: (operator) => (operator.clusterWide ? 'cluster' : operator.availableInNamespaces.join(',')),
    },
    seen,
  ]
  return { nodes, namespaces, operators }[noun] as Column<never>[]
}
