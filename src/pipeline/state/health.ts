import {
  type ClusterState,
  type Health,
  type HealthReason,
  isNotReady,
  type Outcome,
  type SnapshotOf,
  type SnapshotType,
} from '#model'

/*
 *  Health of a cluster, worst first (COL-Q12 of the specification: not reachability alone):
 *
 *  unknown    never checked, or its nodes were never asked for
 *  unhealthy  the round failed · nodes could not be read · no node is ready · no control-plane node is ready
 *  degraded   some nodes not ready · no node at all · a ClusterOperator degraded or unavailable · an operator's CSV Failed
 *  healthy    the rest. A part that could not be read (other than nodes) is named in the reasons and changes no health:
 *             we know less of the cluster, which says nothing of how it is.
 *
 *  A part that is `absent` counts for nothing, whatever it once held.
 */
type Parts = ClusterState['parts']

/** What the health of a cluster is judged by. */
export interface HealthInput {
  readonly parts: Parts
  /** why the last round failed as a whole */
  readonly failure: { readonly code: string; readonly message: string } | undefined
  readonly source: 'pull' | 'push'
  /** a round was ever made */
  readonly checked: boolean
}

/** Health of a cluster, in one word, a sentence and its reasons. */
export interface HealthVerdict {
  readonly health: Health
  readonly message: string
  readonly reasons: readonly HealthReason[]
}

/** Names in a sentence; the rest is counted. */
const NAMED = 3

/** Judges a cluster: a failed round first, then its nodes, then what else was read. */
export function evaluateHealth({ parts, failure, source, checked }: HealthInput): HealthVerdict {
  if (failure) return verdict('unhealthy', [failure])
  if (!checked) return { health: 'unknown', message: 'Not checked yet', reasons: [] }
  if (!parts.node) return { health: 'unknown', message: 'Its nodes have not been read yet', reasons: [] }
  if (parts.node.outcome !== 'complete') {
    const why = parts.node.message || `nodes are ${parts.node.outcome}`
    return verdict('unhealthy', [{ code: `nodes_${parts.node.outcome}`, message: `Nodes could not be read: ${why}` }])
  }
  const nodes = nodeReasons([...parts.node.items.values()])
  const operators = [...clusterOperatorReasons(parts), ...operatorReasons(parts)]
  const warnings = unreadParts(parts)
  if (nodes.unhealthy.length > 0) return verdict('unhealthy', [...nodes.unhealthy, ...operators, ...warnings])
  const degraded = [...nodes.degraded, ...operators]
  if (degraded.length > 0) return verdict('degraded', [...degraded, ...warnings])
  const message = source === 'push' ? 'Collector push active' : 'Cluster is reachable'
  const notes = warnings.map((warning) => warning.message)
  return { health: 'healthy', message: [message, ...notes].join('; '), reasons: warnings }
}

function nodeReasons(nodes: readonly SnapshotOf<'node'>[]): { unhealthy: HealthReason[]; degraded: HealthReason[] } {
  if (nodes.length === 0) {
    return { unhealthy: [], degraded: [{ code: 'no_nodes', message: 'The cluster has no nodes' }] }
  }
  const notReady = nodes.filter(isNotReady)
  if (notReady.length === 0) return { unhealthy: [], degraded: [] }
  const sentence = `${notReady.length} of ${nodes.length} nodes not ready: ${named(notReady)}`
  if (notReady.length === nodes.length) {
    return { unhealthy: [{ code: 'all_nodes_not_ready', message: sentence }], degraded: [] }
  }
  const controlPlane = nodes.filter((node) => node.roles.includes('control-plane') || node.roles.includes('master'))
  if (controlPlane.length > 0 && controlPlane.every(isNotReady)) {
    const message = `No control-plane node is ready: ${named(controlPlane)}`
    return { unhealthy: [{ code: 'control_plane_not_ready', message }], degraded: [] }
  }
  return { unhealthy: [], degraded: [{ code: 'nodes_not_ready', message: sentence }] }
}

function clusterOperatorReasons(parts: Parts): HealthReason[] {
  const operators = itemsOf(parts, 'clusterOperator')
  const unavailable = operators.filter((operator) => !operator.available)
  const degraded = operators.filter((operator) => operator.available && operator.degraded)
  return [
    ...reason(unavailable, 'cluster_operators_unavailable', 'Cluster operators not available'),
    ...reason(degraded, 'cluster_operators_degraded', 'Cluster operators degraded'),
  ]
}

function operatorReasons(parts: Parts): HealthReason[] {
  const failed = itemsOf(parts, 'operator').filter((operator) => operator.status === 'Failed')
  return reason(failed, 'operators_failed', 'Operators failed')
}

const UNREAD: Readonly<Record<Exclude<Outcome, 'complete' | 'absent'>, string>> = {
  forbidden: 'may not be read',
  unreachable: 'could not be read',
}

/** Types as people call them. */
const NOUN: Readonly<Record<SnapshotType, string>> = {
  cluster: 'facts of the cluster',
  node: 'nodes',
  podSummary: 'pods',
  namespace: 'namespaces',
  deployment: 'deployments',
  operator: 'operators',
  clusterOperator: 'cluster operators',
}

function unreadParts(parts: Parts): HealthReason[] {
  return Object.entries(parts).flatMap(([type, part]) => {
    if (part.outcome === 'complete' || part.outcome === 'absent') return []
    return [
      {
        code: `${type}_${part.outcome}`,
        message: `${NOUN[type as SnapshotType]} ${UNREAD[part.outcome]}: ${part.message}`,
      },
    ]
  })
}

function itemsOf<T extends SnapshotType>(parts: Parts, type: T): SnapshotOf<T>[] {
  const part = parts[type]
  if (!part || part.outcome === 'absent') return []
  // The map under a type's key holds that type; the union of maps hides it.
  return [...part.items.values()] as SnapshotOf<T>[]
}

const reason = (items: readonly { name: string }[], code: string, what: string): HealthReason[] =>
  items.length === 0 ? [] : [{ code, message: `${what}: ${named(items)}` }]

function named(items: readonly { readonly name: string }[]): string {
  const names = items.map(({ name }) => name).sort()
  const rest = names.length - NAMED
  return names.slice(0, NAMED).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

const verdict = (health: Health, reasons: readonly HealthReason[]): HealthVerdict => ({
  health,
  message: reasons.map(({ message }) => message).join('; '),
  reasons,
})
