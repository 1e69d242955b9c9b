import { seconds } from '#model'
import type { Collector, Times } from './types.ts'

/*
 * When what is due. Rounds follow each other, and read of each collector what is due at the nearest round. Collections by
 * themselves stand on a grid of their interval, which begins at a random place so that those of a fleet do not come all at once.
 * One that takes long leaves out the places it covers; one that failed comes again after half the interval, at least 30 s, and the
 * next good one is back on the grid.
 */

const MIN_AFTER_FAILURE_MS = seconds(30)
const MAX_JITTER_MS = seconds(2)

/** The first place of a grid after this moment. */
export const nextOnGrid = (anchor: number, intervalMs: number, now: number): number =>
  anchor + (Math.floor((now - anchor) / intervalMs) + 1) * intervalMs

/**
 * Whether a round reads this collector.
 * @param readAt when it last got through, by the clock of `at`; undefined: never
 */
export function isDue({ everyMs }: Collector, readAt: number | undefined, times: Times, at: number): boolean {
  // A clock that was set back makes everything due.
  return readAt === undefined || !everyMs || at < readAt || at - readAt >= everyMs(times) - times.intervalMs / 2
}

export interface Ended {
  /** a place of the grid, ms since the Unix epoch as all times here */
  readonly anchor: number
  readonly intervalMs: number
  readonly startedAt: number
  readonly endedAt: number
  readonly failed: boolean
}

/** When the next collection is due. Never sooner than the end of the last, nor later than an interval and a half after it. */
export function nextDue({ anchor, intervalMs, startedAt, endedAt, failed }: Ended): number {
  if (failed) return endedAt + Math.min(intervalMs, Math.max(MIN_AFTER_FAILURE_MS, intervalMs / 2))
  // After a retry, or a clock that was set, the next place may be near: it is left out, as we have just read.
  return nextOnGrid(anchor, intervalMs, Math.max(endedAt, startedAt + intervalMs / 2))
}

/** What a collection is late by on purpose: not added up. */
export const jitterMs = (intervalMs: number, random: () => number): number =>
  random() * Math.min(intervalMs / 20, MAX_JITTER_MS)
