import type { Source } from './freshness.ts'
import type { MetricScope } from './metrics.ts'
import type { ClusterName } from './names.ts'

/**
 * Numbers of one scope, in columns: `values[i]` of each column belongs to `keys[i]`. NaN: not known, and not kept.
 * `keys`: node names, operator names or source ids; [''] for the cluster itself.
 */
export interface SampleGroup {
  readonly scope: MetricScope
  readonly keys: readonly string[]
  /** by full metric name, such as clusterpulse_node_cpu_capacity */
  readonly columns: readonly { readonly metric: string; readonly values: Float64Array }[]
}

/** All samples of one batch: one cluster, one time. */
export interface SampleSet {
  readonly cluster: ClusterName
  /** when they were true, ms since the Unix epoch: the source's time, never the time of writing */
  readonly at: number
  readonly source: Source
  /** they came later, out of an agent's buffer */
  readonly repaired: boolean
  /** nothing was ever measured: they were made up for a demonstration */
  readonly simulated?: true
  readonly groups: readonly SampleGroup[]
}
