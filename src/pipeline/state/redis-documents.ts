import {
  type ClusterState,
  clusterOperatorDocument,
  clusterOperatorStateDocument,
  clusterOperatorsSummaryDocument,
  clusterTotals,
  documentText,
  documentTime,
  eventDocument,
  type Freshness,
  infoDocument,
  metricsDocument,
  namespacesDocument,
  nodeDocument,
  nodeSampleDocument,
  nodeStatus,
  nodesSummaryDocument,
  nodeUsagePercent,
  operatorDocument,
  operatorsSummaryDocument,
  type PartState,
  type SnapshotType,
  specDocument,
  statusDocument,
} from '#model'
import { newEvents } from './cluster-events.ts'
import type { Command } from './redis.ts'

/*
 * The documented keys of one cluster as commands of one transaction. Written where the part was read anew, renewed where
 * it was not due this time; a part that could not be read is left to run out, so that readers see it vanish.
 * All of them may be repeated: a transaction that was answered too late does no harm.
 */
export interface DocumentSettings {
  /** lifetime of documents, ms; never less than three intervals of the cluster */
  readonly ttlMs: number
  /** how far back the series of nodes go, ms */
  readonly retentionMs: number
}

const INFO_MS = 3_600_000
const TOTALS_MS = 300_000
const EVENTS_SECONDS = 86_400
export const EVENT_CHANNEL = 'cluster-events'

export function documentCommands(
  before: ClusterState | undefined,
  after: ClusterState,
  now: number,
  settings: DocumentSettings,
): Command[] {
  return [
    ...headCommands(after, now),
    ...partCommands(before, after, now, settings),
    ...eventListCommands(before, after),
  ]
}

/** What subscribers of the documented channel hear: every event, and each round's end under its documented name. */
export function announcements(before: ClusterState | undefined, after: ClusterState, now: number): Command[] {
  const told = newEvents(before, after).map((event) => eventDocument(event))
  const sawRound = after.sequence !== (before?.sequence ?? 0) || after.origin !== (before?.origin ?? '')
  if (sawRound && !told.some(({ type }) => type === 'cluster.reconciled')) {
    const data = { health: after.status.health, display_name: after.connection?.displayName ?? after.name }
    told.push(eventDocument({ type: 'cluster.reconciled', cluster: after.name, at: now, data }))
  }
  return told.map((document) => ['PUBLISH', EVENT_CHANNEL, documentText(document)])
}

function headCommands({ name, connection, status }: ClusterState, now: number): Command[] {
  const key = `cluster:${name}`
  const labels = Object.entries(connection?.labels ?? {})
  return [
    ['SADD', 'clusters:all', name],
    ['SET', `${key}:status`, documentText(statusDocument(status))],
    ['HSET', `${key}:meta`, 'last_update', documentTime(now)],
    ...(connection ? [['SET', `${key}:spec`, documentText(specDocument(connection))] satisfies Command] : []),
    labels.length > 0
      ? ['SET', `${key}:labels`, documentText(Object.fromEntries(labels.sort()))]
      : ['DEL', `${key}:labels`],
  ]
}

