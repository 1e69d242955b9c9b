import type { KubeClient, Resource } from '#kube'
import type { SnapshotOf, SnapshotType } from '#model'

/** What a collector reads; the member's ClusterRole is generated from these. */
export type Reads = Pick<Resource, 'group' | 'version' | 'plural'>

/** What we may not read (403): why. */
export interface Refused {
  readonly refused: unknown
}

/** What was read of each type, or that it may not be read while others of the same collector were. */
export type Collected = { readonly [T in SnapshotType]?: readonly SnapshotOf<T>[] | Refused }

export interface CollectContext {
  readonly kube: KubeClient
  /** ms since the Unix epoch, for what has no time of its own */
  readonly now: number
  /** Told of each quantity that could not be read. */
  readonly onMalformed?: (text: string) => void
}

/** A function from a cluster to snapshots. Throws KubeError; the round turns it into a part that says why. */
export interface Collector {
  readonly name: string
  /** the snapshot types it fills; each becomes one part of the batch */
  readonly types: readonly SnapshotType[]
  readonly reads: readonly Reads[]
  /** the round fails without the first of its types */
  readonly critical: boolean
  /** 0: every round; else at least this long between two reads, ms */
  readonly everyMs: number
  collect(context: CollectContext, signal: AbortSignal): Promise<Collected | { readonly absent: string }>
}
