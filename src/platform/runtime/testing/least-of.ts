/**
 * Measures until something took less than the bound, and not more often than `times`: what a machine does besides makes things longer, and
 * none shorter. @returns the least
 */
export async function leastOf(times: number, bound: number, measure: () => Promise<number>): Promise<number> {
  const took: number[] = []
  while (took.length < times && !took.some((one) => one < bound)) took.push(await measure())
  return Math.min(...took)
}
