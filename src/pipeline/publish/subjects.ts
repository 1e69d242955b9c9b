import type { ClusterName } from '#model'

/** What is published of a cluster: ClusterMetrics and PodStatusSnapshot of proto/cluster/events.proto. */
export type EventKind = 'metrics' | 'pods'

/**
 * The name of a cluster as one token of a subject. A dot would divide it, so it becomes an underscore, which no such name has: the
 * way back is as plain.
 */
export const tokenOf = (cluster: string): string => cluster.replaceAll('.', '_')

/** Where a kind of event of a cluster is published: `cluster.pods` for the default cluster, `cluster.<name>.pods` for every other. */
export function subjectOf(cluster: ClusterName, kind: EventKind, defaultCluster: string): string {
  return cluster === defaultCluster ? `cluster.${kind}` : `cluster.${tokenOf(cluster)}.${kind}`
}

/** Whether a filter of a stream, which may have wildcards, covers the subject. @see NATS documentation, "Subject-Based Messaging" */
export function covers(filter: string, subject: string): boolean {
  const [wanted, given] = [filter.split('.'), subject.split('.')]
  for (const [i, token] of wanted.entries()) {
    if (token === '>') return i === wanted.length - 1 && given.length > i
    if (i >= given.length || (token !== '*' && token !== given[i])) return false
  }
  return wanted.length === given.length
}
