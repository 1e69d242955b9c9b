import type { ScalarValue } from '#model'
import { readDecimal } from '#path'
import { plainDecimal, readBytes, readCompatibleQuantity, readQuantity, readWhole } from './quantity.ts'
import type { FieldType } from './types.ts'

/** Longer texts are no values: UTF-16 units. */
export const MAX_TEXT = 65_536
const MAX_DEPTH = 100

/** A found value (never null) as a field's; undefined where it does not fit. */
export type Convert = (value: unknown) => ScalarValue | undefined

/** How each type reads what the API says. What does not fit is undefined, never a zero that nobody measured. */
export const convert: Readonly<Record<FieldType, Convert>> = {
  string: asText,
  integer: (value) => {
    if (typeof value === 'number') return whole(value)
    return typeof value === 'string' ? readWhole(value) : undefined
  },
  float: (value) => {
    if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined
    return typeof value === 'string' ? readDecimal(value) : undefined
  },
  boolean: (value) => {
    if (typeof value === 'boolean') return value
    if (typeof value === 'number') return value !== 0
    return typeof value === 'string'
      ? value === '1' || (value.length === 4 && value.toLowerCase() === 'true')
      : undefined
  },
  quantity: (value) => quantity(value, readCompatibleQuantity),
  cpu: (value) => quantity(value, readQuantity),
  bytes: (value) => {
    if (typeof value === 'number') return Number.isFinite(value) ? awayFromZero(value) : undefined
    return typeof value === 'string' ? readBytes(value) : undefined
  },
  timestamp: (value) => (typeof value === 'string' && (value === '' || isTimestamp(value)) ? value : undefined),
  arrayLength: (value) => (typeof value === 'object' && value !== null ? Object.keys(value).length : undefined),
}

function quantity(value: unknown, read: (text: string) => number | undefined): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value + 0 : undefined
  return typeof value === 'string' ? read(value) : undefined
}

const whole = (number: number) => (Number.isFinite(number) ? Math.trunc(number) + 0 : undefined)
const awayFromZero = (number: number) => (number < 0 ? Math.floor(number) : Math.ceil(number)) + 0

/** Lists and objects are compact JSON. */
export function asText(value: unknown): string | undefined {
  if (typeof value === 'string') return value.length <= MAX_TEXT ? value : undefined
  if (typeof value === 'number') return Number.isFinite(value) ? plainDecimal(value + 0) : undefined
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  return compactJson(value)
}

/** undefined where it would be longer than a value may be, or is nested too deeply; found out before it is written. */
export function compactJson(value: unknown): string | undefined {
  if (sizeOf(value, MAX_TEXT, 0) > MAX_TEXT) return undefined
  const text = JSON.stringify(value)
  return text !== undefined && text.length <= MAX_TEXT ? text : undefined
}

/** At least how long the JSON is; counting ends where it is over the budget. */
function sizeOf(value: unknown, budget: number, depth: number): number {
  if (typeof value === 'string') return value.length + 2
  if (typeof value !== 'object' || value === null) return 1
  if (depth >= MAX_DEPTH) return budget + 1
  let size = 2
  if (Array.isArray(value)) {
    for (const entry of value) {
      size += 1 + sizeOf(entry, budget - size, depth + 1)
      if (size > budget) return size
    }
    return size
  }
  for (const key of Object.keys(value)) {
    size += key.length + 4 + sizeOf((value as Record<string, unknown>)[key], budget - size, depth + 1)
    if (size > budget) return size
  }
  return size
}

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,40})?(?:Z|[+-]\d\d:\d\d)$/
const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** RFC 3339 with capital T and Z, all parts in their ranges. */
export function isTimestamp(text: string): boolean {
  if (text.length > 70 || !TIMESTAMP.test(text)) return false
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const month = twoDigits(text, 5)
  const day = twoDigits(text, 8)
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = month === 2 && !isLeap ? 28 : (DAYS[month - 1] ?? 0)
  if (day < 1 || day > days) return false
  if (twoDigits(text, 11) > 23 || twoDigits(text, 14) > 59 || twoDigits(text, 17) > 59) return false
  const end = text.length
  return text.endsWith('Z') || (twoDigits(text, end - 5) < 24 && twoDigits(text, end - 2) < 60)
}

const twoDigits = (text: string, at: number): number => (text.charCodeAt(at) - 48) * 10 + text.charCodeAt(at + 1) - 48

/** The text a filter or a group sees; null has none. */
export function textForm(value: Exclude<ScalarValue, null>): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? plainDecimal(value) : String(value)
}
