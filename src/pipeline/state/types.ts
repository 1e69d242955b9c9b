import type { AgentFacts, Batch, Change, ClusterName, ClusterState, ConnectionFacts, Loss, SourceId } from '#model'

/** What the log keeps and a store applies, in order. `receivedAt`/`at`: the hub's clock, ms. */
export type StateRecord =
  | { readonly kind: 'batch'; readonly batch: Batch; readonly receivedAt: number }
  /** an agent came, went, or told how it is */
  | { readonly kind: 'agent'; readonly cluster: ClusterName; readonly agent: AgentFacts; readonly at: number }
  /**
   * Nobody reads a cluster that an agent should, and why: no agent does, and the hub cannot. Without `because`: the agent is back.
   * No batch, so it hides none: it holds only where
   * `after` is the newest batch that state has, until the next one comes.
   */
  | {
      readonly kind: 'unread'
      readonly cluster: ClusterName
      readonly after: { readonly origin: string; readonly sequence: number }
      readonly because?: { readonly code: string; readonly message: string }
      readonly at: number
    }
  /** batches of an agent that will never come: declared, so that the hole has a name */
  | {
      readonly kind: 'lost'
      readonly cluster: ClusterName
      readonly loss: Loss
      readonly at: number
    }
  | {
      readonly kind: 'connection'
      readonly cluster: ClusterName
      readonly connection: ConnectionFacts
      readonly at: number
    }
  /** a MetricSource is gone: what it saw on this cluster goes */
  | { readonly kind: 'source-removed'; readonly cluster: ClusterName; readonly source: SourceId; readonly at: number }
  /** the ClusterConnection is gone: every trace of the cluster goes */
  | { readonly kind: 'removed'; readonly cluster: ClusterName; readonly at: number }

/** Whether state can be answered from, and if not, why. */
export type Availability =
  /** `silent`: the store answers, and who writes there is not heard since then, so that what is read may be old */
  | { readonly state: 'available'; readonly silent?: { readonly since: number; readonly reason: string } }
  /** not yet loaded since the process began. `missing`: the store answers, and lacks this: a sentence for anybody, with what to do */
  | { readonly state: 'loading'; readonly missing?: string }
  /** what is read may be old: the store behind has not answered since then */
  | { readonly state: 'unavailable'; readonly since: number; readonly reason: string }

/**
 * Current state of the fleet, read from memory: no call waits. Values are immutable; a caller may keep them.
 * Written by embedded.ts, redis.ts (and followed, in other processes, by mirror.ts); all pass contract.test.ts.
 */
export interface StateReader {
  availability(): Availability
  /** rises with every change of any cluster; equal versions mean equal answers */
  version(): number
  /** every registered cluster, sorted by name */
  clusters(): readonly ClusterState[]
  /** undefined: no such cluster */
  cluster(name: string): ClusterState | undefined
  /** flat alert documents of the cluster (`alerts:<cluster>:<id>` in Redis); [] where none */
  alerts(name: string): readonly Readonly<Record<string, string>>[]
}

/** State that records of the hub's log are applied to. */
export interface StateStore extends StateReader, AsyncDisposable {
  /**
   * Applies records in order, each wholly or not at all.
   * @param position of the last record in the hub's log: kept in the same step, so that a restart replays from there
   * @param onApplied is told the changes in the very turn in which they can be read; it must not wait nor throw
   * @returns the changes in the order they apply; none for a batch whose sequence is not newer than ours
   * @throws StoreUnavailableError when nothing was written; the records may be offered again
   */
  apply(
    records: readonly StateRecord[],
    position: number,
    signal?: AbortSignal,
    onApplied?: (changes: readonly Change[]) => void,
  ): Promise<Change[]>
  /** the position given with the last apply that is safe in the store; -1 before the first */
  position(): number
  /** sequence of the cluster's last applied batch; 0 before the first */
  sequence(cluster: ClusterName): number
  /** What the store holds is no less than what is known: the hub's log is applied, and clusters were looked at. Absent where nobody waits for that. */
  begin?(): void
}
