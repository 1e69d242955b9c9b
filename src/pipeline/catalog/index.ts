/**
 * Which MetricSources are in force. Written by the reconciler of the leading process, read from memory by everything that
 * collects or shows: no question waits. One process keeps them in memory; several share them in Redis, in the documented
 * layout, and each follows it within moments. A definition that does not change stays the very same object.
 *
 *   MetricSource → compile → definition → (memory | Redis) → CompiledSource → collectors, plans, API
 */
export { type DeclaredType, type DeclaredTypes, declaredTypes } from './declared-types.ts'
export { MemoryCatalog } from './memory.ts'
export { RedisCatalog, type RedisCatalogOptions } from './redis.ts'
export type { CatalogWriter, SourceCatalog } from './types.ts'
