import {
  type AgentFacts,
  type Batch,
  type Change,
  type ClusterName,
  type ClusterState,
  type ClusterStatus,
  type ConnectionFacts,
  type FleetEvent,
  type Freshness,
  type Heartbeat,
  ORIGINAL_ORIGIN,
  type Part,
  type PartState,
  type SnapshotOf,
  type SnapshotType,
  sameJson,
  snapshotTypes,
} from '#model'
import { clusterEvents } from './cluster-events.ts'
import { applyRows, areRowsBased } from './fleet-rows.ts'
import { evaluateHealth } from './health.ts'
import type { StateRecord } from './types.ts'

/** How many ends of rounds a cluster remembers. */
export const HEARTBEATS_KEPT = 60
/** How many events a cluster remembers. */
export const EVENTS_KEPT = 100

export interface Applied {
  /** undefined: the cluster is gone */
  readonly next: ClusterState | undefined
  /** in the order they apply; none when the record said nothing new */
  readonly changes: readonly Change[]
}

/** The cluster a record speaks of. */
export function clusterOf(record: StateRecord): ClusterName {
  return record.kind === 'batch' ? record.batch.cluster : record.cluster
}

/**
 * One record onto one cluster. Pure, and total: any record of the right cluster has an answer.
 * @param version of the new state, above every version given before
 */
export function applyRecord(previous: ClusterState | undefined, record: StateRecord, version: number): Applied {
  switch (record.kind) {
    case 'batch':
      return applyBatch(previous, record, version)
    case 'connection':
      return applyConnection(previous, record, version)
    case 'removed':
      return applyRemoved(previous, record)
    case 'agent':
      return applyAgent(previous, record, version)
    case 'lost':
      return applyLost(previous, record, version)
    case 'unread':
      return applyUnread(previous, record, version)
    case 'source-removed':
      return applySourceRemoved(previous, record, version)
  }
}

function applyBatch(
  previous: ClusterState | undefined,
  { batch, receivedAt }: Extract<StateRecord, { kind: 'batch' }>,
  version: number,
): Applied {
  if (!isNewer(batch, previous) || !isBased(batch, previous)) return { next: previous, changes: [] }
  const before = previous ?? emptyCluster(batch.cluster, null)
  const freshness: Freshness = { observedAt: batch.collectedAt, receivedAt, source: batch.source }
  const { tables, changes: rowsChanges } = applyRows(before.tables, batch, freshness)
  const head = {
    tables,
    sequence: batch.sequence,
    origin: batch.origin ?? '',
    source: batch.source,
    agent: heardFrom(before.agent, batch, receivedAt),
    version,
  }
  const snapshotChanges: Change[] = []
  const gone = (type: SnapshotType, name: string) =>
    snapshotChanges.push({ kind: 'snapshot', cluster: batch.cluster, type, name, op: 'remove', at: receivedAt })
  let parts = withoutUntold(before.parts, batch, gone)
  for (const part of batch.parts) {
    const next = applyPart(parts[part.type], part, freshness, (name, op) =>
      snapshotChanges.push({ kind: 'snapshot', cluster: batch.cluster, type: part.type, name, op, at: receivedAt }),
    )
    parts = { ...parts, [part.type]: next }
  }
  if (batch.partial) {
    const status = statusBetween(before, parts, batch.source)
    const after = { ...withDeployments(before, batch), ...head, status, parts }
    return withEvents(previous, after, [...snapshotChanges, ...rowsChanges], receivedAt)
  }
  if (batch.failure) parts = withUnreached(parts, batch.failure, freshness)
  const verdict = evaluateHealth({ parts, failure: batch.failure, source: batch.source, checked: true })
  const nodesRead = batch.parts.some(({ type, outcome }) => type === 'node' && isRead(outcome))
  const status: ClusterStatus = {
    ...verdict,
    checkedAt: batch.collectedAt,
    lastSyncAt: nodesRead && !batch.failure ? batch.collectedAt : before.status.lastSyncAt,
  }
  const heartbeat: Heartbeat = {
    at: batch.collectedAt,
    health: verdict.health,
    durationMs: batch.durationMs,
    ...(verdict.health === 'unhealthy' && nodesRead && !batch.failure && { answered: true }),
  }
  const after: ClusterState = {
    ...withDeployments(before, batch),
    ...head,
    status,
    parts,
    heartbeats: [...before.heartbeats, heartbeat].slice(-HEARTBEATS_KEPT),
  }
  return withEvents(previous, after, [...snapshotChanges, ...rowsChanges], receivedAt)
}

