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
