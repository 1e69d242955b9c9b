import type { AgentFacts } from './agent.ts'
import type { Freshness, Outcome, Source } from './freshness.ts'
import type { ClusterName } from './names.ts'
import type { RowsState, SourceId } from './rows.ts'
import type { SnapshotOf, SnapshotType } from './snapshots.ts'

/** Health of a cluster; `unknown` where nothing can be said of it. */
export type Health = 'healthy' | 'degraded' | 'unhealthy' | 'unknown'

/** The hub's record of how to reach a cluster, as far as readers may know it: never a credential nor its reference. */
export interface ConnectionFacts {
  readonly displayName: string
  readonly endpoint: string
  readonly labels: Readonly<Record<string, string>>
  readonly mode: Source
  readonly intervalMs: number
  readonly timeoutMs: number
  /** operators are read that often, where that is less often than `intervalMs`; absent: the default, 300 s */
  readonly operatorScanIntervalMs?: number
  /** The certificate of the cluster's API is not verified, by explicit choice. */
  readonly insecureSkipTlsVerify: boolean
  /** what the hub reads with every round though it could be followed, and why, for people; absent: nothing. An agent says it itself */
  readonly polled?: readonly string[]
  /** The secret's name and namespace as written in the object: for the documented Redis key only, never shown. */
  readonly credentialsRef: { readonly name: string; readonly namespace: string }
  /** which process of the hub has the log and the state of this cluster (`ownerName`); absent: there is one alone */
  readonly owner?: string
}

/** One reason for a health other than healthy, for people and for programs. */
export interface HealthReason {
  readonly code: string
  readonly message: string
}

/** Health of a cluster, why, and when it was last checked and read. */
export interface ClusterStatus {
  readonly health: Health
  readonly message: string
  readonly reasons: readonly HealthReason[]
  /** time of the last round, whatever its end; ms; null before the first */
  readonly checkedAt: number | null
  /** time of the last round that read the nodes; ms */
  readonly lastSyncAt: number | null
  /** what the last round said, while `health` says that nobody reads the cluster */
  readonly before?: Omit<ClusterStatus, 'before'>
}

/** The end of one round, for the heartbeat strip. */
export interface Heartbeat {
  readonly at: number
  readonly health: Health
  readonly durationMs: number
  /** set on an unhealthy end of a round that read the cluster: it was not the cluster that did not answer */
  readonly answered?: true
}

/** What the hub knows of one type of snapshot of one cluster. `items` are those of the last complete read. */
export interface PartState<T extends SnapshotType> {
  readonly outcome: Outcome
  /** Why the last read was not complete; empty otherwise. */
  readonly code: string
  readonly message: string
  /** when the last read was tried, by the collector's clock */
  readonly attemptedAt: number
  /** of the items; null when no read was ever complete */
  readonly freshness: Freshness | null
  readonly items: ReadonlyMap<string, SnapshotOf<T>>
}

/** Whether its items are what the last look at it saw; else they are of the past, or nobody ever saw any. */
export const isKnown = (part: Pick<PartState<SnapshotType>, 'outcome' | 'freshness'> | undefined): boolean =>
  part?.outcome === 'complete' && part.freshness !== null

/** Something worth remembering about a cluster, newest first in lists; the documented event of `events:<cluster>`. */
export interface FleetEvent {
  readonly type: string
  readonly cluster: string
  /** ms since the Unix epoch */
  readonly at: number
  readonly data: Readonly<Record<string, unknown>> | null
}

/** Everything the hub knows of one cluster, now. Immutable: a new value per applied record. */
export interface ClusterState {
  readonly name: ClusterName
  readonly connection: ConnectionFacts | null
  readonly status: ClusterStatus
  /** of the last applied batch; 0 before the first. Compared within one `origin` only. */
  readonly sequence: number
  /** who numbered it: '' for the hub itself, else the id of an agent's buffer */
  readonly origin: string
  readonly source: Source
  /** the agent beside the cluster; null where none ever was */
  readonly agent: AgentFacts | null
  readonly parts: { readonly [T in SnapshotType]?: PartState<T> }
  /** by MetricSource, in no order */
  readonly tables: ReadonlyMap<SourceId, RowsState>
  /** deployments of the whole cluster as last counted, where they were not read one by one since; absent: they were, or nobody knows */
  readonly deploymentCount?: number
  /** oldest first, at most 60 */
  readonly heartbeats: readonly Heartbeat[]
  /** newest first, at most 100 */
  readonly events: readonly FleetEvent[]
  /** rises with every applied record of this cluster; equal versions mean equal values */
  readonly version: number
}

/** One difference that a record made to state. Unchanged snapshots make none. */
export type Change =
  | {
      readonly kind: 'snapshot'
      readonly cluster: ClusterName
      readonly type: SnapshotType
      readonly name: string
      readonly op: 'put' | 'remove'
      readonly at: number
    }
  /** rows, facts or freshness of one MetricSource on the cluster; `rows` where rows came, went or changed */
  | {
      readonly kind: 'custom'
      readonly cluster: ClusterName
      readonly source: SourceId
      readonly rows: boolean
      readonly op: 'put' | 'remove'
      readonly at: number
    }
  /** status, connection, freshness or part outcomes of the cluster moved: at least one per applied record */
  | { readonly kind: 'cluster'; readonly cluster: ClusterName; readonly op: 'put' | 'remove'; readonly at: number }
  | { readonly kind: 'event'; readonly cluster: ClusterName; readonly event: FleetEvent; readonly at: number }

/**
 * Changes that are taken as one, and the name of the state that they led to. A name means the same state in every process of the hub
 * that says it; of what names look like nobody may think anything.
 */
export interface ChangeStep {
  readonly id: string
  readonly changes: readonly Change[]
  /** it led to what was read when the process began, or to something before: kept for those who come back, and no news */
  readonly isPast?: true
}
