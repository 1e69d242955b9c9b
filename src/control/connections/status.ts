import { isDeepStrictEqual } from 'node:util'
import { type Condition, setCondition } from '#controller'
import type { Held } from '#credentials'
import type { AcceptedCredentials, ClusterConnectionStatus } from '#kinds'
import { type AgentFacts, type Batch, type ClusterState, isKnown, minutes, type Outcome } from '#model'
import type { NotDurable } from './agent-buffer.ts'
import type { CollectorCondition } from './choose-collector.ts'

/** How the last look at a connection ended. */
export type RoundEnd =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'collected'; readonly batch: Batch }
  /** an agent reads the cluster: everything to say of it is in state */
  | { readonly kind: 'delivered' }
  /** nobody read it this time, and that says nothing of it yet */
  | { readonly kind: 'waiting' }
  | {
      readonly kind: 'failed'
      /** what is to blame: the object, the access data, the cluster, its agent, or the hub, which could not keep what was read */
      readonly blame: 'spec' | 'credentials' | 'cluster' | 'agent' | 'hub'
      readonly code: string
      readonly message: string
    }

/** `skipped`: by the connection's field or its kubeconfig; `local`: plain HTTP to this machine, which nobody has to choose */
export type TlsUse = 'verified' | 'skipped' | 'local'

export interface StatusInputs {
  readonly stored: ClusterConnectionStatus | undefined
  readonly generation: number | undefined
  readonly end: RoundEnd
  /** what the hub makes of the cluster, where it holds this round already */
  readonly state: ClusterState | undefined
  readonly tls: TlsUse
  readonly adjustments: readonly string[]
  /** of the agent; undefined: none is wanted */
  readonly collector: CollectorCondition | undefined
  /** why an agent that is not wanted any more is still there */
  readonly leftAgent: string | undefined
  /** what is read with every round though it could be followed, and why */
  readonly polled: readonly string[]
  /** why the credentials are not sent */
  readonly held: Held | undefined
  /** where they were accepted just now */
  readonly credentials: AcceptedCredentials | undefined
  /** why the agent's buffer ends with its pod; null: it does not; undefined: not known now, and what was said stays */
  readonly buffer: NotDurable | null | undefined
  readonly agent: AgentFacts | undefined
  readonly isDelivering: boolean
  /** who owns the cluster; undefined: there is one process alone */
  readonly owner: string | undefined
  /** ms since the Unix epoch */
  readonly now: number
}

/** While nothing else changes, `lastSyncTime` is written no more often than this. */
const SYNC_TIME_EVERY_MS = minutes(1)

/** Decides the status of a connection. @returns the fields that differ from the stored ones, as a merge patch; undefined: none. */
export function statusPatch(inputs: StatusInputs): Readonly<Record<string, unknown>> | undefined {
  const stored = inputs.stored ?? {}
  const wanted = statusOf(inputs)
  const patch: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(wanted)) {
    if (field === 'lastSyncTime' || field === 'collectorStatus' || value === undefined) continue
    if (!isDeepStrictEqual(value, stored[field as keyof ClusterConnectionStatus])) patch[field] = value
  }
  if (inputs.credentials && !isDeepStrictEqual(inputs.credentials, stored.credentials)) {
    // A merge patch takes away only what it names.
    patch.credentials = { proxy: null, ...inputs.credentials }
  }
  if (movesCollector(stored.collectorStatus, wanted.collectorStatus))
    patch.collectorStatus = wanted.collectorStatus ?? null
  // A count that could not be read this time would stand under a time at which nobody counted.
  const isCounted = inputs.end.kind === 'collected' || (inputs.end.kind === 'delivered' && inputs.state)
  for (const count of isCounted ? (['nodes', 'namespaces'] as const) : []) {
    if (wanted[count] === undefined && stored[count] !== undefined) patch[count] = null
  }
  // Of former days, when others shared the fleet: it must not stay.
  if (wanted.owner === undefined && stored.owner !== undefined) patch.owner = null
  const { lastSyncTime } = wanted
  if (lastSyncTime && lastSyncTime !== stored.lastSyncTime) {
    const isDue =
      !stored.lastSyncTime || Date.parse(lastSyncTime) - Date.parse(stored.lastSyncTime) >= SYNC_TIME_EVERY_MS
    if (isDue || Object.keys(patch).length > 0) patch.lastSyncTime = lastSyncTime
  }
  return Object.keys(patch).length > 0 ? patch : undefined
}

