/**
 * Values of a custom item as the texts that field filters compare. Plain: numbers in decimal without an exponent. Go: as the
 * original printed what it had read from JSON, where every number is a float.
 */
export const printPlain = (value: unknown): string => print(value, plainNumber)
export const printGo = (value: unknown): string => print(value, goNumber)

function print(value: unknown, number: (value: number) => string): string {
  if (value === undefined || value === null) return ''
  if (typeof value === 'number') return number(value)
  if (typeof value !== 'object') return String(value)
  // Inside of a list or map, Go prints what is absent in its own way.
  const inner = (item: unknown) => (item === undefined || item === null ? '<nil>' : print(item, number))
  if (Array.isArray(value)) return `[${value.map(inner).join(' ')}]`
  const pairs = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `map[${pairs.map(([key, item]) => `${key}:${inner(item)}`).join(' ')}]`
}

const EXPONENT = /^(-?)(\d+)(?:\.(\d+))?e([+-]\d+)$/

function plainNumber(value: number): string {
  const text = String(value)
  const match = EXPONENT.exec(text)
  if (!match) return text
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = match
  const digits = whole + fraction
  const point = whole.length + Number(exponent)
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`
  if (point >= digits.length) return sign + digits.padEnd(point, '0')
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`
}

/** %v of a float64: an exponent from 1e+21 on would be %#v; here it begins at a million and below 1e-4. */
function goNumber(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
  const [mantissa = '', exponent = '0'] = value.toExponential().split('e')
  const power = Number(exponent)
  if (value === 0 || (power >= -4 && power < 6)) return Object.is(value, -0) ? '-0' : plainNumber(value)
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}
