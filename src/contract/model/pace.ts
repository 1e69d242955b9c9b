import { seconds } from './clock.ts'

/** A collector of the original reads so often unless it is set up otherwise. */
const ORIGINAL_INTERVAL_MS = seconds(60)

/**
 * The interval of a collector of the original, which the hub does not set: the shortest distance between its last four rounds, ms.
 * One distance alone may as well be a hole: with fewer than three rounds it is the default.
 * @param times of its rounds, ascending
 */
export function originalIntervalMs(times: readonly number[]): number {
  const last = times.slice(-4)
  if (last.length < 3) return ORIGINAL_INTERVAL_MS
  return Math.min(...last.slice(1).map((at, i) => at - (last[i] ?? at)))
}
