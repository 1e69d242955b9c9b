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

/** A quantity of bytes, rounded up to a whole byte as Kubernetes does. */
export function parseBytes(text: string): number | undefined {
  const amount = parseQuantity(text)
  return amount === undefined ? undefined : Math.ceil(amount)
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

/**
 * A quantity of cpu in whole millicores, rounded away from zero as Kubernetes does, without the errors of floating point.
 * @returns undefined where the text is no quantity
 */
export function parseMillicores(text: string): number | undefined {
  const match = QUANTITY.exec(text.trim())
  if (!match) return undefined
  const [, written = '', suffix = '', exponent = '0'] = match
  const [whole = '', fraction = ''] = written.replace(/^[+-]/, '').split('.')
  const binary = suffix === '' ? 0 : POWERS_OF_1024.indexOf(suffix)
  const power = Number(exponent) + (binary > 0 ? 0 : (POWERS_OF_1000[suffix] ?? 0)) + 3 - fraction.length
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
