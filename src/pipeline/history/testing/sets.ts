import {
  type ClusterName,
  type Loss,
  type MetricScope,
  metricPrefix,
  parseClusterName,
  type SampleGroup,
  type SampleSet,
} from '#model'
import type { HistoryRecord } from '../types.ts'

export const west: ClusterName = parseClusterName('west')

/** One group: `{ cpu_used: { n1: 1, n2: 2 } }` by metric without prefix and key. */
export function aGroup(
  scope: MetricScope,
  values: Readonly<Record<string, Readonly<Record<string, number>>>>,
): SampleGroup {
  const keys = [...new Set(Object.values(values).flatMap((column) => Object.keys(column)))]
  return {
    scope,
    keys,
    columns: Object.entries(values).map(([name, column]) => ({
      metric: metricPrefix[scope] + name,
      values: Float64Array.from(keys, (key) => column[key] ?? Number.NaN),
    })),
  }
}

export function aSet(at: number, groups: readonly SampleGroup[], over: Partial<SampleSet> = {}): SampleSet {
  return { cluster: west, at, source: 'pull', repaired: false, groups, ...over }
}

/** A batch whose only number is one of the cluster. */
export const pods = (at: number, value: number, over: Partial<SampleSet> = {}): HistoryRecord => ({
  kind: 'samples',
  samples: aSet(at, [aGroup('cluster', { pods_total: { '': value } })], over),
})

export const lost = (from: number, to: number, over: Partial<Loss> = {}, cluster = 'west'): HistoryRecord => ({
  kind: 'lost',
  cluster,
  loss: { origin: 'o', sequence: 9, lost: [[1, 2]], from, to, cause: 'dropped', count: 2, keptEveryMs: 0, ...over },
})
