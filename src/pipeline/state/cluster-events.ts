import {
  type AgentFacts,
  type ClusterState,
  type FleetEvent,
  isHubsAbsence,
  isNotReady,
  type SnapshotOf,
  type SnapshotType,
} from '#model'

/**
 * What is worth remembering about the step from one state of a cluster to the next: real changes only, in the order they
 * are to be read. The first read of a type tells nothing: all its items would be "new".
 */
export function clusterEvents(before: ClusterState | undefined, after: ClusterState, at: number): FleetEvent[] {
  const event = (type: string, data: Readonly<Record<string, unknown>>): FleetEvent => ({
    type,
    cluster: after.name,
    at,
    data,
  })
  const displayName = after.connection?.displayName ?? after.name
  return [
    ...(before ? [] : [event('cluster.added', { display_name: displayName })]),
    ...versionEvents(before, after).map((data) => event('cluster.version', data)),
    ...nodeEvents(before, after).map(([type, data]) => event(type, data)),
    ...clusterOperatorEvents(before, after).map(([type, data]) => event(type, data)),
    ...operatorEvents(before, after).map(([type, data]) => event(type, data)),
    ...agentEvents(before, after).map(([type, data]) => event(type, data)),
    ...healthEvents(before, after, displayName).map(([type, data]) => event(type, data)),
  ]
}

type EventFacts = [type: string, data: Record<string, unknown>]

function versionEvents(before: ClusterState | undefined, after: ClusterState) {
  const from = before?.parts.cluster?.items.get('cluster')?.version
  const to = after.parts.cluster?.items.get('cluster')?.version
  return from && to && from !== to ? [{ from, to }] : []
}

function nodeEvents(before: ClusterState | undefined, after: ClusterState): EventFacts[] {
  return eventsOf(before, after, 'node', (was, is) => {
    if (!is) return was ? [['node.removed', { node: was.name }]] : []
    if (!was) return [['node.added', { node: is.name, ready: is.ready }]]
    const events: EventFacts[] = []
    if (!isNotReady(was) && isNotReady(is)) events.push(['node.not_ready', { node: is.name, ...whyNotReady(is) }])
    if (isNotReady(was) && is.ready === 'ready') events.push(['node.ready', { node: is.name }])
    if (!was.unschedulable && is.unschedulable) events.push(['node.cordoned', { node: is.name }])
    if (was.unschedulable && !is.unschedulable) events.push(['node.uncordoned', { node: is.name }])
    return events
  })
}

function whyNotReady(node: SnapshotOf<'node'>): Record<string, string> {
  const ready = node.conditions.find(({ type }) => type === 'Ready')
  return ready ? { reason: ready.reason, message: ready.message } : {}
}

function clusterOperatorEvents(before: ClusterState | undefined, after: ClusterState): EventFacts[] {
  const inTrouble = (operator: SnapshotOf<'clusterOperator'>) => operator.degraded || !operator.available
  return eventsOf(before, after, 'clusterOperator', (was, is) => {
    if (!is) return []
    const wasInTrouble = was ? inTrouble(was) : false
    if (inTrouble(is) === wasInTrouble) return []
    if (!inTrouble(is)) return [['cluster_operator.recovered', { operator: is.name }]]
    const { degraded, available, reason, message } = is
    return [['cluster_operator.degraded', { operator: is.name, degraded, available, reason, message }]]
  })
}

// OLM goes from Failed over other phases back to Succeeded: the list of events is the memory of the failure.
function operatorEvents(before: ClusterState | undefined, after: ClusterState): EventFacts[] {
  return eventsOf(before, after, 'operator', (was, is) => {
    if (!is || was?.status === is.status) return []
    const data = { operator: is.name, display_name: is.displayName, version: is.version }
    if (is.status === 'Failed') return [['operator.failed', data]]
    if (is.status !== 'Succeeded' || !was) return []
    return was.status === 'Failed' || wasReportedFailed(before, is.name) ? [['operator.recovered', data]] : []
  })
}

function agentEvents(before: ClusterState | undefined, { agent }: ClusterState): EventFacts[] {
  if (!agent || isThere(agent) === isThere(before?.agent)) return []
  if (!agent.connected) return [['agent.disconnected', { reason: agent.reason, version: agent.version }]]
  const { version, protocol, method, tls } = agent
  return [['agent.connected', { version, protocol, method, tls }]]
}

/** What the hub did not see while it was away itself is no absence of an agent. */
const isThere = (agent: AgentFacts | null | undefined): boolean =>
  agent != null && (agent.connected || isHubsAbsence(agent))

function wasReportedFailed(state: ClusterState | undefined, operator: string): boolean {
  const last = state?.events.find(({ type, data }) => type.startsWith('operator.') && data?.operator === operator)
  return last?.type === 'operator.failed'
}

function healthEvents(before: ClusterState | undefined, after: ClusterState, displayName: string): EventFacts[] {
  const from = before?.status.health ?? 'unknown'
  const { health: to, message } = after.status
  if (from === to) return []
  return [
    ['cluster.health', { from, to, message }],
    ['cluster.reconciled', { health: to, display_name: displayName }], // the documented name of the same
  ]
}

/** What is told of items that are new, gone or another value; nothing when the type was never read before or was not read now. */
function eventsOf<T extends SnapshotType>(
  before: ClusterState | undefined,
  after: ClusterState,
  type: T,
  tell: (was: SnapshotOf<T> | undefined, is: SnapshotOf<T> | undefined) => readonly EventFacts[],
): EventFacts[] {
  const was = before?.parts[type]
  const is = after.parts[type]
  if (!was?.freshness || !is || was.items === is.items) return []
  const events: EventFacts[] = []
  for (const [name, item] of is.items) {
    const old = was.items.get(name)
    if (old !== item) events.push(...tell(old, item))
  }
  for (const [name, item] of was.items) if (!is.items.has(name)) events.push(...tell(item, undefined))
  return events
}

/** Events of `after` that `before` did not have, oldest first. */
export function newEvents(before: ClusterState | undefined, after: ClusterState) {
  const known = before?.events[0]
  const at = known ? after.events.findIndex((event) => sameEvent(event, known)) : -1
  return (at === -1 ? after.events : after.events.slice(0, at)).toReversed()
}

const sameEvent = (a: ClusterState['events'][number], b: ClusterState['events'][number]) =>
  a === b || (a.at === b.at && a.type === b.type && JSON.stringify(a.data) === JSON.stringify(b.data))
