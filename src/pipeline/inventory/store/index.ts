/** The rows of targets, in memory: compact, in canonical order, with what changed since any moment. */
export type { Departure } from './departures.ts'
export { DirtySet } from './dirty-set.ts'
export { compareKeys, hashOf, type PackedRow, packedJson, rowKeyOf, unpackRow } from './packed-row.ts'
export { RowStore, targetText } from './row-store.ts'
