/**
 * What is true now: the newest snapshots of every cluster, read from memory without waiting.
 *
 *   record → applyRecord (pure: sequence, parts, health, events) → memory → written behind to a journal (embedded)
 *                                                                        → written through to Redis  (redis)
 *   Redis → mirror: the same reads in another process
 *
 * Several owners write one Redis side by side, each the clusters it owns; a mirror has all of them (docs/spec/redis.md).
 * Every store keeps the position in the hub's log in the same step as the state, so that a restart replays from there.
 * A read that failed replaces nothing; what it could not read is named. Health comes with its reasons.
 */
export { clusterTotals } from '#model'
export { type EmbeddedStateOptions, EmbeddedStateStore } from './embedded.ts'
export { applyRecord, EVENTS_KEPT, HEARTBEATS_KEPT } from './fleet.ts'
export { evaluateHealth, type HealthInput, type HealthVerdict } from './health.ts'
export { RedisMirror, type RedisMirrorOptions } from './mirror.ts'
export { openState, type StateConfig } from './open.ts'
export { OriginalState, type OriginalStateOptions } from './original.ts'
export { beginDivision, forgetPositions, positionsIn } from './redis-division.ts'
export { checkRedisFormat, claimRedisFormat } from './redis-format.ts'
export { type NodeSample, type NodeSeries, RedisNodeSeries } from './redis-series.ts'
export { type RedisStateOptions, RedisStateStore } from './redis-store.ts'
export { leaveTurn, takeTurn } from './redis-turn.ts'
export type * from './types.ts'
