/**
 * When the holder of a certificate asks for the next one, ms since the Unix epoch: at a random point between a third and a quarter of its life
 * left, so that members who joined together do not come together.
 * @param random from 0 to 1
 */
export function renewalTime(
  { notBeforeMs, notAfterMs }: { readonly notBeforeMs: number; readonly notAfterMs: number },
  random: number,
): number {
  const left = 0.33 - 0.08 * random
  return Math.round(notAfterMs - left * (notAfterMs - notBeforeMs))
}
