import type { Outcome } from '#model'
import type { Metrics } from '#runtime'

/** Counts of the loops of one process, which share them. */
export interface LoopCounts {
  collected(source: string, outcome: Outcome, durationMs: number): void
  /** changes that were seen by a watch and told between two collections */
  followed(source: string): void
  /** rows of one cluster: how many more or less than before */
  rows(source: string, difference: number): void
}

export function loopCounts(metrics: Metrics | undefined): LoopCounts {
  const collections = metrics?.counter(
    'clusterpulse_source_collections_total',
    'Collections of MetricSources by how they ended, over all clusters.',
    ['source', 'outcome'],
  )
  const durations = metrics?.histogram(
    'clusterpulse_source_collection_duration_seconds',
    'Time one collection of one cluster took.',
    [],
    [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  )
  const followed = metrics?.counter(
    'clusterpulse_source_watch_updates_total',
    'Updates of MetricSources that were made of watched changes, between two collections.',
    ['source'],
  )
  const rows = metrics?.gauge('clusterpulse_source_rows', 'Rows of a MetricSource over the clusters read from here.', [
    'source',
  ])
  return {
    collected(source, outcome, durationMs) {
      collections?.inc({ source, outcome })
      durations?.observe(durationMs / 1000)
    },
    followed: (source) => followed?.inc({ source }),
    rows: (source, difference) => rows?.inc({ source }, difference),
  }
}
