/**
 * Container registries, probed: whether one answers as a registry does, how fast, what it is and what it holds; and what is
 * known of all of them, with their measurements of 24 hours.
 *
 *   RegistryTarget → probeRegistry → ProbeResult → RegistryStore (memory or Redis) → RegistryReader → api
 *
 * A registry is somebody else's server: whatever it sends is bounded in time and size, it cannot make us ask places on
 * this machine or in private networks, and credentials go to itself and to the token service it names, nowhere else.
 */
export { MAX_BACKOFF_INTERVALS, staleAt } from './board.ts'
export { MemoryRegistries, type MemoryRegistriesOptions } from './memory-registries.ts'
export { probeRegistry } from './probe.ts'
export { RedisRegistries, type RedisRegistriesOptions } from './redis-registries.ts'
export { type SeenRegistry, seenRegistry } from './seen.ts'
export type * from './types.ts'
