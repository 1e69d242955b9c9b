import { cpus, loadavg } from 'node:os'

/** What an evaluation may take on a calm machine, ms; where more wants to run than there are processors, caches are shared and it is half as much again. */
export const limitMs = (calmMs: number): number => ((loadavg()[0] ?? 0) > cpus().length ? 1.5 * calmMs : calmMs)

/**
 * How long the work takes, ms: the least of some tries, and where a try was long, the processor's time in place of the clock's.
 * Machines pause, and other processes run; what is slow by itself is slow every time.
 */
export function leastMs(work: () => void, enoughMs: number, tries = 12): number {
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < tries && least > enoughMs; i++) {
    const usage = process.cpuUsage()
    const begin = performance.now()
    work()
    const elapsed = performance.now() - begin
    const { user, system } = process.cpuUsage(usage)
    least = Math.min(least, elapsed, (user + system) / 1000)
  }
  return least
}
