import type { KubeClient, Resource } from '#kube'
import type { RowsFacts, SnapshotOf, SnapshotType, SourceId, Table } from '#model'

/**
 * What is read of a cluster: all objects of a resource, or one thing alone. Collectors that name the very same read are fed by
 * one call; the member's ClusterRole is generated from it.
 */
export interface Read<T = unknown> {
  /** absent: what everybody may read, such as the version of the server */
  readonly resource?: Resource<T>
  /** what this cluster calls the resource; undefined: it does not serve it. Default: `resource` */
  readonly servedAs?: (kube: KubeClient, signal: AbortSignal) => Promise<Resource<T> | undefined>
  /** What the member must allow. With `watch` what changes after it was listed is followed, where it is read by itself. */
  readonly verbs: readonly ('get' | 'list' | 'watch')[]
  /** instead of a list; undefined: it is not there */
  readonly one?: (kube: KubeClient, signal: AbortSignal) => Promise<T | undefined>
  readonly labelSelector?: string
  /** default 500 */
  readonly pageSize?: number
  /** Asks first whether the cluster serves it: clusters without it are as good as others. */
  readonly isOptional?: boolean
  /** of objects in namespaces; default: one list of all, or nothing */
  readonly namespaces?: NamespaceScope
  /** further tries of one call that fails in passing; default 0 */
  readonly attempts?: number
  /** its trouble is no sign of trouble of the whole cluster */
  readonly isIsolated?: boolean
}

/** Which namespaces a read is about. Where the list over all is refused, those of them are listed that may be. */
export interface NamespaceScope {
  /** named without wildcards: each is a list of its own; undefined: patterns, or all */
  readonly exact: readonly string[] | undefined
  readonly isAll: boolean
  readonly wants: (name: string) => boolean
  /** lists at once */
  readonly parallelism: number
}

/** How a read goes. */
export type ReadEvent<T = unknown> =
  /** It begins, or begins anew: whatever it gave before is void. With a namespace: of that namespace. */
  | { readonly type: 'reset'; readonly namespace?: string }
  /**
   * An object came, changed or went. `before` is the very value that was given last, so that a sum needs to keep none; a watch that
   * keeps no objects gives what has the same name, for folds that go by names.
   */
  | { readonly type: 'changed'; readonly before: T | undefined; readonly after: T | undefined }
  /** the cluster does not serve it */
  | { readonly type: 'absent' }
  /** With a namespace: that one could not be read, and what it gave is void. */
  | { readonly type: 'failed'; readonly error: unknown; readonly namespace?: string }

/** What we may not read (403): why. */
export interface Refused {
  readonly refused: unknown
}

/** What was read of each type, or that it may not be read while others of the same collector were; and rows. */
export type Collected = { readonly [T in SnapshotType]?: readonly SnapshotOf<T>[] | Refused } & {
  readonly rows?: { readonly rows: Table } & RowsFacts
}

/** The kind of row a collector makes. */
export interface CollectedRows {
  readonly id: SourceId
  readonly hash: string
  /** makes them of the namespaces that may be read, where a list of the whole cluster is refused */
  readonly ifRefused?: OwnCollector
}

/**
 * What a collector makes of its reads, event by event. Lists that are polled and watches feed it alike: a poll is a `reset` and
 * what comes, a watch goes on from there.
 */
export interface Fold {
  /** @returns false where it wants no more of this read. @throws what keeps the collector from telling anything */
  take(read: Read, event: ReadEvent): boolean
  /** As of all that was taken. @param now ms since the Unix epoch, for what has no time of its own */
  parts(now: number): Collected | { readonly absent: string }
  /** rows so far, of one that makes rows */
  readonly size?: number
}

/** What a fold knows besides the objects it takes. */
export interface FoldContext {
  /** address of the cluster's API, as it is asked */
  readonly endpoint: string
  /** when the collection began, ms since the Unix epoch */
  readonly now: number
  /** Told of each quantity that could not be read. */
  readonly onMalformed: (text: string) => void
}

/** Intervals in force for a cluster, ms. */
export interface Times {
  readonly intervalMs: number
  /** of one request */
  readonly timeoutMs: number
  readonly operatorScanIntervalMs: number
}

/** Of a collector that is read by itself, ms. */
export interface OwnTimes {
  readonly intervalMs: number
  /** of one collection */
  readonly timeoutMs: number
}

/** From objects of a cluster to snapshots or rows. What it could not read becomes a part that says why. */
export interface Collector {
  readonly name: string
  /** the snapshot types it fills; each becomes one part of the batch */
  readonly types: readonly SnapshotType[]
  /** the rows it makes besides; its name is their id */
  readonly rows?: CollectedRows
  readonly reads: readonly Read[]
  /** the round fails without the first of its types */
  readonly critical: boolean
  /** time between two reads, to the nearest round; absent: every round */
  readonly everyMs?: (times: Times) => number
  open(context: FoldContext): Fold
}

/** A collector of rows that is read by itself, at times of its own and not with the rounds. */
export interface OwnCollector extends Collector {
  readonly rows: CollectedRows
  readonly own: OwnTimes
}