type CollectorStatus = NonNullable<ClusterConnectionStatus['collectorStatus']>

/** Whether the agent's part is to be written: at once where it says something new, at a bounded rate where it only moves. */
function movesCollector(stored: CollectorStatus | undefined, wanted: CollectorStatus | undefined): boolean {
  if (isDeepStrictEqual(stored, wanted)) return false
  if (!stored || !wanted || !isDeepStrictEqual(steady(stored), steady(wanted))) return true
  const heartbeat = (status: CollectorStatus) => Date.parse(status.lastHeartbeat ?? '') || 0
  return heartbeat(wanted) - heartbeat(stored) >= SYNC_TIME_EVERY_MS
}

/** What does not move by itself while an agent lives. */
function steady({ connected, version, delivering, authentication, since }: CollectorStatus): CollectorStatus {
  return {
    connected,
    ...(version !== undefined && { version }),
    ...(delivering !== undefined && { delivering }),
    ...(authentication !== undefined && { authentication }),
    ...(since !== undefined && { since }),
  }
}

function collectorStatusOf({ agent, collector, isDelivering }: StatusInputs): CollectorStatus | undefined {
  if (!collector) return undefined
  if (!agent) return { connected: false, delivering: false }
  return {
    connected: agent.connected,
    delivering: isDelivering,
    since: rfc3339(agent.since),
    lastHeartbeat: rfc3339(agent.heartbeatAt),
    ...(agent.version && { version: agent.version.slice(0, 128) }),
    authentication: agent.method,
    bufferedBatches: Math.max(0, Math.trunc(agent.bufferedBatches)),
    lostBatches: Math.max(0, Math.trunc(agent.lostBatches)),
  }
}

function statusOf(inputs: StatusInputs): ClusterConnectionStatus {
  const collectorStatus = collectorStatusOf(inputs)
  const { owner } = inputs
  return { ...healthOf(inputs), ...(collectorStatus && { collectorStatus }), ...(owner !== undefined && { owner }) }
}

function healthOf(inputs: StatusInputs): ClusterConnectionStatus {
  const { end, stored, state, now } = inputs
  const conditions = conditionsOf(inputs) as NonNullable<ClusterConnectionStatus['conditions']> // same shape, readonly
  if (end.kind === 'connecting' || end.kind === 'waiting') {
    const phase = stored?.phase ?? 'Connecting'
    // Nothing was ever read of it, so why not is all there is to say.
    const message = phase === 'Connecting' ? inputs.collector?.message.slice(0, 4000) : undefined
    return { phase, health: stored?.health ?? 'unknown', ...(message && { message }), conditions }
  }
  if (end.kind === 'delivered') return { ...deliveredOf(state, stored), conditions }
  if (end.kind === 'failed') {
    // Our own trouble says nothing of the cluster.
    const health = end.blame === 'hub' ? (stored?.health ?? 'unknown') : 'unhealthy'
    return { phase: 'Error', health, message: end.message, conditions }
  }
  return {
    phase: 'Connected',
    health: state?.status.health ?? stored?.health ?? 'unknown',
    message: state?.status.message ?? 'Cluster is reachable',
    lastSyncTime: rfc3339(end.batch.collectedAt || now),
    ...countsOf(end.batch),
    conditions,
  }
}