function partCommands(
  before: ClusterState | undefined,
  after: ClusterState,
  now: number,
  settings: DocumentSettings,
): Command[] {
  const lifetimeMs = Math.max(settings.ttlMs, 3 * (after.connection?.intervalMs ?? 0))
  const commands: Command[] = []
  const writers: { [T in SnapshotType]?: Writer } = {
    cluster: infoWriter(before, after, lifetimeMs),
    node: nodeWriter(before, after, now, lifetimeMs, settings.retentionMs),
    namespace: namespaceWriter(after, lifetimeMs),
    operator: operatorWriter(after, lifetimeMs),
    clusterOperator: clusterOperatorWriter(before, after, lifetimeMs),
  }
  const parts = Object.entries(after.parts) as [SnapshotType, PartState<SnapshotType>][]
  const isNew = (type: SnapshotType, { freshness }: PartState<SnapshotType>) =>
    freshness !== null && !sameFreshness(before?.parts[type]?.freshness, freshness)
  const read = new Set(parts.filter(([type, part]) => isNew(type, part)).map(([type]) => type))
  // A round that failed as a whole reads nothing and renews nothing: documents run out, as they always did.
  if (read.size === 0) return []
  for (const [type, writer] of Object.entries(writers) as [SnapshotType, Writer][]) {
    const part = after.parts[type]
    if (!part?.freshness || now - part.freshness.receivedAt > lifetimeMs) continue
    if (read.has(type)) commands.push(...writer.write(part.freshness))
    else if (part.outcome === 'complete') commands.push(...writer.renew())
  }
  if (IN_TOTALS.some((type) => read.has(type))) commands.push(...totalsCommands(after, lifetimeMs))
  return commands
}

const IN_TOTALS: readonly SnapshotType[] = ['node', 'podSummary', 'namespace', 'deployment']

interface Writer {
  write(freshness: Freshness): Command[]
  /** the same keys live on: nothing else was read */
  renew(): Command[]
}

const sameFreshness = (a: Freshness | null | undefined, b: Freshness) =>
  a === b || (a?.observedAt === b.observedAt && a.receivedAt === b.receivedAt)

const seconds = (ms: number) => Math.ceil(ms / 1000)
const expire = (key: string, ms: number): Command => ['EXPIRE', key, seconds(ms)]
const set = (key: string, document: unknown, ms: number): Command => [
  'SET',
  key,
  documentText(document),
  'EX',
  seconds(ms),
]
const itemsOf = <T extends SnapshotType>(state: ClusterState | undefined, type: T) => [
  ...((state?.parts[type] as PartState<T> | undefined)?.items.values() ?? []),
]

function infoWriter(_before: ClusterState | undefined, { name, connection, parts }: ClusterState, ttl: number): Writer {
  const key = `cluster:${name}:info`
  const lifetime = Math.max(INFO_MS, ttl)
  const cluster = parts.cluster?.items.get('cluster')
  return {
    write: () => (cluster ? [set(key, infoDocument(cluster, connection?.endpoint ?? ''), lifetime)] : [['DEL', key]]),
    renew: () => [expire(key, lifetime)],
  }
}

function nodeWriter(
  before: ClusterState | undefined,
  after: ClusterState,
  now: number,
  ttl: number,
  retentionMs: number,
): Writer {
  const key = `cluster:${after.name}`
  const nodes = itemsOf(after, 'node')
  return {
    write: ({ observedAt }) => {
      const names = nodes.map(({ name }) => name)
      const gone = itemsOf(before, 'node').filter(({ name }) => !after.parts.node?.items.has(name))
      const summary = nodesSummaryDocument(nodes, clusterTotals({ nodes }), observedAt)
      const score = Math.floor(now / 1000)
      return [
        ['DEL', `${key}:nodes`, ...gone.map(({ name }) => `${key}:node:${name}`)],
        ...(names.length > 0 ? [['SADD', `${key}:nodes`, ...names] satisfies Command] : []),
        ['HSET', `${key}:nodes:summary`, 'data', documentText(summary)],
        expire(`${key}:nodes:summary`, ttl),
        ...nodes.flatMap((node): Command[] => {
          const usage = nodeUsagePercent(node)
          const nodeKey = `${key}:node:${node.name}`
          return [
            // prettier-ignore
            [
              'HSET',
              nodeKey,
              'current',
              documentText(nodeDocument(node, observedAt)),
              'last_update',
              documentTime(now),
              'status',
              nodeStatus(node),
              'cpu_usage',
              usage.cpu.toFixed(2),
              'memory_usage',
              usage.memory.toFixed(2),
              'pods_total',
              String(node.pods.total),
            ],
            expire(nodeKey, ttl),
            ['ZREMRANGEBYSCORE', `${nodeKey}:metrics`, '-inf', score - seconds(retentionMs)],
            ['ZADD', `${nodeKey}:metrics`, score, documentText(nodeSampleDocument(node, now))],
            expire(`${nodeKey}:metrics`, retentionMs),
          ]
        }),
      ]
    },
    renew: () => [
      expire(`${key}:nodes:summary`, ttl),
      expire(`${key}:metrics`, Math.max(TOTALS_MS, ttl)),
      ...nodes.map(({ name }) => expire(`${key}:node:${name}`, ttl)),
    ],
  }
}

