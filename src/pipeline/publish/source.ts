import { type ClusterState, type Freshness, isKnown, minutes, seconds } from '#model'
import { NODE_USAGE, nodeDocuments } from '#monitor'
import { type EventHead, type EventPart, metricsParts, podParts } from './messages.ts'
import type { EventKind } from './subjects.ts'

/** A cluster that was not read for so many of its rounds is not published: nobody would see how old it is. */
const STALE_ROUNDS = 3
const USUAL_ROUND_MS = seconds(30)
/** However short its rounds are. */
const LEAST_STALE_MS = minutes(1)

/**
 * What is told of a cluster now; undefined: its newest read failed or is overdue, and nothing is better than what looks new and is not.
 * @param isNamespaceWanted whose pods are told; default: all
 */
export function partsOf(
  cluster: ClusterState,
  kind: EventKind,
  head: EventHead,
  isNamespaceWanted: (namespace: string) => boolean = () => true,
): readonly EventPart[] | undefined {
  const limitMs = Math.max(LEAST_STALE_MS, STALE_ROUNDS * (cluster.connection?.intervalMs ?? USUAL_ROUND_MS))
  const isRecent = (freshness: Freshness | null) => freshness !== null && head.at - freshness.receivedAt <= limitMs
  if (wasUnread(cluster)) return undefined
  if (kind === 'pods') {
    const pods = cluster.tables.get('pods')
    if (pods?.outcome !== 'complete' || !isRecent(pods.freshness)) return undefined
    // Collected by a build that did not tell of containers: that is not a cluster without pods.
    if (pods.rows.size > 0 && !pods.rows.fields.includes('containerRestarts')) return undefined
    return podParts(pods.rows, isNamespaceWanted, head)
  }
  const { node } = cluster.parts
  if (!node || !isKnown(node) || !isRecent(node.freshness)) return undefined
  const usage = cluster.tables.get(NODE_USAGE)
  if (usage?.outcome === 'unreachable') return undefined
  if (usage?.outcome === 'complete' && !isRecent(usage.freshness)) return undefined
  return metricsParts(
    nodeDocuments(usage?.outcome === 'complete' ? cluster : unmeasured(cluster), node.items.values()),
    head,
  )
}

/** Whether the newest round did not read it. Where nodes may not be read no round does, and what may be is told. */
function wasUnread({ heartbeats, parts }: ClusterState): boolean {
  const newest = heartbeats.at(-1)
  return newest?.health === 'unhealthy' && newest.answered !== true && parts.node?.outcome !== 'forbidden'
}

/** Without what was measured when there was somebody to measure. */
function unmeasured(cluster: ClusterState): ClusterState {
  const tables = new Map(cluster.tables)
  tables.delete(NODE_USAGE)
  return { ...cluster, tables }
}
