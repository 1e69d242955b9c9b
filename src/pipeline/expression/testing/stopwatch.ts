import { measuredSlowness } from '../../../platform/runtime/testing/slowness.ts'

/**
 * How long the work takes, ms: the least of some tries, and where a try was long, the processor's time in place of the clock's. What is
 * not short is told as on the machine on which the bars were set: machines pause, are slow for a while, and other processes run;
 * what is slow by itself is slow every time.
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
  return least > enoughMs ? least / slownessOfNow() : least
}

/** of this moment: measuring takes longer than what is measured by it */
const freshMs = 2_000
let measured = { at: Number.NEGATIVE_INFINITY, slowness: 1 }

function slownessOfNow(): number {
  if (performance.now() - measured.at > freshMs) {
    const slowness = measuredSlowness(2)
    measured = { at: performance.now(), slowness }
  }
  return measured.slowness
}
