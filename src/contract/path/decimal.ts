/** Longer texts are no numbers: they would be work without a meaning. */
const MAX_LENGTH = 256
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/

/**
 * Decimal text, with or without exponent, as the number next to it. No spaces, no hexadecimal, nothing infinite, no negative zero.
 * @returns undefined where it is none
 */
export function readDecimal(text: string): number | undefined {
  if (text.length > MAX_LENGTH || !DECIMAL.test(text)) return undefined
  const number = Number(text)
  return Number.isFinite(number) ? number + 0 : undefined
}
