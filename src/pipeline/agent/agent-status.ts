import type { SourceStatus } from '#collect'
import type { BufferStats } from './buffer.ts'
import type { CollectionHealth } from './collect-loop.ts'
import type { UplinkStatus } from './uplink.ts'

/** How the agent stands now: for its metrics, its log and its readiness. */
export interface AgentStatus {
  readonly uplink: UplinkStatus
  readonly collection: CollectionHealth
  readonly buffer: BufferStats
  /** version of the plan it works by; '' before the first */
  readonly plan: string
  /** what of the last config of an original hub could not be used */
  readonly findings: readonly string[]
  /** what is read with every round though it could be followed, and why */
  readonly polled: readonly string[]
  /** the MetricSources of the plan, as they stand here */
  readonly sources: readonly SourceStatus[]
}
