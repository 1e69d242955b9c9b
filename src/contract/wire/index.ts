/**
 * What goes over the stream between an agent and the hub: messages, versions, and batches in columns. Pure: bytes in, values
 * out; sockets, files and compression belong to the two ends.
 *
 *   Batch → encodeBody → (deflate) → Frame → ConnectRequest → bytes      bytes → ConnectResponse → Ack, PlanUpdate, …
 *
 * A collector of the original speaks the same envelopes with MetricsBatch; batchFromOriginal turns it into the same Batch.
 * Whatever the bytes, a decoder returns a value of its type or throws WireError, in time and memory in proportion to them.
 *
 * States, invariants and the format byte by byte: docs/spec/wire.md.
 */
export { asItIs, type BodyHead, batchFor, decodeBody, encodeBody } from './body.ts'
export {
  COLLECTOR_METHOD,
  decodeRequest,
  decodeResponse,
  encodeRequest,
  encodeResponse,
  type RequestInit,
  type ResponseInit,
} from './envelopes.ts'
export { WireError } from './errors.ts'
export type {
  Ack,
  ConfigUpdate,
  ConnectRequest,
  ConnectResponse,
  Frame,
  Goodbye,
  HealthReport,
  Hello,
  JoinRequest,
  Loss,
  MetricsBatch,
  PlanUpdate,
  RegisterRequest,
  Welcome,
} from './generated/clusterpulse/collector/v1/collector_pb.ts'
export {
  areHubAddresses,
  decodeJoinText,
  encodeJoinText,
  type JoinText,
  JoinTextError,
  MAX_HUB_ADDRESSES,
} from './join-text.ts'
export { batchFromOriginal, type OriginalHead, originalFromBatch } from './original.ts'
export { type ReadOriginal, readOriginal } from './original-nodes.ts'
export { decodePlan, encodePlan } from './plan.ts'
export {
  type Agreement,
  type Capability,
  capabilities,
  negotiate,
  type Offer,
  ownOffer,
  WIRE_VERSION,
} from './versions.ts'
export { viewOf } from './view.ts'