function namespaceWriter(after: ClusterState, ttl: number): Writer {
  const key = `cluster:${after.name}:namespaces`
  return {
    write: ({ observedAt }) => {
      const document = namespacesDocument(itemsOf(after, 'namespace'), observedAt)
      const names = document.namespaces
      return [
        set(key, document, ttl),
        ['DEL', `${key}:set`],
        ...(names.length > 0 ? [['SADD', `${key}:set`, ...names] satisfies Command, expire(`${key}:set`, ttl)] : []),
      ]
    },
    renew: () => [expire(key, ttl), expire(`${key}:set`, ttl)],
  }
}

function operatorWriter(after: ClusterState, ttl: number): Writer {
  const key = `cluster:${after.name}:operators`
  const operators = itemsOf(after, 'operator')
  return {
    write: () => [
      set(key, operators.map(operatorDocument), ttl),
      set(`${key}_summary`, operatorsSummaryDocument(operators), ttl),
    ],
    renew: () => [expire(key, ttl), expire(`${key}_summary`, ttl)],
  }
}

function clusterOperatorWriter(before: ClusterState | undefined, after: ClusterState, ttl: number): Writer {
  const key = `cluster:${after.name}:cluster_operator`
  const operators = itemsOf(after, 'clusterOperator')
  return {
    write: ({ observedAt }) => {
      const gone = itemsOf(before, 'clusterOperator').filter(
        ({ name }) => !after.parts.clusterOperator?.items.has(name),
      )
      return [
        set(`${key}s`, operators.map(clusterOperatorDocument), ttl),
        set(`${key}s_summary`, clusterOperatorsSummaryDocument(operators, observedAt), ttl),
        ...operators.map((one) => set(`${key}:${one.name}`, clusterOperatorStateDocument(one, observedAt), ttl)),
        ...gone.map(({ name }): Command => ['DEL', `${key}:${name}`]),
      ]
    },
    renew: () => [
      expire(`${key}s`, ttl),
      expire(`${key}s_summary`, ttl),
      ...operators.map(({ name }) => expire(`${key}:${name}`, ttl)),
    ],
  }
}

function totalsCommands(after: ClusterState, ttl: number): Command[] {
  const { node } = after.parts
  if (!node?.freshness) return []
  const nodes = itemsOf(after, 'node')
  const totals = clusterTotals({
    nodes,
    podSummary: after.parts.podSummary?.items.get('pods') ?? null,
    namespaces: after.parts.namespace?.items.values() ?? null,
    deployments: after.parts.deployment?.items.values() ?? null,
  })
  const document = metricsDocument(totals, nodes, node.freshness.observedAt)
  return [set(`cluster:${after.name}:metrics`, document, Math.max(TOTALS_MS, ttl))]
}

// The whole list, whenever it moved: a repeat of the transaction leaves no entry twice.
function eventListCommands(before: ClusterState | undefined, after: ClusterState): Command[] {
  if (after.events.length === 0 || (before && before.events === after.events)) return []
  const key = `events:${after.name}`
  return [
    ['DEL', key],
    ['RPUSH', key, ...after.events.map((event) => documentText(eventDocument(event)))],
    ['EXPIRE', key, EVENTS_SECONDS],
  ]
}
