import type { ClusterState, PartState, SnapshotOf, SnapshotType } from '#model'
import type { AccessFilter, Principal } from './types.ts'

export interface Administrators {
  readonly users: readonly string[]
  readonly groups: readonly string[]
}

/**
 * Deny by default, until access policies say more: the local administrator and the named administrators see the whole
 * fleet, everyone else sees nothing. Names are compared exactly; an empty name is nobody's.
 */
export function administratorsOnly(administrators: Administrators): AccessFilter {
  const users = new Set(administrators.users.filter(Boolean))
  const groups = new Set(administrators.groups.filter(Boolean))

  const seesAll = (principal: Principal): boolean =>
    principal.method === 'local-administrator' ||
    users.has(principal.username) ||
    principal.groups.some((group) => groups.has(group))

  return {
    fingerprint: (principal) => (seesAll(principal) ? 'all' : 'none'),
    canSee: (principal) => seesAll(principal),
    visible: (principal, cluster, type) => (seesAll(principal) ? itemsOf(cluster, type) : []),
  }
}

// A part never changes, so its list is made once and dies with it.
const lists = new WeakMap<object, readonly unknown[]>()

function itemsOf<T extends SnapshotType>(cluster: ClusterState, type: T): readonly SnapshotOf<T>[] {
  const part: PartState<T> | undefined = cluster.parts[type]
  if (!part) return []
  const known = lists.get(part.items)
  if (known) return known as readonly SnapshotOf<T>[] // stored below, under the same part
  const items = [...part.items.values()]
  lists.set(part.items, items)
  return items
}
