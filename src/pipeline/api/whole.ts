import { RefusedError } from './problem.ts'
import type { VisibleCluster } from './views.ts'
import type { VisibleType } from './visible-types.ts'

/*
 * What is summed over all of a cluster tells of what is hidden in it. The one place for the rule who may have such sums over
 * time: the history of a cluster and PromQL both ask here.
 */

/**
 * Values over time, of anything of this cluster.
 * @throws RefusedError `metrics_not_permitted`
 */
export function requireHistory({ state, history }: VisibleCluster): void {
  if (history) return
  throw new RefusedError(
    'metrics_not_permitted',
    `measurements of cluster ${state.name} are not for you: a policy would have to grant viewMetrics`,
  )
}

/** @throws RefusedError `history_filtered` */
export function requireWhole({ state, whole }: VisibleCluster): void {
  if (whole) return
  throw new RefusedError(
    'history_filtered',
    `you see only a part of cluster ${state.name}: its totals are not shown; ask for its nodes`,
  )
}

/**
 * Aggregations over time are kept over all rows of a type.
 * @throws RefusedError `metrics_not_permitted`, `history_filtered`
 */
export function requireWholeType({ cluster, source, custom }: VisibleType): void {
  if (!custom.metrics)
    throw new RefusedError(
      'metrics_not_permitted',
      `measurements of ${source.typeName} on cluster ${cluster.name} are not for you: a policy would have to grant viewMetrics`,
    )
  if (!custom.whole)
    throw new RefusedError(
      'history_filtered',
      `you see only some ${source.typeName} of cluster ${cluster.name}: what is summed over all of them is not shown`,
    )
}
