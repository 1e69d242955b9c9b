/*
 * How long to rest after what is behind was written. A write takes CPU from those who wait to be acknowledged, so it has at
 * most a third of the time; what changed is nevertheless seen within SHORTEST while little happens, and not much later than
 * LONGEST and one more write while very much does.
 */
const SHORTEST_MS = 100
const LONGEST_MS = 2_000
const SHARE = 2

/** @param took the last write, ms */
export const restAfterMs = (took: number): number => Math.min(LONGEST_MS, Math.max(SHORTEST_MS, SHARE * took))
