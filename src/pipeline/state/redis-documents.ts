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
  isKnown,
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
  type ResourceListSettings,
  type SnapshotOf,
  type SnapshotType,
  specDocument,
  statusDocument,
} from '#model'
import type { Command } from '#redis'
import { newEvents } from './cluster-events.ts'
import { listCommands, type WrittenLists } from './redis-lists.ts'
import { rowsCommands, type WrittenRows } from './redis-rows.ts'

/*
 * The documented keys of one cluster as commands of one transaction. Written where the part was read anew, renewed where
 * it was not due this time; a part that could not be read is left to run out, so that readers see it vanish.
 * Between the rounds in which everything is written, only what moved is: a node that stayed the same is told again after
 * a minute, lifetimes are renewed when a third of them has passed.
 * All of them may be repeated: a transaction that was answered too late does no harm.
 */
export interface DocumentSettings {
  /** lifetime of documents, ms; never less than three intervals of the cluster */
  readonly ttlMs: number
  /** how far back the series of nodes go, ms */
  readonly retentionMs: number
  /** bounds of the lists of pods, deployments, services and so on; absent: none are written */
  readonly lists?: ResourceListSettings | undefined
}

/** When what a cluster has in Redis was last written as a whole. Unknown: all of it is to be written. */
export interface Written {
  /** lifetimes of a part's keys, by its type; hub's clock, ms */
  readonly renewedAt: { readonly [T in SnapshotType]?: number }
  /** every node's document */
  readonly nodesAt: number
  /** series were cut at the retention */
  readonly trimmedAt: number
  readonly custom: WrittenRows
  readonly lists: WrittenLists
}

/** How old the document of a node that stays the same may grow before it is told again. */
const NODES_EVERY_MS = 60_000
const TRIMS_PER_RETENTION = 12
const RENEWALS_PER_LIFETIME = 3

const INFO_MS = 3_600_000
const TOTALS_MS = 300_000
const EVENTS_SECONDS = 86_400
export const EVENT_CHANNEL = 'cluster-events'

/**
 * @param written what these commands leave behind, once they are taken; absent where nothing is known of it
 */
export function documentCommands(
  before: ClusterState | undefined,
  after: ClusterState,
  now: number,
  settings: DocumentSettings,
  known?: Written,
): { commands: Command[]; written: Written } {
  const hasOtherPace = before?.connection?.intervalMs !== after.connection?.intervalMs // other lifetimes
  const parts = partCommands({ before, after, now, settings, written: hasOtherPace ? undefined : before && known })
  const head = headCommands(before && known ? before : undefined, after, now)
  const lifetimeMs = lifetimeOf(settings, after)
  const custom = rowsCommands(before, after, { now, lifetimeMs, ...(known && { known: known.custom }) })
  const lists = listCommands(before, after, {
    now,
    lifetimeMs,
    settings: settings.lists,
    known: before && known?.lists,
  })
  return {
    commands: [...head, ...parts.commands, ...custom.commands, ...lists.commands, ...eventListCommands(before, after)],
    written: { ...parts.written, custom: custom.written, lists: lists.written },
  }
}

/** What subscribers of the documented channel hear: every event, and each round's end under its documented name. */
export function announcements(before: ClusterState | undefined, after: ClusterState, now: number): Command[] {
  const recent = newEvents(before, after).map((event) => eventDocument(event))
  // Batches between two rounds leave the list as it is.
  const sawRound = after.heartbeats.length > 0 && after.heartbeats !== before?.heartbeats
  if (sawRound && !recent.some(({ type }) => type === 'cluster.reconciled')) {
    const data = { health: after.status.health, display_name: after.connection?.displayName ?? after.name }
    recent.push(eventDocument({ type: 'cluster.reconciled', cluster: after.name, at: now, data }))
  }
  return recent.map((document) => ['PUBLISH', EVENT_CHANNEL, documentText(document)])
}

/** Whether documents of the one must not wait: a round ended, something happened, a source is gone or read for the first time. */
export function mustBeShown(before: ClusterState, after: ClusterState): boolean {
  const { status, heartbeats, events, connection, tables } = before
  return (
    heartbeats !== after.heartbeats ||
    events !== after.events ||
    connection !== after.connection ||
    status.health !== after.status.health ||
    status.message !== after.status.message ||
    [...tables.keys()].some((source) => !after.tables.has(source)) ||
    (tables !== after.tables &&
      [...after.tables].some(([source, { freshness }]) => freshness && !tables.get(source)?.freshness))
  )
}

