/*
 * How long to rest after what is behind was written. A write takes CPU from those who wait to be acknowledged, so it has at
 * most a third of the time, and what came meanwhile is gathered: little is written within milliseconds, very much not much later
 * than LONGEST and one more write. Documents are many keys, and read by people and programs that ask: they take their time.
 */
const DOCUMENTS_SHORTEST_MS = 100
const LONGEST_MS = 2_000
const SHARE = 2

/** So long documents of a cluster may stay behind, of which nothing happened but that parts and rows moved, ms. */
export const DOCUMENTS_EVERY_MS = 5_000

/** @param took the last write, ms */
export const restAfterMs = (took: number): number => Math.min(LONGEST_MS, SHARE * took)

/** The same before documents are written again. */
export const restAfterDocumentsMs = (took: number): number => Math.max(DOCUMENTS_SHORTEST_MS, restAfterMs(took))
