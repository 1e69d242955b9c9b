/** Work that takes less is not measured exactly: to ask for the processor's time costs as much as most of it. */
const DEAR_MS = 10

/**
 * What pieces of work of one kind cost, which wait for nothing. The cost is the time a piece had the processor: on a machine that
 * others keep busy more time passes than that, and whoever pauses for so much longer is late for no reason.
 */
export class WorkCost {
  #isDear = false

  /** @returns what came of it, and how long it kept the processor, ms; the first of dear pieces counts as no more than 10 ms */
  of<T>(work: () => T): { readonly result: T; readonly costMs: number } {
    const cpu = this.#isDear ? process.cpuUsage() : undefined
    const begun = performance.now()
    const result = work()
    const passedMs = performance.now() - begun
    const costMs = Math.min(passedMs, cpu ? spentMs(cpu) : DEAR_MS)
    this.#isDear = costMs >= DEAR_MS
    return { result, costMs }
  }
}

function spentMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}