function headCommands(before: ClusterState | undefined, after: ClusterState, now: number): Command[] {
  const { name, connection, status } = after
  const key = `cluster:${name}`
  const labels = Object.entries(connection?.labels ?? {})
  const moving: Command[] = [
    ['SET', `${key}:status`, documentText(statusDocument(status))],
    ['HSET', `${key}:meta`, 'last_update', documentTime(now)],
  ]
  if (before && before.connection === connection) return moving
  return [
    ['SADD', 'clusters:all', name],
    ...moving,
    ...(connection ? [['SET', `${key}:spec`, documentText(specDocument(connection))] satisfies Command] : []),
    labels.length > 0
      ? ['SET', `${key}:labels`, documentText(Object.fromEntries(labels.sort()))]
      : ['DEL', `${key}:labels`],
  ]
}

const lifetimeOf = ({ ttlMs }: DocumentSettings, { connection }: ClusterState) =>
  Math.max(ttlMs, 3 * (connection?.intervalMs ?? 0))

interface Step {
  readonly before: ClusterState | undefined
  readonly after: ClusterState
  readonly now: number
  readonly settings: DocumentSettings
  readonly written: Written | undefined
}

function partCommands(step: Step): { commands: Command[]; written: Omit<Written, 'custom' | 'lists'> } {
  const { before, after, now, settings, written } = step
  const lifetimeMs = lifetimeOf(settings, after)
  const commands: Command[] = []
  const isOld = (at: number | undefined, ms: number) => at === undefined || now - at >= ms
  const nodesDue: NodesDue = {
    documents: isOld(written?.nodesAt, NODES_EVERY_MS),
    trim: isOld(written?.trimmedAt, settings.retentionMs / TRIMS_PER_RETENTION),
  }
  const writers: { [T in SnapshotType]?: Writer } = {
    cluster: infoWriter(before, after, lifetimeMs),
    node: nodeWriter(step, lifetimeMs, nodesDue),
    namespace: namespaceWriter(after, lifetimeMs),
    operator: operatorWriter(after, lifetimeMs),
    clusterOperator: clusterOperatorWriter(before, after, lifetimeMs),
  }
  const parts = Object.entries(after.parts) as [SnapshotType, PartState<SnapshotType>][]
  const isNew = (type: SnapshotType, { freshness }: PartState<SnapshotType>) =>
    freshness !== null && !sameFreshness(before?.parts[type]?.freshness, freshness)
  const read = new Set(parts.filter(([type, part]) => isNew(type, part)).map(([type]) => type))
  // A round that failed as a whole reads nothing and renews nothing: documents run out, as they always did.
  if (read.size === 0) return { commands, written: written ?? NOTHING_WRITTEN }
  const renewEveryMs = Math.min(lifetimeMs, settings.retentionMs) / RENEWALS_PER_LIFETIME
  const renewedAt: { [T in SnapshotType]?: number } = { ...written?.renewedAt }
  for (const [type, writer] of Object.entries(writers) as [SnapshotType, Writer][]) {
    const part = after.parts[type]
    if (!part?.freshness || now - part.freshness.receivedAt > lifetimeMs) continue
    const isDue = isOld(renewedAt[type], renewEveryMs)
    if (read.has(type)) commands.push(...writer.write(part.freshness, isDue))
    else if (part.outcome !== 'complete') continue
    else if (isDue) commands.push(...writer.renew())
    if (isDue) renewedAt[type] = now
  }
  if (IN_TOTALS.some((type) => read.has(type))) commands.push(...totalsCommands(after, lifetimeMs))
  const nodesAt = read.has('node') && nodesDue.documents ? now : written?.nodesAt
  const trimmedAt = read.has('node') && nodesDue.trim ? now : written?.trimmedAt
  const never = NOTHING_WRITTEN
  return {
    commands,
    written: { renewedAt, nodesAt: nodesAt ?? never.nodesAt, trimmedAt: trimmedAt ?? never.trimmedAt },
  }
}

const NOTHING_WRITTEN: Omit<Written, 'custom' | 'lists'> = {
  renewedAt: {},
  nodesAt: Number.NEGATIVE_INFINITY,
  trimmedAt: Number.NEGATIVE_INFINITY,
}

const IN_TOTALS: readonly SnapshotType[] = ['node', 'podSummary', 'namespace', 'deployment']

interface NodesDue {
  /** of nodes that stayed the same as well */
  readonly documents: boolean
  readonly trim: boolean
}

