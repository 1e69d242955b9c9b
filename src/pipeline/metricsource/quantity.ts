/** Longer texts are no numbers: they would be work without a meaning. */
const MAX_LENGTH = 256

const WHOLE = /^[+-]?\d+$/
const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([numk]|[MGTPE]i?|Ki)|[eE]([+-]?\d+))?$/

/** Powers of ten, and of two, of the suffixes of quantities. */
const TENS = new Map(Object.entries({ n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }))
const TWOS = new Map(Object.entries({ Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 }))
const isDigit = (code: number): boolean => code >= 48 && code <= 57

/** What a quantity's text means: `integer × 2^twos × 10^tens`, and nothing is lost. */
interface Amount {
  /** sign and digits, with or without a point */
  readonly digits: string
  readonly tens: number
  readonly twos: number
  readonly suffix: string
}

/** Most quantities are a few digits and a suffix: `5Gi`. */
const SHORT = 15

function amountOf(text: string): Amount | undefined {
  if (text.length > MAX_LENGTH) return undefined
  let end = 0
  while (end < text.length && end <= SHORT && isDigit(text.charCodeAt(end))) end++
  if (end === text.length && end > 0) return { digits: text, suffix: '', tens: 0, twos: 0 }
  const rest = text.slice(end)
  const twos = end > 0 ? TWOS.get(rest) : undefined
  if (twos !== undefined) return { digits: text.slice(0, end), suffix: rest, tens: 0, twos }
  const match = QUANTITY.exec(text)
  if (!match) return undefined
  const [, digits = '', suffix = '', exponent = '0'] = match
  return { digits, suffix, tens: (TENS.get(suffix) ?? 0) + Number(exponent), twos: TWOS.get(suffix) ?? 0 }
}

/** Digits without fraction and exponent. */
export function readWhole(text: string): number | undefined {
  if (text.length > MAX_LENGTH || !WHOLE.test(text)) return undefined
  return finite(Number(text))
}

/**
 * A Kubernetes quantity in its base unit: cores, bytes, pieces. The double next to what the text says: multiplied by a power of
 * ten before it is rounded, by a power of two after, which rounds nothing.
 * @returns undefined where the text is no quantity
 * @see Kubernetes API reference, "Quantity"
 */
export function readQuantity(text: string): number | undefined {
  const amount = amountOf(text)
  return amount && nearest(amount)
}

/**
 * The same, except that text ending in m is in thousandths (500m is 500), that K is k, and that spaces around do not count. What
 * manifests written for the original expect.
 */
export function readCompatibleQuantity(text: string): number | undefined {
  const trimmed = text.trim()
  const amount = amountOf(trimmed.endsWith('K') ? `${trimmed.slice(0, -1)}k` : trimmed)
  return amount && nearest(amount.suffix === 'm' ? { ...amount, tens: 0 } : amount)
}

/** A quantity of bytes, rounded away from zero to a whole byte as Kubernetes does, on the exact amount. */
export function readBytes(text: string): number | undefined {
  const amount = amountOf(text)
  if (!amount) return undefined
  const { digits, tens, twos } = amount
  if (tens === 0 && digits.length <= 15 && !digits.includes('.')) return finite(Number(digits) * 2 ** twos)
  const [whole = '', fraction = ''] = digits.split('.')
  const power = tens - fraction.length
  // Far beyond a double, or far below one byte: the rounded number decides as well, and BigInt would only be slow.
  if (power > 400 || power < -700) {
    const near = nearest(amount)
    return near === undefined ? undefined : awayFromZero(near, isZero(digits) ? 0 : digits.startsWith('-') ? -1 : 1)
  }
  const scaled =
    BigInt(`${whole === '' || whole === '-' || whole === '+' ? `${whole}0` : whole}${fraction}`.replace('+', '')) <<
    BigInt(twos)
  if (power >= 0) return finite(Number(scaled * 10n ** BigInt(power)))
  const divisor = 10n ** BigInt(-power)
  const rest = scaled % divisor
  return finite(Number(scaled / divisor + (rest === 0n ? 0n : rest > 0n ? 1n : -1n)))
}

const isZero = (digits: string) => !/[1-9]/.test(digits)
const awayFromZero = (near: number, sign: number) => (near > 0 ? Math.ceil(near) : near < 0 ? Math.floor(near) : sign)

function nearest({ digits, tens, twos }: Amount): number | undefined {
  const decimal = Number(tens === 0 ? digits : `${digits}e${tens}`)
  return finite(twos === 0 ? decimal : decimal * 2 ** twos)
}

/** Without negative zero, which nobody means. */
function finite(number: number): number | undefined {
  return Number.isFinite(number) ? number + 0 : undefined
}

/** A number in decimal digits, never with an exponent: what it reads back as, in the fewest digits. */
export function plainDecimal(number: number): string {
  const text = String(number)
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text)
  if (!match) return text
  const [, sign = '', first = '', rest = '', exponent = '0'] = match
  const power = Number(exponent)
  const digits = first + rest
  if (power < 0) return `${sign}0.${'0'.repeat(-power - 1)}${digits}`
  return `${sign}${digits}${'0'.repeat(power - rest.length)}`
}
