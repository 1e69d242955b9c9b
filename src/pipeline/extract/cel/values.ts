import { Optional } from '@marcbachmann/cel-js'
import { ExtractionFault } from '../fault.ts'

/** Lists and maps in each other, and values, of one result. */
const MAX_DEPTH = 64
const MAX_VALUES = 100_000

/** Whole numbers of JSON are int to Kubernetes' CEL. What holds none is returned itself. */
export function toCel(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    let copy: unknown[] | undefined
    for (let i = 0; i < value.length; i++) {
      const after = toCel(value[i])
      if (after === value[i]) continue
      copy ??= [...value]
      copy[i] = after
    }
    return copy ?? value
  }
  const map = value as Readonly<Record<string, unknown>>
  let copy: Record<string, unknown> | undefined
  for (const key in map) {
    const after = toCel(map[key])
    // A key called __proto__ is nothing that an expression could reach.
    if (after === map[key] || key === '__proto__') continue
    copy ??= { ...map }
    copy[key] = after
  }
  return copy ?? map
}

/**
 * A result as JSON: whole numbers beyond 2^53 as text, bytes as base64, times as RFC 3339, durations in seconds.
 * @throws ExtractionFault for what JSON cannot express, and for what is too large
 */
export function fromCel(result: unknown): unknown {
  if (typeof result === 'string' || typeof result === 'boolean') return result
  let values = 0
  const plain = (value: unknown, depth: number): unknown => {
    if (++values > MAX_VALUES) throw new ExtractionFault(`the result holds more than ${MAX_VALUES} values`)
    if (depth > MAX_DEPTH) throw new ExtractionFault(`the result is nested more than ${MAX_DEPTH} deep`)
    if (typeof value === 'bigint') return wholeNumber(value)
    if (typeof value === 'number') {
      if (Number.isFinite(value)) return value + 0
      throw new ExtractionFault(`the result is ${value}, which JSON cannot express`)
    }
    if (typeof value !== 'object' || value === null) return value ?? null
    if (Array.isArray(value) || value instanceof Set) return [...value].map((one) => plain(one, depth + 1))
    if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
    if (value instanceof Date) return value.toISOString().replace('.000Z', 'Z')
    if (value instanceof Optional) return plain(value.orValue(null), depth)
    if (!isMap(value)) return ofOtherType(value)
    const entries = value instanceof Map ? [...value.entries()] : Object.entries(value)
    return Object.fromEntries(entries.map(([key, one]) => [keyOf(key), plain(one, depth + 1)]))
  }
  return plain(result, 0)
}

const wholeNumber = (value: bigint): number | string =>
  value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER) ? Number(value) : String(value)

function keyOf(key: unknown): string {
  if (typeof key === 'string') return key
  const text = typeof key === 'object' && key !== null ? unsigned(key) : key
  if (typeof text === 'bigint' || typeof text === 'boolean') return String(text)
  throw new ExtractionFault('the result has a key that is no text')
}

/** Of the library's types only some are exported: they are told by what they have. */
function ofOtherType(value: object): unknown {
  const number = unsigned(value)
  if (number !== undefined) return wholeNumber(number)
  if ('seconds' in value && 'nanos' in value) return String(value)
  // Quantities, versions, addresses.
  if ('toJSON' in value && typeof value.toJSON === 'function') return value.toJSON()
  throw new ExtractionFault('the result is of a type that JSON cannot express')
}

const unsigned = (value: object): bigint | undefined =>
  'value' in value && typeof value.value === 'bigint' ? value.value : undefined

function isMap(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null || value instanceof Map
}
