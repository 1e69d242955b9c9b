/**
 * The one entry for everything the hub learns of clusters: batches of pull and push, losses, agents, connections.
 *
 *   streams of agents ─┐
 *   rounds of the hub ─┴─► accept ─► check ─► ledger: new? for whom? ─► hub's log, synced ─► ack
 *                                                                         ├─► state ─► events
 *                                                                         ├─► history
 *                                                                         └─► every other consumer (LogSink)
 *
 * Acknowledged means: on disk, and applied sooner or later, whatever crashes. A store may be down for a while; acks go on
 * until the log is full. What was received before is acknowledged and dropped, in whatever order it comes; batches of
 * clusters nobody declared are refused. See docs/spec/hub-log.md.
 */
export { type Divided, type DivisionOptions, divideLogs, type FormerLog } from './division.ts'
export { BaseMismatchError, ClusterNotConnectedError, IngestBusyError, InvalidBatchError } from './errors.ts'
export { type Accepted, Ingester, type IngesterOptions, type Offer } from './ingester.ts'
export type { HubTrust, JoinAsked, JoinDesk, JoinStep } from './line/join-desk.ts'
export type { StreamLimits } from './line/limits.ts'
export type { PeerCertificate, Presented } from './line/presented.ts'
export type { LogSink } from './log-consumer.ts'
export type { LogEntry } from './log-record.ts'
export { RelayDirectoryError } from './relay/errors.ts'
export { ServerTlsError } from './stream/errors.ts'
export { AgentServer, type AgentServerOptions } from './stream/server.ts'
export type { Agents, Peer, PeerVerifier, PlanSource, Verdict } from './stream/types.ts'
