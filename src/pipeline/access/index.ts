/**
 * Who may see what. A principal is whoever asks; the filter stands between the store and everything else, before counts,
 * cursors, searches and streams, so that nothing tells of what was hidden. Deny is the default.
 */
export { PoliciesUnavailableError } from './errors.ts'
export { type Administrators, administratorsOnly } from './filter.ts'
export { MemoryPolicies } from './policies-memory.ts'
export { RedisPolicies, type RedisPoliciesOptions } from './policies-redis.ts'
export type { AccessFilter, Principal } from './types.ts'
