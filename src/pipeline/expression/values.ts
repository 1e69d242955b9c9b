import { decimalText, LONGEST_DECIMAL, parseDecimal } from './decimal.ts'
import type { Run } from './run.ts'
import { spend } from './run.ts'
import { compareTexts } from './text.ts'
import type { Value } from './types.ts'

/** null is empty; numbers in decimal, without an exponent below 10^21; `true` and `false`. */
export function textOf(value: Value): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return decimalText(value)
  return value === null ? '' : String(value)
}

/** null is 0, true 1, false 0, decimal text its number. null for any other text: it is no number. */
export function numberOf(value: Value): number | null {
  const number = typeof value === 'string' ? parseDecimal(value) : plainNumber(value)
  return Number.isFinite(number) ? number : null
}

/** null, 0, false and the empty text are not true; everything else is, also the text `false`. */
export function truthOf(value: Value): boolean {
  return typeof value === 'number' ? value !== 0 : typeof value === 'string' ? value !== '' : value === true
}

const plainNumber = (value: number | boolean | null): number => (typeof value === 'number' ? value : value ? 1 : 0)

/**
 * What an expression gave, as the type its author declared. null stays null, and a text that is no number becomes null as a number.
 * `integer` cuts toward zero.
 */
export function convertTo(value: Value, type: 'string' | 'integer' | 'float' | 'boolean'): Value {
  if (value === null) return null
  if (type === 'string') return textOf(value)
  if (type === 'boolean') return truthOf(value)
  const number = numberOf(value)
  if (number === null || type === 'float') return number
  return Math.trunc(number) + 0
}

/** As numberOf within an evaluation: NaN for a text that is no number. */
export function toNumber(value: Value, run: Run): number {
  if (typeof value !== 'string') return plainNumber(value)
  if (value.length > LONGEST_DECIMAL) return Number.NaN
  spend(run, value.length * 4)
  return parseDecimal(value)
}

/** Two texts by their code points; otherwise numbers; false where one is a text that is no number. */
export function isOrdered(operator: '<' | '<=' | '>' | '>=', a: Value, b: Value, run: Run): boolean {
  if (typeof a === 'string' && typeof b === 'string') {
    if (!spend(run, 3 * Math.min(a.length, b.length))) return false
    return ordered(operator, compareTexts(a, b), 0)
  }
  return ordered(operator, toNumber(a, run), toNumber(b, run))
}

export function ordered(operator: '<' | '<=' | '>' | '>=', a: number, b: number): boolean {
  switch (operator) {
    case '<':
      return a < b
    case '<=':
      return a <= b
    case '>':
      return a > b
    case '>=':
      return a >= b
  }
}

/** The same from both sides. A text equals a number of the same amount, and a boolean of the same text. */
export function isEqual(a: Value, b: Value, run: Run): boolean {
  if (a === null || b === null) return a === b
  if (typeof a === 'string') {
    if (typeof b === 'string') return a.length === b.length && spend(run, a.length / 2) && a === b
    return typeof b === 'boolean' ? a === String(b) : toNumber(a, run) === b
  }
  if (typeof b === 'string') return typeof a === 'boolean' ? b === String(a) : toNumber(b, run) === a
  return plainNumber(a) === plainNumber(b)
}
