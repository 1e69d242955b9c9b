import { isDeepStrictEqual } from 'node:util'
import type { ClusterState, SnapshotType } from '#model'
import type { AccessView, ClusterPermissions, Decider, Principal, StoredPolicy } from './types.ts'

/** How many rows of each type an access view leaves of a cluster. */
export type Counts = Readonly<Record<string, number>>

const countedTypes: Readonly<Record<string, SnapshotType>> = {
  nodes: 'node',
  namespaces: 'namespace',
  deployments: 'deployment',
  operators: 'operator',
  clusterOperators: 'clusterOperator',
}

/**
 * Rows by type, and pods as far as their sums may be seen. Nothing is counted of a cluster that is not seen; what was never read there
 * has no count at all.
 */
export function countsOf(accessView: AccessView, cluster: ClusterState): Counts {
  const isSeen = accessView.canSee(cluster)
  const isKnown = (type: SnapshotType) => Boolean(cluster.parts[type]?.freshness)
  const counts: Record<string, number> = {}
  for (const [name, type] of Object.entries(countedTypes))
    if (isKnown(type)) counts[name] = isSeen ? accessView.visible(cluster, type).length : 0
  if (isKnown('podSummary'))
    counts.pods = isSeen ? (accessView.visible(cluster, 'podSummary')[0]?.counts.total ?? 0) : 0
  return counts
}

/** One cluster that somebody sees otherwise than before. */
export interface AccessChange {
  readonly cluster: string
  readonly before: ClusterPermissions['level']
  readonly after: ClusterPermissions['level']
  readonly counts: Readonly<Record<string, { readonly before: number; readonly after: number }>>
  /** who decides afterwards */
  readonly decidedBy: Decider | null
}

/** What a change of policies changes for one principal. */
export interface Comparison {
  readonly changes: readonly AccessChange[]
  /** clusters seen as before */
  readonly unchanged: number
}

/**
 * What one subject sees of these clusters with one set of policies and with another. Pure. That another policy decides the
 * same is no change.
 */
export function compareAccess(before: AccessView, after: AccessView, clusters: readonly ClusterState[]): Comparison {
  if (before.fingerprint === after.fingerprint) return { changes: [], unchanged: clusters.length }
  const changes = clusters.flatMap((cluster) => changeOf(before, after, cluster) ?? [])
  return { changes, unchanged: clusters.length - changes.length }
}

function changeOf(before: AccessView, after: AccessView, cluster: ClusterState): AccessChange | undefined {
  const old = before.permissions(cluster)
  const now = after.permissions(cluster)
  const oldCounts = countsOf(before, cluster)
  const counts = countsOf(after, cluster)
  const isSame =
    old.level === now.level &&
    isDeepStrictEqual([...old.permissions].sort(), [...now.permissions].sort()) &&
    isDeepStrictEqual(old.filters, now.filters) &&
    isDeepStrictEqual(oldCounts, counts)
  if (isSame) return undefined
  return {
    cluster: cluster.name,
    before: old.level,
    after: now.level,
    counts: Object.fromEntries(
      Object.entries(counts).map(([type, count]) => [type, { before: oldCounts[type] ?? 0, after: count }]),
    ),
    decidedBy: now.decidedBy,
  }
}

/** Who a person is said to be, for questions about others: an administrator's word stands for a verified address. */
export function asPrincipal({
  username,
  email = '',
  groups = [],
}: {
  readonly username: string
  readonly email?: string | undefined
  readonly groups?: readonly string[] | undefined
}): Principal {
  const isServiceAccount = username.startsWith('system:serviceaccount:')
  // The way of signing in must be one that makes nobody an administrator by itself.
  return { username, email, emailVerified: email !== '', groups, isServiceAccount, method: 'trusted-proxy' }
}

/** Everyone whom these policies name, once each: users and service accounts by name, groups as a nameless member. */
export function subjectsOf(policies: Iterable<StoredPolicy>): Principal[] {
  const subjects = new Map<string, Principal>()
  for (const { document } of policies) {
    for (const user of document.users)
      subjects.set(`user ${user}`, asPrincipal({ username: user, email: user.includes('@') ? user : '' }))
    for (const account of document.service_accounts) subjects.set(`user ${account}`, asPrincipal({ username: account }))
    for (const group of document.groups) subjects.set(`group ${group}`, asPrincipal({ username: '', groups: [group] }))
  }
  return [...subjects.values()]
}
