const QUANTITY = /^([+-]?(?:\d+\.?\d*|\.\d+))(?:([numk]|[MGTPE]i?|Ki)|[eE]([+-]?\d+))?$/
const SCALE: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

/**
 * Reads a Kubernetes quantity in its base unit: cores for cpu, bytes for memory and storage.
 * @returns undefined where the text is no quantity; 0 is a real amount and must not mean "unknown".
 * @see Kubernetes API reference, "Quantity": m is milli and k is 1000, whatever the resource.
 */
export function parseQuantity(text: string): number | undefined {
  const match = QUANTITY.exec(text.trim())
  if (!match) return undefined
  const [, digits, suffix = '', exponent = '0'] = match
  const amount = Number(`${digits}e${exponent}`) * (SCALE[suffix] ?? Number.NaN)
  return Number.isFinite(amount) ? amount : undefined
}

const POWERS_OF_1024 = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']
const POWERS_OF_1000: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
}
/** No amount of a cluster is written with more; a text such as `1e99999` must not cost what it says. */
const MAX_EXPONENT = 40

/** A quantity of bytes, rounded away from zero to a whole byte as Kubernetes does. @returns undefined where the text is no quantity */
export const parseBytes = (text: string): number | undefined => parseRounded(text, 0)

/** A quantity of cpu in whole millicores, as `parseBytes`. */
export const parseMillicores = (text: string): number | undefined => parseRounded(text, 3)

/** What the text says times a power of ten, rounded away from zero, without the errors of floating point. */
function parseRounded(text: string, times: number): number | undefined {
  const match = QUANTITY.exec(text.trim())
  if (!match) return undefined
  const [, written = '', suffix = '', exponent = '0'] = match
  const [whole = '', fraction = ''] = written.replace(/^[+-]/, '').split('.')
  const binary = suffix === '' ? 0 : POWERS_OF_1024.indexOf(suffix)
  const power = Number(exponent) + (binary > 0 ? 0 : (POWERS_OF_1000[suffix] ?? 0)) + times - fraction.length
  if (Math.abs(power) > MAX_EXPONENT) return undefined
  const digits = BigInt(`${whole}${fraction}`) * 1024n ** BigInt(Math.max(binary, 0))
  const divisor = 10n ** BigInt(Math.max(-power, 0))
  const amount = Number((digits * 10n ** BigInt(Math.max(power, 0)) + divisor - 1n) / divisor)
  return written.startsWith('-') ? 0 - amount : amount
}

/** Cores as Kubernetes writes them in canonical form: `4`, `3920m`; to the nanocore. */
export function canonicalCores(cores: number): string {
  let amount = BigInt(Math.round(cores * 1e9))
  if (amount === 0n) return '0'
  for (const suffix of ['n', 'u', 'm', '', 'k', 'M']) {
    if (amount % 1000n !== 0n) return `${amount}${suffix}`
    amount /= 1000n
  }
  return `${amount}G`
}

/** Bytes in canonical form, in powers of 1024 as nodes write them: `32929636Ki`; what is no multiple of 1024 in plain digits. */
export function canonicalBytes(bytes: number): string {
  let amount = Math.ceil(bytes)
  let at = 0
  while (amount !== 0 && amount % 1024 === 0 && at < POWERS_OF_1024.length - 1) {
    amount /= 1024
    at++
  }
  return `${amount}${POWERS_OF_1024[at]}`
}
