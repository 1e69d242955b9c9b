const POWERS = Array.from({ length: 23 }, (_, exponent) => Number(`1e${exponent}`))
const SURE = 2 ** -50
const LARGEST_SURE = 2 ** 50

/**
 * A number rounded half away from zero at a place of its decimal digits: those of the shortest decimal text that means this number,
 * so 1.005 is halfway between 1 and 1.01 although its binary neighbour is a little less.
 * @param decimals whole; negative: places before the point
 * @returns NaN where one of both is NaN, Infinity where the result is beyond all numbers
 */
export function roundDecimal(x: number, decimals: number): number {
  const power = decimals < 0 ? POWERS[-decimals] : POWERS[decimals]
  if (power !== undefined) {
    // The product is off by half a unit in the last place, the decimal text by another half. Whoever is farther from the
    // middle than that is on its right side; and a whole number over a power of ten, both exact, is the nearest number.
    const scaled = Math.abs(decimals < 0 ? x / power : x * power)
    if (scaled < LARGEST_SURE) {
      const down = Math.floor(scaled)
      const beyond = scaled - down - 0.5
      if (Math.abs(beyond) > scaled * SURE) {
        const whole = beyond > 0 ? down + 1 : down
        const result = decimals < 0 ? whole * power : whole / power
        return x < 0 ? -result : result
      }
    }
  }
  return roundDigits(x, decimals)
}

function roundDigits(x: number, decimals: number): number {
  if (Number.isNaN(decimals)) return Number.NaN
  if (!Number.isFinite(x) || x === 0) return x
  const { negative, digits, exponent } = digitsOf(x)
  // digits · 10^exponent, where digits is a whole number: how many of them stay
  const kept = digits.length + exponent + decimals
  if (kept >= digits.length) return x
  if (kept < 0) return 0
  const up = digits.charCodeAt(kept) >= 53 ? 1n : 0n
  const whole = BigInt(digits.slice(0, kept) || '0') + up
  return Number(`${negative ? '-' : ''}${whole}e${-decimals}`)
}

/** The shortest decimal digits that mean this number: `digits · 10^exponent`. */
function digitsOf(x: number): { readonly negative: boolean; readonly digits: string; readonly exponent: number } {
  const [mantissa = '', power = '0'] = Math.abs(x).toExponential().split('e')
  const digits = mantissa.replace('.', '')
  return { negative: x < 0, digits, exponent: Number(power) - (digits.length - 1) }
}

/** From this magnitude on, and below its reciprocal, numbers are written with an exponent. */
const PLAIN_BELOW = 1e21
const PLAIN_FROM = 1e-21

/**
 * The shortest decimal text that means this number; without an exponent from 10^-21 to below 10^21.
 * '' where it is not finite.
 */
export function decimalText(x: number): string {
  if (!Number.isFinite(x)) return ''
  const size = Math.abs(x)
  if (size >= 1e-6 || size < PLAIN_FROM) return String(x)
  const { negative, digits, exponent } = digitsOf(x)
  return `${negative ? '-' : ''}0.${'0'.repeat(-exponent - digits.length)}${digits}`
}

const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/
/** Longer texts are no numbers: nobody writes them, and reading them costs. */
export const LONGEST_DECIMAL = 1024

/**
 * The number a decimal text means: digits with at most one point, a sign, an exponent. Nothing around it, no units, no quantities.
 * @returns NaN where it is none, or beyond all numbers
 */
export function parseDecimal(text: string): number {
  if (text.length > LONGEST_DECIMAL || !DECIMAL.test(text)) return Number.NaN
  const value = Number(text)
  return Number.isFinite(value) ? value : Number.NaN
}

const UNITS = ['B', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi']

/** Divided by 1024 while it is 1024 or more, up to Pi; two decimals, halves to the even digit. '' where it is not finite. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes)) return ''
  let size = Math.abs(bytes)
  let unit = 0
  for (; size >= 1024 && unit < UNITS.length - 1; unit++) size /= 1024
  const text = twoDecimals(size)
  return `${bytes < 0 && text !== '0.00' ? '-' : ''}${text}${UNITS[unit]}`
}

function twoDecimals(size: number): string {
  if (size >= PLAIN_BELOW) return `${BigInt(size)}.00`
  const eighths = size * 8
  // Only odd eighths lie exactly between two hundredths: 1.125 becomes 1.12, 1.375 becomes 1.38.
  if (eighths % 2 !== 1) return size.toFixed(2)
  const below = Math.floor(size * 100)
  return ((below % 2 === 0 ? below : below + 1) / 100).toFixed(2)
}
