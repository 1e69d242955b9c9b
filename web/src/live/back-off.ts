/** Full jitter under a doubling ceiling; at least a quarter of it, so that a retry never comes at once. */
export function backOffMs(
  attempt: number,
  firstMs: number,
  mostMs: number,
  random: () => number = Math.random,
): number {
  const ceiling = Math.min(mostMs, firstMs * 2 ** Math.min(attempt, 20))
  return ceiling * (0.25 + 0.75 * random())
}