/** Between two rounds nobody looks at the cluster's health, unless its nodes moved. But somebody reads it. */
function statusBetween({ status, parts: before }: ClusterState, parts: ClusterState['parts'], source: Batch['source']) {
  const said = saidOf(status)
  const haveMoved = before.node?.items !== parts.node?.items || before.node?.outcome !== parts.node?.outcome
  if (!haveMoved) return source === 'push' ? said : status
  const { checkedAt, lastSyncAt } = said
  return {
    ...evaluateHealth({ parts, failure: undefined, source, checked: checkedAt !== null }),
    checkedAt,
    lastSyncAt,
  }
}

/** What a collector of the original never tells, though it read the cluster: it has the pods of nodes, and counts deployments. */
const UNTOLD = ['podSummary', 'deployment'] as const

/** Where one reads a cluster that the hub or an agent read before, those numbers are of the past and nobody renews them. */
function withoutUntold(
  parts: ClusterState['parts'],
  batch: Batch,
  gone: (type: SnapshotType, name: string) => void,
): ClusterState['parts'] {
  const hasRead = batch.parts.some(({ type, outcome }) => type === 'node' && isRead(outcome))
  if (batch.origin !== ORIGINAL_ORIGIN || !hasRead || UNTOLD.every((type) => !parts[type])) return parts
  for (const type of UNTOLD) for (const name of parts[type]?.items.keys() ?? []) gone(type, name)
  const { podSummary: _, deployment: __, ...told } = parts
  return told
}

/** What was read one by one is known better than a count, until there is a newer count. */
function withDeployments({ deploymentCount: before, ...rest }: ClusterState, batch: Batch): ClusterState {
  const areRead = batch.parts.some(({ type, outcome }) => type === 'deployment' && isRead(outcome))
  const count = batch.deploymentCount ?? (areRead ? undefined : before)
  return count === undefined ? rest : { ...rest, deploymentCount: count }
}

const isRead = (outcome: Part['outcome']): boolean => outcome === 'complete' || outcome === 'changed'

/** A batch of an agent is a sign of life as well: its facts come seldom while nothing else moves. */
function heardFrom(agent: AgentFacts | null, { source }: Batch, receivedAt: number): AgentFacts | null {
  if (source !== 'push' || !agent?.connected || agent.heartbeatAt >= receivedAt) return agent
  return { ...agent, heartbeatAt: receivedAt }
}

// Numbers are compared within one origin. Between two the time decides: a record applied once more is not newer.
function isNewer({ origin = '', sequence, collectedAt }: Batch, previous: ClusterState | undefined): boolean {
  if (!previous || previous.sequence === 0) return true
  if (origin === previous.origin) return sequence > previous.sequence
  return collectedAt >= (saidOf(previous.status).checkedAt ?? 0)
}

/** What the last round said. */
const saidOf = (status: ClusterStatus): Omit<ClusterStatus, 'before'> => status.before ?? status

// A difference to anything but what is here would make a state that never was: the whole batch is left out.
function isBased(batch: Batch, previous: ClusterState | undefined): boolean {
  const { origin = '', base, parts, tables = [] } = batch
  const differences = parts.filter(({ outcome }) => outcome === 'changed')
  if (differences.length === 0 && tables.every(({ outcome }) => outcome !== 'changed')) return true
  if (previous?.origin !== origin || previous.sequence !== base) return false
  return differences.every(({ type }) => previous.parts[type]?.freshness) && areRowsBased(batch, previous.tables)
}

function applyAgent(
  previous: ClusterState | undefined,
  { agent, at }: Extract<StateRecord, { kind: 'agent' }>,
  version: number,
): Applied {
  if (!previous || sameJson(previous.agent, agent)) return { next: previous, changes: [] }
  return withEvents(previous, { ...previous, agent, version }, [], at)
}

