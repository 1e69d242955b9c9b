import type { ClusterName } from './names.ts'
import type { SnapshotOf, SnapshotType } from './snapshots.ts'

/** Who collected: the hub itself, or an agent beside the cluster. */
export type Source = 'pull' | 'push'

/** When a value was seen where it lives, when the hub had it, and how it came. Ages are computed from `observedAt`. */
export interface Freshness {
  /** by the collector's clock, ms since the Unix epoch */
  readonly observedAt: number
  /** by the hub's clock, ms since the Unix epoch */
  readonly receivedAt: number
  readonly source: Source
}

/**
 * How a read ended. Empty is `complete` with no items; the others are not empty:
 * `absent` the cluster does not serve it, `forbidden` we may not read it, `unreachable` no usable answer came.
 */
export type Outcome = 'complete' | 'absent' | 'forbidden' | 'unreachable'

/** What one collector says of one type of snapshot. A part that is not `complete` carries no items and replaces none. */
export type Part<T extends SnapshotType = SnapshotType> = {
  [K in T]:
    | {
        readonly type: K
        readonly collector: string
        readonly durationMs: number
        readonly outcome: 'complete'
        readonly items: readonly SnapshotOf<K>[]
      }
    | {
        readonly type: K
        readonly collector: string
        readonly durationMs: number
        readonly outcome: 'absent' | 'forbidden' | 'unreachable'
        readonly code: string
        readonly message: string
      }
}[T]

/**
 * The snapshots one cluster sends together. Types not named in `parts` keep what they had.
 * `sequence` rises by at least one per batch of a cluster, whoever collects; an old one is acknowledged and dropped.
 */
export interface Batch {
  readonly cluster: ClusterName
  readonly sequence: number
  readonly source: Source
  /** by the collector's clock, ms since the Unix epoch */
  readonly collectedAt: number
  readonly durationMs: number
  readonly parts: readonly Part[]
  /** Set when the round as a whole failed (no connection, no credentials): why, for people. */
  readonly failure?: { readonly code: string; readonly message: string }
}
