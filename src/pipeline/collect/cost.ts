import type { Clock } from '#model'

/** What came of a piece of work, and how long it kept the processor, ms. */
export interface Costed<T> {
  readonly result: T
  readonly costMs: number
}

/**
 * Does a piece of work that waits for nothing. Its cost is the time it had the processor: on a machine that others keep busy more time
 * passes than that, and whoever pauses for so much longer is late for no reason.
 */
export function costOf<T>(clock: Clock, work: () => T): Costed<T> {
  const cpu = process.cpuUsage()
  const begun = clock.now()
  const result = work()
  const passedMs = clock.now() - begun
  const { user, system } = process.cpuUsage(cpu)
  return { result, costMs: Math.max(0, Math.min(passedMs, (user + system) / 1000)) }
}
