import {
  type ClusterName,
  type ClusterState,
  type ClusterStatus,
  documentTime,
  type FleetEvent,
  type Freshness,
  type Health,
  type PartState,
  type RowsState,
  type SnapshotOf,
  type SnapshotType,
  type Source,
  type SourceId,
} from '#model'
import { HEARTBEATS_KEPT } from './fleet.ts'
import { customOf } from './original-custom.ts'
import { type Fields, listOf, objectOf, textIn, timeIn, wholeIn } from './original-fields.ts'
import type { Look, NoText } from './original-look.ts'
import {
  clusterOf,
  clusterOperatorOf,
  connectionOf,
  eventOf,
  namespaceOf,
  nodeOf,
  operatorOf,
} from './original-snapshots.ts'

/*
 * What an original manager keeps of one cluster in Redis, as the state of a cluster. Pure: equal looks make equal states.
 *
 *   document is there            complete, as old as it says
 *   nodes are named, none there  they ran out: unreachable, without rows, and totals are not known (never 0)
 *   document cannot be read      unreachable, without rows, and why
 *   no document                  never read, as far as can be told
 *
 * Nobody says when operators were read: they are no newer than the nodes.
 */
type Parts = { -readonly [T in SnapshotType]?: PartState<SnapshotType> }

export function originalCluster(name: ClusterName, look: Look, version: number): ClusterState {
  const reading = new Reading(look)
  const spec = reading.object('spec')
  const status = reading.object('status')
  const metrics = reading.object('metrics')
  const namespaces = reading.object('namespaces')
  const mode = modeOf(status, metrics !== undefined || namespaces !== undefined)
  const checkedAt = status ? timeIn(status, 'last_check') : null
  const nodes = nodesPart(reading, mode, checkedAt)
  const readAt = nodes?.freshness?.observedAt ?? null
  const at = readAt ?? checkedAt
  const parts: Parts = {
    ...(nodes && { node: nodes }),
    ...namespacesPart(reading, namespaces, mode, at),
    ...listPart(reading, 'operator', 'operators', operatorOf, mode, at),
    ...listPart(reading, 'clusterOperator', 'cluster_operators', clusterOperatorOf, mode, at),
    ...infoPart(reading, mode, at),
  }
  const events = eventsOf(reading, name)
  const deployments = metrics ? wholeIn(metrics, 'deployments') : 0
  return {
    name,
    connection: spec ? connectionOf(spec, mode) : null,
    status: { ...statusOf(status, reading), checkedAt, lastSyncAt: readAt },
    sequence: 0,
    origin: '',
    source: mode,
    agent: null,
    parts: parts as ClusterState['parts'], // each under the key of its type
    tables: rowsOfSources(reading, mode),
    ...(deployments > 0 && { deploymentCount: deployments }),
    heartbeats: heartbeatsOf(events),
    events,
    version,
  }
}

/**
 * Of a status that is well the message says it. Else totals and namespaces do, which an original manager has of collectors alone;
 * ours has them of every cluster.
 */
function modeOf(status: Fields | undefined, hasTotals: boolean): Source {
  const message = status ? textIn(status, 'message') : ''
  if (message.startsWith('Collector push active')) return 'push'
  if (message.startsWith('Cluster is reachable')) return 'pull'
  return hasTotals ? 'push' : 'pull'
}

/** A look, and what in it could not be read. */
class Reading {
  readonly look: Look
  readonly faults = new Map<string, string>()

  constructor(look: Look) {
    this.look = look
  }

  has(label: string): boolean {
    return this.look.texts.has(label)
  }

  /** undefined: it is not there, or it is a fault */
  text(label: string): string | undefined {
    const text = this.look.texts.get(label)
    if (text === undefined || typeof text === 'string') return text
    this.faults.set(label, whyNot[text.why])
    return undefined
  }

  object(label: string): Fields | undefined {
    const text = this.text(label)
    const value = text === undefined ? undefined : objectOf(text)
    if (text !== undefined && !value) this.faults.set(label, 'it is no JSON object')
    return value
  }
}

const whyNot: Readonly<Record<NoText, string>> = {
  wrong_type: 'it is not of its documented type',
  too_large: 'it is larger than any document of an original manager',
}

const HEALTHS: readonly string[] = ['healthy', 'degraded', 'unhealthy']

function statusOf(
  status: Fields | undefined,
  { faults }: Reading,
): Pick<ClusterStatus, 'health' | 'message' | 'reasons'> {
  const fault = faults.get('spec') ?? faults.get('status')
  const said = status ? textIn(status, 'health') : ''
  const health = HEALTHS.includes(said) ? (said as Health) : 'unknown'
  const message = (status && textIn(status, 'message')) || (fault ? `its status cannot be read: ${fault}` : '')
  if (health === 'healthy' || health === 'unknown')
    return { health, message: message || 'Status unavailable', reasons: [] }
  return { health, message, reasons: [{ code: 'original', message }] }
}

// ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────

function complete<T extends SnapshotType>(
  items: readonly SnapshotOf<T>[],
  freshness: Freshness,
  message = '',
): PartState<SnapshotType> {
  return {
    // Some of it could not be read: what is left must not look like all there is.
    outcome: message === '' ? 'complete' : 'unreachable',
    code: message === '' ? '' : 'document_unreadable',
    message,
    attemptedAt: freshness.observedAt,
    freshness,
    items: new Map(items.map((item) => [item.name, item])),
  }
}

