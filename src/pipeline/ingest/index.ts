/**
 * The one entry for everything the hub learns of clusters: batches of pull and push, connections made and removed.
 *
 *   accept ─► check ─► sequence ─► hub's log, synced ─► ack
 *                                        │
 *                                        └─► state (retried, in order) ─► events
 *
 * Acknowledged means: on disk, and applied sooner or later, whatever crashes. State may be down for a while; acks go on
 * until the log is full. Old sequences are acknowledged and dropped; batches of clusters nobody declared are refused.
 */
export { BaseMismatchError, ClusterNotConnectedError, IngestBusyError, InvalidBatchError } from './errors.ts'
export { type Accepted, Ingester, type IngesterOptions } from './ingester.ts'
export { ServerTlsError } from './stream/errors.ts'
export type { StreamLimits } from './stream/limits.ts'
export { AgentServer, type AgentServerOptions } from './stream/server.ts'
export type { Agents, Peer, PeerVerifier, PlanSource, Presented, Verdict } from './stream/types.ts'
