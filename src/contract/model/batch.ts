import type { CustomFacts, CustomPart, SourceId } from './custom.ts'
import type { ClusterName } from './names.ts'
import type { SnapshotOf, SnapshotType } from './snapshots.ts'
import type { Table } from './table.ts'

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

/**
 * What one collector says of one type of snapshot. `complete` replaces all items of the type; `changed` is a complete read
 * told as a difference to the batch named by `base` of its batch: what it does not name is as it was, and as fresh as this.
 * The others carry no items and replace none.
 */
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
        readonly outcome: 'changed'
        readonly put: readonly SnapshotOf<K>[]
        readonly removed: readonly string[]
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
 * `sequence` rises by at least one per batch of an origin; one that was accepted before is acknowledged and dropped.
 */
export interface Batch {
  readonly cluster: ClusterName
  /** who numbers: absent for the rounds of the hub itself, else the id of an agent's buffer */
  readonly origin?: string
  readonly sequence: number
  /** sequence of this origin that `changed` parts are a difference to: the newest accepted of the cluster, or it is refused */
  readonly base?: number
  /** from an agent's buffer, older than what is known: for history; state takes it only where it has nothing newer */
  readonly backfill?: boolean
  /** made up for a demonstration: history marks its numbers so. Only the hub itself can say it, no agent */
  readonly simulated?: true
  readonly source: Source
  /** by the collector's clock, ms since the Unix epoch */
  readonly collectedAt: number
  readonly durationMs: number
  readonly parts: readonly Part[]
  /** what MetricSources saw; each source at most once. Sources not named keep what they had */
  readonly custom?: readonly CustomPart[]
  /** how many deployments the cluster has, from a collector that counts them and names none; absent: it says nothing */
  readonly deploymentCount?: number
  /**
   * Made between two rounds, for MetricSources alone: it says nothing of the cluster's health, and is no heartbeat.
   * Such a batch has no `parts` and no `failure`.
   */
  readonly partial?: boolean
  /** Set when the round as a whole failed (no connection, no credentials): why, for people. */
  readonly failure?: { readonly code: string; readonly message: string }
}

/** All items of each type as of one batch: what `changed` parts of the next are a difference to. */
export type BatchView = { readonly [T in SnapshotType]?: ReadonlyMap<string, SnapshotOf<T>> } & {
  readonly custom?: ReadonlyMap<SourceId, Table>
  /** what the last complete collection of each said besides, so that it is told once */
  readonly customFacts?: ReadonlyMap<SourceId, CustomFacts & { readonly hash: string }>
}
