import { snapshotTypes } from '#model'
import { RefusedError } from './problem.ts'
import type { VisibleCluster } from './views.ts'

/**
 * Whether these eyes see every item of the cluster. Only then may they have what is summed over all of it: a total tells
 * of what was hidden. The one place for this rule: totals over time and PromQL both ask here.
 * It goes by what the cluster has now; a filter that hides by name must also say no while nothing bears that name.
 */
export const seesWhole = (cluster: VisibleCluster): boolean =>
  cluster.memo('whole', () =>
    snapshotTypes.every((type) => cluster.visible(type).length === (cluster.state.parts[type]?.items.size ?? 0)),
  )

/** @throws RefusedError `history_filtered` */
export function requireWhole(cluster: VisibleCluster): void {
  if (seesWhole(cluster)) return
  throw new RefusedError(
    'history_filtered',
    `you see only a part of cluster ${cluster.state.name}: its totals are not shown; ask for its nodes`,
  )
}