const missing = (code: string, message: string, at: number | null): PartState<SnapshotType> => ({
  outcome: 'unreachable',
  code,
  message,
  attemptedAt: at ?? 0,
  freshness: null,
  items: new Map(),
})

const unreadable = (label: string, why: string, at: number | null) =>
  missing('document_unreadable', `the document ${label} in Redis cannot be read: ${why}`, at)

function nodesPart(reading: Reading, mode: Source, checkedAt: number | null): PartState<SnapshotType> | undefined {
  const { look, faults } = reading
  for (const label of ['nodes'] as const) reading.text(label)
  const setFault = faults.get('nodes')
  if (setFault) return unreadable('nodes', setFault, checkedAt)
  if (look.nodes.length === 0) return undefined
  const documents = look.nodes.filter((name) => reading.has(`node:${name}`))
  if (documents.length === 0) {
    const last = checkedAt === null ? '' : `; the last check was at ${documentTime(checkedAt)}`
    return missing('expired', `what the original manager wrote of its nodes ran out${last}`, checkedAt)
  }
  const items: SnapshotOf<'node'>[] = []
  const odd: string[] = []
  let observedAt: number | null = null
  for (const name of documents) {
    const document = reading.object(`node:${name}`)
    const node = document && nodeOf(document)
    if (!document || !node || node.name !== name) {
      odd.push(name)
      continue
    }
    items.push(node)
    observedAt = Math.max(observedAt ?? 0, timeIn(document, 'timestamp') ?? 0)
  }
  const at = observedAt || checkedAt
  const warning =
    odd.length === 0 ? '' : `documents of ${odd.length} nodes cannot be read: ${odd.slice(0, 3).join(', ')}`
  if (at === null || items.length === 0)
    return missing('document_unreadable', warning || 'they do not say when', checkedAt)
  return complete<'node'>(items, { observedAt: at, receivedAt: at, source: mode }, warning)
}

function namespacesPart(reading: Reading, document: Fields | undefined, source: Source, at: number | null): Parts {
  reading.text('namespaces:set')
  for (const label of ['namespaces', 'namespaces:set']) {
    const fault = reading.faults.get(label)
    if (fault) return { namespace: unreadable(label, fault, at) }
  }
  if (!document && reading.look.namespaces.length === 0) return {}
  const names = document ? document.namespaces : reading.look.namespaces
  const observedAt = (document && timeIn(document, 'timestamp')) ?? at
  if (!Array.isArray(names) || observedAt === null)
    return { namespace: unreadable('namespaces', 'it names none, or no time', at) }
  const items = names.flatMap((name) => namespaceOf(name) ?? [])
  const warning = items.length < names.length ? `${names.length - items.length} names in it are none` : ''
  return { namespace: complete<'namespace'>(items, { observedAt, receivedAt: observedAt, source }, warning) }
}

function listPart<T extends 'operator' | 'clusterOperator'>(
  reading: Reading,
  type: T,
  label: string,
  read: (document: Fields) => SnapshotOf<T> | undefined,
  source: Source,
  at: number | null,
): Parts {
  const text = reading.text(label)
  const list = text === undefined ? undefined : listOf(text)
  const fault = reading.faults.get(label) ?? (text !== undefined && !list ? 'it is no list' : undefined)
  if (fault) return { [type]: unreadable(label, fault, at) }
  if (!list) return {}
  if (at === null) return { [type]: unreadable(label, 'nothing says when it was read', at) }
  const items = list.entries.flatMap((document) => read(document) ?? [])
  const odd = list.odd + list.entries.length - items.length
  const warning = odd > 0 ? `${odd} entries of it cannot be read` : ''
  return { [type]: complete<T>(items, { observedAt: at, receivedAt: at, source }, warning) }
}

function infoPart(reading: Reading, source: Source, at: number | null): Parts {
  const info = reading.object('info')
  const fault = reading.faults.get('info')
  if (fault) return { cluster: unreadable('info', fault, at) }
  if (!info || at === null) return {}
  const item = clusterOf(info, reading.has('cluster_operators'))
  return { cluster: complete<'cluster'>([item], { observedAt: at, receivedAt: at, source }) }
}

// ── the rest ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const CUSTOM = /^custom:([^:/]+\/[^:/]+):resources$/

function rowsOfSources(reading: Reading, mode: Source): ReadonlyMap<SourceId, RowsState> {
  const customs = new Map<SourceId, RowsState>()
  for (const label of reading.look.texts.keys()) {
    const source = CUSTOM.exec(label)?.[1]
    const resources = source === undefined ? undefined : reading.object(label)
    if (source === undefined || !resources) continue
    const custom = customOf(source, resources, reading.object(`custom:${source}:aggregations`), mode)
    if (custom) customs.set(source, custom)
  }
  return customs
}

/** Newest first. */
function eventsOf(reading: Reading, cluster: ClusterName): readonly FleetEvent[] {
  const events: FleetEvent[] = []
  for (let at = 0; reading.has(`event:${at}`); at++) {
    const text = reading.text(`event:${at}`)
    const event = text === undefined ? undefined : eventOf(text, cluster)
    if (event) events.push(event)
  }
  return events
}

/** Every round left an event, whatever its end. */
const heartbeatsOf = (events: readonly FleetEvent[]): ClusterState['heartbeats'] =>
  events
    .filter(({ type }) => type === 'cluster.reconciled')
    .slice(0, HEARTBEATS_KEPT)
    .reverse()
    .map(({ at, data }) => ({
      at,
      health: HEALTHS.includes(String(data?.health)) ? (data?.health as Health) : 'unknown',
      durationMs: 0,
    }))
