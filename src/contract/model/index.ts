/**
 * The vocabulary of the fleet: names, quantities, snapshots, batches, what a store keeps of them, changes, errors, time.
 * Pure: no input, no output, no Node built-in. Everything else speaks in these words.
 *
 *   collector → Snapshot → Part → Batch → (accept) → ClusterState → Change → event
 *
 * Units: cores, bytes, ratios 0…1, milliseconds since the Unix epoch. `null` is "not known", 0 is a measurement.
 */
export * from './agent.ts'
export * from './batch.ts'
export type { Chunk, Keys, Labels } from './chunk.ts'
export * from './clock.ts'
export type { Column } from './column.ts'
export * from './custom.ts'
export * from './documents.ts'
export * from './errors.ts'
export * from './fleet.ts'
export * from './format.ts'
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
export * from './samples.ts'
export * from './seen.ts'
export * from './snapshots.ts'
export * from './table.ts'
export * from './totals.ts'
export * from './units.ts'
