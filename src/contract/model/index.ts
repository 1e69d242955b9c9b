/**
 * The vocabulary of the fleet: names, quantities, snapshots, batches, what a store keeps of them, changes, errors, time.
 * Pure: no input, no output, no Node built-in. Everything else speaks in these words.
 *
 *   collector → Snapshot → Part → Batch → (accept) → ClusterState → Change → event
 *
 * Units: cores, bytes, ratios 0…1, milliseconds since the Unix epoch. `null` is "not known", 0 is a measurement.
 */
export * from './absence.ts'
export * from './agent.ts'
export * from './batch.ts'
export * from './cause.ts'
export { type Chunk, type Keys, type Labels, sizeOf } from './chunk.ts'
export { chunkChanges } from './chunk-changes.ts'
export * from './clock.ts'
export { Column, columnOf, columnOfOne } from './column.ts'
export * from './documents.ts'
export * from './errors.ts'
export * from './event-words.ts'
export * from './fleet.ts'
export * from './format.ts'
export * from './freshness.ts'
export { joined } from './joined.ts'
export * from './json.ts'
export * from './label-selector.ts'
export * from './metrics.ts'
export * from './names.ts'
export * from './near.ts'
export * from './owners.ts'
export * from './pace.ts'
export * from './packed.ts'
export * from './quantity.ts'
export * from './ranges.ts'
export { chunkMapped, columnAt } from './read-chunk.ts'
export { isNotReady } from './readiness.ts'
export * from './resource-lists.ts'
export * from './rows.ts'
export * from './samples.ts'
export * from './seen.ts'
export * from './snapshots.ts'
export * from './table.ts'
export { JoinedTexts, type Values } from './texts.ts'
export * from './totals.ts'
export * from './units.ts'