function applyLost(
  previous: ClusterState | undefined,
  { loss, at }: Extract<StateRecord, { kind: 'lost' }>,
  version: number,
): Applied {
  if (!previous || loss.count === 0) return { next: previous, changes: [] }
  const { origin, sequence, from, to, cause, count, keptEveryMs } = loss
  const isKnown = previous.events.some(
    ({ type, data }) => type === 'collection.lost' && data?.origin === origin && data.sequence === sequence,
  )
  if (isKnown) return { next: previous, changes: [] }
  const data = { from, to, cause, count, kept_every_ms: keptEveryMs, origin, sequence }
  const event: FleetEvent = { type: 'collection.lost', cluster: previous.name, at, data }
  return withEvents(previous, { ...previous, version }, [], at, [event])
}

function applyUnread(
  previous: ClusterState | undefined,
  { after, because, at }: Extract<StateRecord, { kind: 'unread' }>,
  version: number,
): Applied {
  const unchanged = { next: previous, changes: [] }
  if (!previous) return unchanged
  const { status, origin, sequence } = previous
  if (!because)
    return status.before ? withEvents(previous, { ...previous, status: status.before, version }, [], at) : unchanged
  // A batch came meanwhile.
  if (origin !== after.origin || sequence !== after.sequence) return unchanged
  const before = saidOf(status)
  const verdict = evaluateHealth({ parts: previous.parts, failure: because, source: previous.source, checked: true })
  const heartbeat: Heartbeat = { at, health: verdict.health, durationMs: 0 }
  return withEvents(
    previous,
    {
      ...previous,
      version,
      status: { ...verdict, checkedAt: at, lastSyncAt: before.lastSyncAt, before },
      heartbeats: [...previous.heartbeats, heartbeat].slice(-HEARTBEATS_KEPT),
    },
    [],
    at,
  )
}

function applySourceRemoved(
  previous: ClusterState | undefined,
  { source, at }: Extract<StateRecord, { kind: 'source-removed' }>,
  version: number,
): Applied {
  if (!previous?.tables.has(source)) return { next: previous, changes: [] }
  const tables = new Map(previous.tables)
  tables.delete(source)
  const change: Change = { kind: 'custom', cluster: previous.name, source, rows: true, op: 'remove', at }
  return withEvents(previous, { ...previous, tables, version }, [change], at)
}

function applyConnection(
  previous: ClusterState | undefined,
  { cluster, connection, at }: Extract<StateRecord, { kind: 'connection' }>,
  version: number,
): Applied {
  if (previous && sameJson(previous.connection, connection)) return { next: previous, changes: [] }
  const before = previous ?? emptyCluster(cluster, connection)
  return withEvents(previous, { ...before, connection, version }, [], at)
}

function applyRemoved(previous: ClusterState | undefined, { at }: Extract<StateRecord, { kind: 'removed' }>): Applied {
  if (!previous) return { next: undefined, changes: [] }
  return { next: undefined, changes: disappearance(previous.name, at) }
}

function withEvents(
  previous: ClusterState | undefined,
  after: ClusterState,
  snapshotChanges: readonly Change[],
  at: number,
  given: readonly FleetEvent[] = [],
): Applied {
  // The newest are the ones that tell of health: where a round brings more than the list holds, the first ones go.
  const kept = [...clusterEvents(previous, after, at), ...given].slice(-EVENTS_KEPT)
  const cluster = after.name
  const next = { ...after, events: prepend(kept, after.events) }
  const changes: Change[] = [
    ...snapshotChanges,
    { kind: 'cluster', cluster, op: 'put', at },
    ...kept.map((event): Change => ({ kind: 'event', cluster, event, at })),
  ]
  return { next, changes }
}

const prepend = (kept: readonly FleetEvent[], events: readonly FleetEvent[]): readonly FleetEvent[] =>
  kept.length === 0 ? events : [...kept.toReversed(), ...events].slice(0, EVENTS_KEPT)

