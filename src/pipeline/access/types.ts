import type { ClusterState, SnapshotOf, SnapshotType } from '#model'

/** Who asks. `method` is how we know: for the log and for "who am I". */
export interface Principal {
  readonly username: string
  readonly email: string
  readonly groups: readonly string[]
  readonly isServiceAccount: boolean
  readonly method: 'local-administrator' | 'trusted-proxy' | 'development'
}

/**
 * What a principal may see; applied between the store and everything else: before counts, cursors, aggregates, streams.
 * Equal fingerprints see exactly the same, so that one encoded body serves both.
 */
export interface AccessFilter {
  fingerprint(principal: Principal): string
  canSee(principal: Principal, cluster: ClusterState): boolean
  visible<T extends SnapshotType>(principal: Principal, cluster: ClusterState, type: T): readonly SnapshotOf<T>[]
}
