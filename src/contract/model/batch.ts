import type { Source } from './freshness.ts'
import type { ClusterName } from './names.ts'
import type { RowsFacts, RowsPart, SourceId } from './rows.ts'
import type { SnapshotOf, SnapshotType } from './snapshots.ts'
import type { Table } from './table.ts'

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

/** `origin` of collectors of the original: the hub numbers what they send, in the order in which it comes. */
export const ORIGINAL_ORIGIN = 'original'

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
  readonly tables?: readonly RowsPart[]
  /** how many deployments the cluster has, from a collector that counts them and names none; absent: it says nothing */
  readonly deploymentCount?: number
  /**
   * A step between two rounds: what it names is as new as it is, what it does not name is as it was. It is no heartbeat, and says
   * nothing of the cluster's health unless nodes moved. Such a batch has no `failure`.
   */
  readonly partial?: boolean
  /** Set when the round as a whole failed (no connection, no credentials): why, for people. */
  readonly failure?: { readonly code: string; readonly message: string }
}

/** All items of each type as of one batch: what `changed` parts of the next are a difference to. */
export type BatchView = { readonly [T in SnapshotType]?: ReadonlyMap<string, SnapshotOf<T>> } & {
  readonly tables?: ReadonlyMap<SourceId, Table>
  /** what the last complete collection of each said besides, so that it is told once */
  readonly tableFacts?: ReadonlyMap<SourceId, RowsFacts & { readonly hash: string }>
}
