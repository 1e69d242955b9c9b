import type { RowKind } from '#metricsource'
import { type ClusterState, clusterSetsOf, type MemberReader } from '#model'
import { isFleetKind } from '#resources'
import { RefusedError } from './problem.ts'

type Placed = Pick<ClusterState, 'name' | 'connection'>

/** Sets of clusters, as far as somebody sees clusters in them: one rule for all lists that are asked for `set=`. */
export class ClusterSets {
  readonly #members: MemberReader | undefined

  constructor(members: MemberReader | undefined) {
    this.#members = members
  }

  /** Equal versions, over equal clusters, mean equal sets. */
  version(): number {
    return this.#members?.version() ?? 0
  }

  /** Each set that has one of the clusters, and for administrators those without, by name, with how many it has. */
  counts(clusters: readonly Placed[], administrator: boolean): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    if (administrator) for (const set of this.#members?.sets() ?? []) counts.set(set, 0)
    for (const cluster of clusters)
      for (const set of clusterSetsOf(cluster, this.#members)) counts.set(set, (counts.get(set) ?? 0) + 1)
    return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /**
   * Names of the clusters that are in the set.
   * @throws RefusedError `set_not_found` where there is none of this name that the caller may know of
   */
  names(set: string, clusters: readonly Placed[], administrator: boolean): ReadonlySet<string> {
    const inSet = clusters.filter((cluster) => clusterSetsOf(cluster, this.#members).includes(set))
    if (inSet.length === 0 && !(administrator && this.#members?.sets().includes(set)))
      throw new RefusedError('set_not_found', `there is no set ${JSON.stringify(set)} of clusters that you may see`)
    return new Set(inSet.map(({ name }) => name))
  }
}

/** Of a kind that stands on no cluster, such as members: the column with the sets that each row itself is in. */
const SETS = 'sets'
const isInSets = (kind: RowKind): boolean => isFleetKind(kind) && kind.columns.some(({ name }) => name === SETS)

/** @throws RefusedError `invalid_parameter` where neither rows nor the clusters they stand on could be in a set */
export function requireSets(kind: RowKind, { type }: { readonly type: string }): void {
  if (isFleetKind(kind) && !isInSets(kind))
    throw new RefusedError('invalid_parameter', `${type} stand on no cluster, and are in no set: leave out set`)
}

/** The same question, with its set as a condition where rows are in sets themselves. */
export function withSetOfRows<T extends { readonly set?: string; readonly where?: readonly string[] }>(
  kind: RowKind | undefined,
  asked: T,
): T {
  if (asked.set === undefined || !kind || !isInSets(kind)) return asked
  return { ...asked, where: [...(asked.where ?? []), `${SETS}=${asked.set}`] }
}