/** What an agent delivered last. */
function deliveredOf(
  state: ClusterState | undefined,
  stored: ClusterConnectionStatus | undefined,
): ClusterConnectionStatus {
  const count = (type: 'node' | 'namespace') => {
    const part = state?.parts[type]
    return isKnown(part) ? part?.items.size : undefined
  }
  const nodes = count('node')
  const namespaces = count('namespace')
  const lastSyncAt = state?.status.lastSyncAt
  return {
    phase: 'Connected',
    health: state?.status.health ?? stored?.health ?? 'unknown',
    message: state?.status.message ?? 'Collector push active',
    ...(lastSyncAt && { lastSyncTime: rfc3339(lastSyncAt) }),
    ...(nodes !== undefined && { nodes }),
    ...(namespaces !== undefined && { namespaces }),
  }
}

/** Real counts, of what this round read. */
function countsOf({ parts }: Batch): Pick<ClusterConnectionStatus, 'nodes' | 'namespaces'> {
  const counted = (type: string) => {
    const part = parts.find((entry) => entry.type === type)
    return part?.outcome === 'complete' ? part.items.length : undefined
  }
  const nodes = counted('node')
  const namespaces = counted('namespace')
  return { ...(nodes !== undefined && { nodes }), ...(namespaces !== undefined && { namespaces }) }
}

type Said = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

function conditionsOf({ stored, generation, end, state, now, ...rest }: StatusInputs): readonly Condition[] {
  const said = [...verdict(end, state), ...tls(end, rest.tls), ...notes(rest)]
  // Notes that no longer hold are dropped, and what the hub found out by asking where it does not ask any more; the others
  // always hold one way or the other.
  const bufferIsKnown = rest.buffer !== undefined || rest.collector === undefined
  const stale = (type: string) =>
    NOTES.has(type) ||
    (type === 'BufferNotDurable' && bufferIsKnown) ||
    (end.kind === 'delivered' && ASKED_BY_HUB.has(type))
  const kept = ((stored?.conditions ?? []) as readonly Condition[]).filter(
    ({ type }) => !stale(type) || said.some((condition) => condition.type === type),
  )
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  return said.reduce<readonly Condition[]>(
    (list, condition) => setCondition(list, { ...condition, ...observed }, now),
    kept,
  )
}

const NOTES = new Set(['CredentialsHeld', 'SpecAdjusted', 'CollectorConnected', 'AgentRemoved', 'Followed'])
const ASKED_BY_HUB = new Set(['Reachable', 'CredentialsValid', 'TLSVerified'])

function verdict(end: RoundEnd, state: ClusterState | undefined): Said[] {
  if (end.kind === 'waiting') return []
  if (end.kind === 'delivered') return [readByAgent(state), ...(state ? [completeness(partsOf(state))] : [])]
  if (end.kind === 'connecting')
    return [{ type: 'Ready', status: 'Unknown', reason: 'Connecting', message: 'first round' }]
  if (end.kind === 'collected') {
    return [
      { type: 'Ready', status: 'True', reason: 'Collected', message: 'the last round read the cluster' },
      { type: 'Reachable', status: 'True', reason: 'Answered', message: 'the API server answers' },
      {
        type: 'CredentialsValid',
        status: 'True',
        reason: 'Accepted',
        message: 'the API server accepts the credentials',
      },
      completeness(end.batch.parts),
    ]
  }
  const { reason, message } = { reason: camel(end.code), message: end.message }
  return [{ type: 'Ready', status: 'False', reason, message }, ...blame(end, reason, message)]
}

/** Whether the agent itself can read the cluster. */
function readByAgent(state: ClusterState | undefined): Said {
  const type = 'Ready'
  const { checkedAt = null, lastSyncAt = null, message = '' } = state?.status ?? {}
  if (checkedAt === null || checkedAt === lastSyncAt) {
    return { type, status: 'True', reason: 'Delivered', message: 'the agent read the cluster' }
  }
  return { type, status: 'False', reason: 'NotReadByAgent', message: message || 'the agent cannot read the nodes' }
}

