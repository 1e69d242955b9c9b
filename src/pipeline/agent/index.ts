/**
 * The agent beside a member cluster: collects on schedule whether connected or not, keeps every batch on disk until the hub
 * has it on disk, and says aloud what it lost.
 *
 *   collect-loop, CollectorLoop → buffer (Log) → uplink → Transport (grpc.ts) → hub       acks, plan ← hub
 *
 * What is live goes before what is buffered. Facing a hub of the original it speaks the original's protocol. States and
 * invariants of the stream and of the buffer: docs/spec/agent.md; messages: docs/spec/wire.md.
 */

export { Agent, type AgentOptions } from './agent.ts'
export { agentName } from './agent-name.ts'
export type { AgentStatus } from './agent-status.ts'
export { LinkError } from './errors.ts'
export { type GrpcOptions, type GrpcTlsOptions, grpcTransport } from './grpc.ts'
export { keyId } from './join/certificate-request.ts'
export { IdentityError, type IdentityStore, type MemberIdentity } from './join/identity.ts'
export { IdentityFiles } from './join/identity-files.ts'
export { IdentitySecret } from './join/identity-secret.ts'
export { type JoinOptions, join } from './join/join.ts'
export { JoinError } from './join/join-error.ts'
export { type MemberTransport, memberTransport } from './join/member-transport.ts'
export { Membership, type MembershipOptions } from './join/membership.ts'
export type { HubTrust, Link, Transport } from './types.ts'