interface Writer {
  /** @param renew lifetimes of keys that keep theirs when written */
  write(freshness: Freshness, renew: boolean): Command[]
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

function nodeWriter({ before, after, now, settings, written }: Step, ttl: number, due: NodesDue): Writer {
  const { retentionMs } = settings
  const key = `cluster:${after.name}`
  const nodes = itemsOf(after, 'node')
  const old = written && before?.parts.node?.items
  const gone = itemsOf(before, 'node').filter(({ name }) => !after.parts.node?.items.has(name))
  const sameNames = old !== undefined && gone.length === 0 && old.size === nodes.length
  return {
    write: ({ observedAt }, renew) => {
      const summary = nodesSummaryDocument(nodes, clusterTotals({ nodes }), observedAt)
      const score = Math.floor(now / 1000)
      const [written, oldest] = [documentTime(now), score - seconds(retentionMs)]
      const commands: Command[] = [['HSET', `${key}:nodes:summary`, 'data', documentText(summary)]]
      if (renew) commands.push(expire(`${key}:nodes:summary`, ttl))
      if (!sameNames) {
        commands.push(['DEL', `${key}:nodes`, ...gone.map(({ name }) => `${key}:node:${name}`)])
        if (nodes.length > 0) commands.push(['SADD', `${key}:nodes`, ...nodes.map(({ name }) => name)])
      }
      for (const node of nodes) {
        const nodeKey = `${key}:node:${node.name}`
        const was = old?.get(node.name)
        if (due.documents || renew || was !== node) commands.push(...nodeHash(nodeKey, node, observedAt, written))
        commands.push(['ZADD', `${nodeKey}:metrics`, score, documentText(nodeSampleDocument(node, now))])
        if (due.trim || !was) commands.push(['ZREMRANGEBYSCORE', `${nodeKey}:metrics`, '-inf', oldest])
        if (renew || !was) commands.push(expire(nodeKey, ttl), expire(`${nodeKey}:metrics`, retentionMs))
      }
      return commands
    },
    renew: () => [
      expire(`${key}:nodes:summary`, ttl),
      expire(`${key}:metrics`, Math.max(TOTALS_MS, ttl)),
      ...nodes.map(({ name }) => expire(`${key}:node:${name}`, ttl)),
    ],
  }
}

function nodeHash(key: string, node: SnapshotOf<'node'>, observedAt: number, written: string): Command[] {
  const usage = nodeUsagePercent(node)
  // What was once known of its pods, and no longer is.
  const unknown = [...(usage ? [] : ['cpu_usage', 'memory_usage']), ...(node.pods ? [] : ['pods_total'])]
  // biome-ignore format: pairs of field and value
  const recent: Command = [
    'HSET', key,
    'current', documentText(nodeDocument(node, observedAt)),
    'last_update', written,
    'status', nodeStatus(node),
    ...(usage ? ['cpu_usage', usage.cpu.toFixed(2), 'memory_usage', usage.memory.toFixed(2)] : []),
    ...(node.pods ? ['pods_total', String(node.pods.total)] : []),
  ]
  return unknown.length > 0 ? [recent, ['HDEL', key, ...unknown]] : [recent]
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
    write: ({ receivedAt }) => [
      set(
        key,
        operators.map((operator) => operatorDocument(operator, receivedAt)),
        ttl,
      ),
      set(`${key}_summary`, operatorsSummaryDocument(operators), ttl),
    ],
    renew: () => [expire(key, ttl), expire(`${key}_summary`, ttl)],
  }
}

function clusterOperatorWriter(before: ClusterState | undefined, after: ClusterState, ttl: number): Writer {
  const key = `cluster:${after.name}:cluster_operator`
  const operators = itemsOf(after, 'clusterOperator')
  return {
    write: ({ observedAt, receivedAt }) => {
      const gone = itemsOf(before, 'clusterOperator').filter(
        ({ name }) => !after.parts.clusterOperator?.items.has(name),
      )
      return [
        set(
          `${key}s`,
          operators.map((one) => clusterOperatorDocument(one, receivedAt)),
          ttl,
        ),
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

/** Of what was read when it was last tried: the document has one time for all of it. */
function totalsCommands(after: ClusterState, ttl: number): Command[] {
  const known = <T extends SnapshotType>(type: T) => (isKnown(after.parts[type]) ? itemsOf(after, type) : null)
  const timeOf = (type: SnapshotType) =>
    isKnown(after.parts[type]) ? after.parts[type]?.freshness?.observedAt : undefined
  const nodes = known('node')
  const totals = clusterTotals({
    nodes,
    podSummary: known('podSummary')?.[0] ?? null,
    namespaces: known('namespace'),
    deployments: known('deployment'),
    deploymentCount: after.deploymentCount,
  })
  const document = metricsDocument(
    totals,
    nodes,
    timeOf('node') ?? Math.max(...IN_TOTALS.map((type) => timeOf(type) ?? 0)),
  )
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
