import type { ClusterView, PartView, RowType } from '../contract.ts'
import { isStale } from './cluster.ts'
import { formatSpan } from './format.ts'

/** What a number of a cluster is taken from. */
export type PartType = RowType | 'podSummary' | 'cluster'

/** Kinds of rows that every round reads, by their name. */
export const kindParts: Readonly<Record<string, PartType>> = {
  nodes: 'node',
  namespaces: 'namespace',
  deployments: 'deployment',
  operators: 'operator',
  'cluster-operators': 'clusterOperator',
}

/** The last round reached the cluster, and nodes alone were refused: others are read still. */
function isWithoutNodes({ checkedAt, parts: { node } }: ClusterView): boolean {
  const isRefused = node?.outcome === 'forbidden' || node?.outcome === 'absent'
  return isRefused && checkedAt !== null && node.attemptedAt >= checkedAt
}

/** The last round did not read the cluster: whatever is shown of it is from before. */
export function hasFailed(cluster: ClusterView): boolean {
  const { checkedAt, lastSyncAt } = cluster
  return checkedAt !== null && (lastSyncAt === null || lastSyncAt < checkedAt) && !isWithoutNodes(cluster)
}

/** Pods without a summary are those of the nodes; deployments without a list were counted with the nodes. */
export function partOf({ parts, deployments }: ClusterView, type: PartType): PartView | null {
  const part = parts[type] ?? null
  if (type === 'podSummary') return part?.freshness ? part : (parts.node ?? part)
  if (type === 'deployment' && deployments !== null && !part?.freshness) return parts.node ?? part
  return part
}

/** Since then a round failed to reach the cluster: what was read at that time is of the past. */
export const hasFailedSince = (cluster: ClusterView, at: number): boolean =>
  hasFailed(cluster) && at < (cluster.checkedAt ?? 0)

/** When the numbers of this type were read, by the collector's clock; null: never, so far. */
export const readAt = (cluster: ClusterView, type: PartType): number | null =>
  partOf(cluster, type)?.freshness?.observedAt ?? null

const counted: readonly PartType[] = ['node', 'podSummary', 'namespace', 'deployment', 'operator', 'clusterOperator']

/** When the oldest number that is shown of a cluster was read; null: there is none. */
export function oldestAt(cluster: ClusterView): number | null {
  const times = counted.flatMap((type) => readAt(cluster, type) ?? [])
  return times.length === 0 ? null : Math.min(...times)
}

/** A part that was read last time it was its turn, and lately: nothing that is known says it may be another by now. */
export function isCurrentPart(cluster: ClusterView, part: PartView | null, now: number): boolean {
  if (!part?.freshness || part.outcome !== 'complete') return false
  const at = part.freshness.observedAt
  // What moved while a round was failing, which says of when it began.
  if (hasFailed(cluster)) return false
  // Its collector is the last that said anything, even where the nodes could not be read.
  if (cluster.checkedAt !== null && at >= cluster.checkedAt) return now < at + cluster.staleAfterMs
  // Not every collector is due in every round; a round that failed takes them all along.
  if (isWithoutNodes(cluster)) return now < (cluster.checkedAt ?? 0) + cluster.staleAfterMs
  return !isStale(cluster, now)
}

export const isCurrent = (cluster: ClusterView, type: PartType, now: number): boolean =>
  isCurrentPart(cluster, partOf(cluster, type), now)

/** Of when a number is and why it is no newer; '' while it is current, and where nothing was ever read. */
export function pastText(cluster: ClusterView, type: PartType, now: number): string {
  const part = partOf(cluster, type)
  const at = part?.freshness?.observedAt
  if (at === undefined || isCurrentPart(cluster, part, now)) return ''
  return `As of ${formatSpan(now - at)} ago: ${whyPast(cluster, part)}`
}

function whyPast(cluster: ClusterView, part: PartView | null): string {
  if (part && part.outcome !== 'complete') return part.message || notReadWords[part.outcome]
  return hasFailed(cluster) ? `the last round failed: ${cluster.message}` : 'no round has read it since'
}

/** Why there is no number of this type at all. */
export function whyNotRead(cluster: ClusterView, type: PartType): string {
  const part = cluster.parts[type]
  return part?.message || (part && part.outcome !== 'complete' ? notReadWords[part.outcome] : 'never read')
}

export const notReadWords = {
  absent: 'the cluster does not serve it',
  forbidden: 'ClusterPulse may not read it',
  unreachable: 'it could not be read',
}
