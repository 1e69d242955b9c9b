import type { ClusterState, ClusterStatus, Heartbeat, Outcome, SeenOf, SnapshotOf, SnapshotType } from '#model'
import { evaluateHealth } from '#state'

/** A cluster as far as somebody may see it. */
export interface SeenCluster {
  readonly state: ClusterState
  /** nothing of it is hidden */
  readonly whole: boolean
  readonly visible: <T extends SnapshotType>(type: T) => readonly SeenOf<T>[]
}

/** Health as it can be told from what is seen: that of the whole cluster tells of hidden nodes and operators. */
export interface SeenStatus extends Pick<ClusterStatus, 'health' | 'message' | 'reasons'> {
  readonly heartbeats: readonly Heartbeat[]
}

export function seenStatus(cluster: SeenCluster): SeenStatus {
  const { state, whole } = cluster
  const { health, message, reasons } = state.status
  if (whole) return { health, message, reasons, heartbeats: state.heartbeats }
  const verdict = evaluateHealth({
    parts: seenParts(cluster),
    failure: failureOf(state.status),
    source: state.source,
    checked: state.status.checkedAt !== null,
  })
  return { ...verdict, heartbeats: state.heartbeats.map(answered) }
}

/** What a cluster says of itself. The conditions of its version name operators that are in the way. */
export function seenFacts({ whole, visible }: SeenCluster): SeenOf<'cluster'> | null {
  const facts = visible('cluster')[0]
  return facts ? (whole ? facts : { ...facts, conditions: [] }) : null
}

const faults: Readonly<Record<Outcome, string>> = {
  complete: '',
  absent: 'the cluster does not serve this',
  forbidden: 'the hub may not read this',
  unreachable: 'the last read did not end well',
}

/** Why a part was not read, without the cluster's own words: they may name what is hidden. */
export const plainFault = (outcome: Outcome): string => faults[outcome]

type Parts = ClusterState['parts']

function seenParts({ state: { parts }, visible }: SeenCluster): Parts {
  // Health reads neither pods nor requests, which are all that a seen row may lack.
  const nodes = visible('node') as readonly SnapshotOf<'node'>[]
  const plain = Object.entries(parts).map(([type, part]) => [type, { ...part, message: plainFault(part.outcome) }])
  const seen: Parts = Object.fromEntries(plain)
  return {
    ...seen,
    ...(seen.node && { node: { ...seen.node, items: byName(nodes.length > 0 ? nodes : [noNode]) } }),
    ...(seen.operator && { operator: { ...seen.operator, items: byName(visible('operator')) } }),
    ...(seen.clusterOperator && {
      clusterOperator: { ...seen.clusterOperator, items: byName(visible('clusterOperator')) },
    }),
  }
}

const byName = <T extends { readonly name: string }>(items: readonly T[]): ReadonlyMap<string, T> =>
  new Map(items.map((item) => [item.name, item]))

// Whoever sees no node cannot tell a cluster without nodes from one whose nodes are hidden: neither makes it worse.
const noNode = { name: '', ready: 'ready', roles: [] as string[] } as unknown as SnapshotOf<'node'>

const ofNodes = /^(nodes_(absent|forbidden|unreachable)|all_nodes_not_ready|control_plane_not_ready)$/

/** Why the last round failed as a whole; undefined where it did not. */
function failureOf({ health, reasons: [first] }: ClusterStatus): { code: string; message: string } | undefined {
  if (health !== 'unhealthy') return undefined
  if (!first) return { code: 'unreachable', message: 'The last round failed' }
  return ofNodes.test(first.code) ? undefined : { code: first.code, message: first.message }
}

/** A heartbeat then says only whether the cluster answered. */
const answered = (beat: Heartbeat): Heartbeat =>
  beat.health === 'degraded' || beat.answered ? { ...beat, health: 'healthy' } : beat
