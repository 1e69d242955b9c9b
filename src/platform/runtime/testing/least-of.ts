import { slowness } from './slowness.ts'

/**
 * Measures until something took less than the bound, and not more often than `times`: what a machine does besides makes things longer, and
 * none shorter. @returns the least; of a machine that is slow, what it would have been on one that is not
 */
export async function leastOf(times: number, bound: number, measure: () => Promise<number>): Promise<number> {
  const took: number[] = []
  while (took.length < times && !took.some((one) => one < bound)) took.push((await measure()) / slowness)
  return Math.min(...took)
}