/** The part after this read. Items that did not change keep their identity, so that "same object" means "same value". */
function applyPart(
  previous: ClusterState['parts'][SnapshotType],
  part: Part,
  freshness: Freshness,
  changed: (name: string, op: 'put' | 'remove') => void,
): PartState<SnapshotType> {
  const attemptedAt = freshness.observedAt
  // Maps of one type each: the key of `parts` and the tag of `part` agree, which their unions cannot say.
  const old = (previous?.items ?? new Map()) as ReadonlyMap<string, SnapshotOf<SnapshotType>>
  if (part.outcome === 'changed') {
    const items = patchItems(old, part.put, part.removed, changed)
    return { outcome: 'complete', code: '', message: '', attemptedAt, freshness, items }
  }
  if (part.outcome !== 'complete') {
    const { outcome, code, message } = part
    return { outcome, code, message, attemptedAt, freshness: previous?.freshness ?? null, items: old }
  }
  const items = mergeItems(old, part.items, changed)
  return { outcome: 'complete', code: '', message: '', attemptedAt, freshness, items }
}

/**
 * What was never read is unreachable after a round that failed: not merely "not read yet". What was read keeps its outcome
 * and its age, since a collector that is not due every round would have no chance to take the blame back.
 */
function withUnreached(
  parts: ClusterState['parts'],
  { code, message }: { readonly code: string; readonly message: string },
  { observedAt }: Freshness,
): ClusterState['parts'] {
  const unreached = {
    outcome: 'unreachable',
    code,
    message,
    attemptedAt: observedAt,
    freshness: null,
    items: new Map(),
  } as const
  const never = snapshotTypes.filter(
    (type) => !parts[type]?.freshness && (parts[type]?.outcome ?? 'unreachable') === 'unreachable',
  )
  return never.length === 0 ? parts : { ...parts, ...Object.fromEntries(never.map((type) => [type, unreached])) }
}

/** The given items, each as its older self where they are equal; the older map itself where all are. */
export function mergeItems<T extends { readonly name: string }>(
  old: ReadonlyMap<string, T>,
  given: readonly T[],
  changed: (name: string, op: 'put' | 'remove') => void,
): ReadonlyMap<string, T> {
  const items = new Map<string, T>()
  let same = true
  for (const item of given) {
    const before = old.get(item.name)
    const equal = before !== undefined && sameJson(before, item)
    items.set(item.name, equal ? before : item)
    if (equal) continue
    same = false
    changed(item.name, 'put')
  }
  for (const name of old.keys()) {
    if (items.has(name)) continue
    same = false
    changed(name, 'remove')
  }
  return same ? old : items
}

/** The older items with a difference; the older map itself where nothing differs. */
function patchItems<T extends { readonly name: string }>(
  old: ReadonlyMap<string, T>,
  put: readonly T[],
  removed: readonly string[],
  changed: (name: string, op: 'put' | 'remove') => void,
): ReadonlyMap<string, T> {
  const news = put.filter((item) => !sameJson(old.get(item.name), item))
  const gone = removed.filter((name) => old.has(name))
  if (news.length === 0 && gone.length === 0) return old
  const items = new Map(old)
  for (const item of news) {
    items.set(item.name, item)
    changed(item.name, 'put')
  }
  for (const name of gone) {
    items.delete(name)
    changed(name, 'remove')
  }
  return items
}

/** A cluster nobody has looked at yet. */
function emptyCluster(name: ClusterName, connection: ConnectionFacts | null): ClusterState {
  const verdict = evaluateHealth({ parts: {}, failure: undefined, source: 'pull', checked: false })
  return {
    name,
    connection,
    status: { ...verdict, checkedAt: null, lastSyncAt: null },
    sequence: 0,
    origin: '',
    agent: null,
    source: connection?.mode ?? 'pull',
    parts: {},
    tables: new Map(),
    heartbeats: [],
    events: [],
    version: 0,
  }
}

/** What the disappearance of a cluster tells. */
export function disappearance(cluster: ClusterName, at: number): Change[] {
  return [
    { kind: 'event', cluster, event: { type: 'cluster.deleted', cluster, at, data: null }, at },
    { kind: 'cluster', cluster, op: 'remove', at },
  ]
}
