import type { AccessFilter, Principal } from '#access'
import type { ClusterState, SnapshotOf, SnapshotType } from '#model'

/** Who sees which clusters, and which items are hidden from them: `node/west/b`. Whoever is not listed sees nothing. */
export function partialAccess(
  sights: Readonly<Record<string, { readonly clusters: readonly string[]; readonly hidden?: readonly string[] }>>,
): AccessFilter {
  const of = ({ username }: Principal) => sights[username] ?? { clusters: [] }
  const itemsOf = <T extends SnapshotType>(cluster: ClusterState, type: T): readonly SnapshotOf<T>[] => [
    ...(cluster.parts[type]?.items.values() ?? []),
  ]
  return {
    fingerprint: (principal) => JSON.stringify(of(principal)),
    canSee: (principal, cluster) => of(principal).clusters.includes(cluster.name),
    visible: (principal, cluster, type) => {
      const { clusters, hidden = [] } = of(principal)
      if (!clusters.includes(cluster.name)) return []
      return itemsOf(cluster, type).filter(({ name }) => !hidden.includes(`${type}/${cluster.name}/${name}`))
    },
  }
}