function blame(end: Extract<RoundEnd, { kind: 'failed' }>, reason: string, message: string): Said[] {
  if (end.blame === 'spec' || end.blame === 'hub' || end.blame === 'agent') return []
  const credentials = (status: Said['status']): Said => ({ type: 'CredentialsValid', status, reason, message })
  const reachable = (status: Said['status']): Said => ({ type: 'Reachable', status, reason, message })
  if (end.code === 'credentials_held') return [credentials('Unknown')]
  if (end.blame === 'credentials') return [credentials('False')]
  if (end.code === 'kube_unauthorized') return [reachable('True'), credentials('False')]
  // An answer, even a refusal, proves that the cluster is there and knows us.
  if (ANSWERS.has(end.code)) return [reachable('True'), credentials('True')]
  return [reachable('False'), credentials('Unknown')]
}

const ANSWERS = new Set(['kube_forbidden', 'kube_not_found', 'kube_throttled', 'kube_expired', 'kube_invalid'])

interface ReadPart {
  readonly type: string
  readonly outcome: Outcome | 'changed'
  readonly message?: string | undefined
}

const partsOf = ({ parts }: ClusterState): readonly ReadPart[] =>
  Object.entries(parts).map(([type, part]) => ({ type, ...part }))

/** Which collectors could not read what they should; what a cluster does not have is no lack. */
function completeness(parts: readonly ReadPart[]): Said {
  const lacking = parts.flatMap((part) =>
    part.outcome === 'complete' || part.outcome === 'changed' || part.outcome === 'absent'
      ? []
      : [`${part.type} ${part.outcome}: ${part.message ?? ''}`],
  )
  const type = 'Complete'
  if (lacking.length === 0)
    return { type, status: 'True', reason: 'AllRead', message: 'every collector read what it should' }
  return { type, status: 'False', reason: 'PartlyRead', message: lacking.join('; ').slice(0, 4000) }
}

function tls(end: RoundEnd, use: TlsUse): Said[] {
  // Only of what the hub itself asked.
  if (end.kind === 'delivered' || end.kind === 'waiting') return []
  const type = 'TLSVerified'
  if (use === 'verified')
    return [{ type, status: 'True', reason: 'Verified', message: 'the certificate of the API server is verified' }]
  if (use === 'local') {
    const message = 'plain HTTP on this machine: there is no certificate, and the credentials do not leave the machine'
    return [{ type, status: 'False', reason: 'PlainOnThisMachine', message }]
  }
  const message = 'the API server is not verified, by choice: anyone in between can read the credentials'
  return [{ type, status: 'False', reason: 'SkippedByChoice', message }]
}

function notes({
  adjustments,
  collector,
  leftAgent,
  held,
  buffer,
  polled,
}: Pick<StatusInputs, 'adjustments' | 'collector' | 'leftAgent' | 'held' | 'buffer' | 'polled'>): Said[] {
  const result: Said[] = []
  if (polled.length > 0) {
    const message = `read with every round, not followed: ${polled.join('; ')}`
    const reason = polled.some((one) => one.includes('the role lacks watch')) ? 'WatchForbidden' : 'Polled'
    result.push({ type: 'Followed', status: 'False', reason, message: message.slice(0, 4000) })
  }
  if (held) {
    result.push({
      type: 'CredentialsHeld',
      status: 'True',
      reason: held.reason,
      message: held.message.slice(0, 4000),
    })
  }
  if (adjustments.length > 0) {
    result.push({ type: 'SpecAdjusted', status: 'True', reason: 'OutOfRange', message: adjustments.join('; ') })
  }
  if (leftAgent) {
    result.push({ type: 'AgentRemoved', status: 'False', reason: 'RemovalFailed', message: leftAgent.slice(0, 4000) })
  }
  if (buffer && collector) {
    result.push({
      type: 'BufferNotDurable',
      status: 'True',
      reason: buffer.reason,
      message: buffer.message.slice(0, 4000),
    })
  }
  if (collector) result.push({ type: 'CollectorConnected', ...collector, message: collector.message.slice(0, 4000) })
  return result
}

/** `kube_not_found` → `KubeNotFound`: reasons of conditions are in CamelCase. */
const camel = (code: string) =>
  code
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('') || 'Failed'

const rfc3339 = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`
