import type { ClusterName } from '#model'
import { subjectToken } from '#nats'

/** What is published of a cluster: ClusterMetrics and PodStatusSnapshot of proto/cluster/events.proto. */
export type EventKind = 'metrics' | 'pods'

/** Where a kind of event of a cluster is published: `cluster.pods` for the default cluster, `cluster.<name>.pods` for every other. */
export function subjectOf(cluster: ClusterName, kind: EventKind, defaultCluster: string): string {
  return cluster === defaultCluster ? `cluster.${kind}` : `cluster.${subjectToken(cluster)}.${kind}`
}
