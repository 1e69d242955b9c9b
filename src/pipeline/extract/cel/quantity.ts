import type { Environment } from '@marcbachmann/cel-js'
import { define } from './define.ts'

const TEXT = /^([+-]?)(\d*)(?:\.(\d*))?(?:([numk]|[MGTPE]i?|Ki)|[eE]([+-]?\d{1,3}))?$/
const TENS: Readonly<Record<string, number>> = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }
const TWOS: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 }
const ONE = 1_000_000_000n
const MAX_LETTERS = 64
const MAX_EXPONENT = 40

/** A quantity, exact to the billionth part as in Kubernetes: what is finer is rounded away from zero. */
class Quantity {
  readonly #text: string
  readonly nanos: bigint

  constructor(nanos: bigint, text?: string) {
    this.nanos = nanos
    this.#text = text ?? decimal(nanos)
  }

  toJSON(): string {
    return this.#text
  }
}

function read(text: string): Quantity | undefined {
  const match = text.length <= MAX_LETTERS ? TEXT.exec(text) : null
  if (!match) return undefined
  const [, sign, whole = '', fraction = '', suffix = '', exponent = '0'] = match
  if (whole + fraction === '' || Math.abs(Number(exponent)) > MAX_EXPONENT) return undefined
  const scaled = BigInt(whole + fraction) * ONE * 2n ** BigInt(TWOS[suffix] ?? 0)
  const power = (TENS[suffix] ?? 0) + Number(exponent) - fraction.length
  const size = power >= 0 ? scaled * 10n ** BigInt(power) : roundedUp(scaled, 10n ** BigInt(-power))
  return new Quantity(sign === '-' ? -size : size, text)
}

const roundedUp = (value: bigint, divisor: bigint): bigint => (value + divisor - 1n) / divisor

function decimal(nanos: bigint): string {
  const size = nanos < 0n ? -nanos : nanos
  const fraction = String(size % ONE)
    .padStart(9, '0')
    .replace(/0+$/, '')
  return `${nanos < 0n ? '-' : ''}${size / ONE}${fraction === '' ? '' : `.${fraction}`}`
}

function quantity(text: string): Quantity {
  const made = read(text)
  if (!made) throw new Error('quantity() takes a quantity, such as 500m or 2Gi')
  return made
}

const isWhole = ({ nanos }: Quantity): boolean =>
  nanos % ONE === 0n && -(2n ** 63n) <= nanos / ONE && nanos / ONE < 2n ** 63n

/** @see Kubernetes API reference, "CEL", quantity library */
export function registerQuantity(cel: Environment): void {
  cel.registerType('Quantity', Quantity)
  define(cel, 'quantity(string): Quantity', quantity)
  define(cel, 'isQuantity(string): bool', (text: string) => read(text) !== undefined)
  define(cel, 'Quantity.isInteger(): bool', isWhole)
  define(cel, 'Quantity.asInteger(): int', (one: Quantity) => {
    if (!isWhole(one)) throw new Error('asInteger(): the quantity is no whole number of 64 bits')
    return one.nanos / ONE
  })
  define(cel, 'Quantity.asApproximateFloat(): double', ({ nanos }: Quantity) => Number(nanos) / 1e9)
  define(cel, 'Quantity.sign(): int', ({ nanos }: Quantity) => (nanos > 0n ? 1n : nanos < 0n ? -1n : 0n))
  define(cel, 'Quantity.add(Quantity): Quantity', (a: Quantity, b: Quantity) => new Quantity(a.nanos + b.nanos))
  define(cel, 'Quantity.add(int): Quantity', (a: Quantity, b: bigint) => new Quantity(a.nanos + b * ONE))
  define(cel, 'Quantity.sub(Quantity): Quantity', (a: Quantity, b: Quantity) => new Quantity(a.nanos - b.nanos))
  define(cel, 'Quantity.sub(int): Quantity', (a: Quantity, b: bigint) => new Quantity(a.nanos - b * ONE))
  define(cel, 'Quantity.compareTo(Quantity): int', (a: Quantity, b: Quantity) =>
    a.nanos < b.nanos ? -1n : a.nanos > b.nanos ? 1n : 0n,
  )
  define(cel, 'Quantity.isGreaterThan(Quantity): bool', (a: Quantity, b: Quantity) => a.nanos > b.nanos)
  define(cel, 'Quantity.isLessThan(Quantity): bool', (a: Quantity, b: Quantity) => a.nanos < b.nanos)
  cel.registerOperator('Quantity == Quantity', (a: Quantity, b: Quantity) => a.nanos === b.nanos)
}
