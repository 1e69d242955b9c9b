import { RE2JS } from 're2js'
import type { CustomValue } from '#model'
import { isTimestamp, textForm } from './convert.ts'
import type { DraftFilter } from './draft.ts'
import { readBytes, readCompatibleQuantity, readDecimal, readQuantity } from './quantity.ts'
import type { ColumnInfo } from './types.ts'

/** Whether a value passes. */
export type Test = (value: CustomValue) => boolean

export type CompiledFilter =
  | { readonly test: Test; readonly warning?: string; readonly fault?: never }
  /** a sentence; nothing can ever be compared with it */
  | { readonly fault: string; readonly test?: never; readonly warning?: never }

/** The longest regular expression, in UTF-16 units. */
const MAX_PATTERN = 1024

/**
 * A filter for values of a column of this type. Nothing passes where there is no value, but for notEquals; nothing passes that
 * cannot be compared. Numbers and quantities are equal where their amounts are: 10 and 10.0, 1Gi and 1024Mi.
 */
export function compileFilter({ operator, value }: DraftFilter, type: ColumnInfo['type']): CompiledFilter {
  switch (operator) {
    case 'equals':
      return { test: equals(value, type) }
    case 'notEquals': {
      const isEqual = equals(value, type)
      return { test: (one) => !isEqual(one) }
    }
    case 'contains':
      return { test: (one) => one !== null && textForm(one).includes(value) }
    case 'startsWith':
      return { test: (one) => one !== null && textForm(one).startsWith(value) }
    case 'endsWith':
      return { test: (one) => one !== null && textForm(one).endsWith(value) }
    case 'greaterThan':
      return ordered(value, type, (order) => order > 0)
    case 'lessThan':
      return ordered(value, type, (order) => order < 0)
    case 'in': {
      const tests = itemsOf(value).map((item) => equals(item, type))
      const warning = tests.length === 0 ? { warning: 'the list is empty: nothing is in it' } : {}
      return { test: (one) => tests.some((test) => test(one)), ...warning }
    }
    case 'matches':
      return matching(value)
  }
}

/** How numbers are written for a column of this type. */
function readFor(type: ColumnInfo['type']): (text: string) => number | undefined {
  if (type === 'quantity') return readCompatibleQuantity
  return type === 'bytes' ? readBytes : readQuantity
}

function equals(text: string, type: ColumnInfo['type']): Test {
  const number = readFor(type)(text)
  const boolean = text === 'true' ? true : text === 'false' ? false : undefined
  return (value) => {
    if (typeof value === 'string') return value === text
    if (typeof value === 'number') return value === number
    return value !== null && value === boolean
  }
}

function ordered(text: string, type: ColumnInfo['type'], passes: (order: number) => boolean): CompiledFilter {
  const number = readFor(type)(text)
  if (number !== undefined) {
    const test: Test = (value) => {
      const amount = typeof value === 'number' ? value : typeof value === 'string' ? readQuantity(value) : undefined
      return amount !== undefined && passes(amount - number)
    }
    return { test }
  }
  if (isTimestamp(text)) {
    const time = Date.parse(text)
    return { test: (value) => typeof value === 'string' && isTimestamp(value) && passes(Date.parse(value) - time) }
  }
  return { test: () => false, warning: 'is neither a number, a quantity nor a time: nothing passes' }
}

function matching(pattern: string): CompiledFilter {
  if (pattern.length > MAX_PATTERN) {
    return { fault: `a regular expression may have ${MAX_PATTERN} characters, this has ${pattern.length}` }
  }
  try {
    const compiled = RE2JS.compile(pattern)
    return { test: remembering((value) => compiled.test(textForm(value))) }
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : String(error)
    return { fault: `is no regular expression of RE2: ${why}` }
  }
}

const REMEMBERED = 512

/** Columns repeat themselves: a text is tried once, as long as few are different. */
function remembering(test: (value: Exclude<CustomValue, null>) => boolean): Test {
  const known = new Map<CustomValue, boolean>()
  return (value) => {
    if (value === null) return false
    const before = known.get(value)
    if (before !== undefined) return before
    const passes = test(value)
    if (known.size < REMEMBERED && (typeof value !== 'string' || value.length <= 256)) known.set(value, passes)
    return passes
  }
}

/** A JSON list, or texts with commas between, in brackets or without, quoted or not; empty ones count only where quoted. */
export function itemsOf(text: string): readonly string[] {
  const trimmed = text.trim()
  if (trimmed.startsWith('[')) {
    const list = jsonList(trimmed)
    if (list) return list
  }
  const inner = /^\[.*\]$/s.test(trimmed) ? trimmed.slice(1, -1) : trimmed
  return inner.split(',').flatMap((item) => {
    const word = item.trim()
    const quoted = /^(["'])(.*)\1$/s.exec(word)
    if (quoted) return [quoted[2] ?? '']
    return word === '' ? [] : [word]
  })
}

function jsonList(text: string): readonly string[] | undefined {
  try {
    const list: unknown = JSON.parse(text)
    if (!Array.isArray(list)) return undefined
    return list.flatMap((item: unknown) =>
      typeof item === 'string' || typeof item === 'number' || typeof item === 'boolean' ? [textForm(item)] : [],
    )
  } catch (error) {
    // What is no JSON is the older form.
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** A value as a number, where an aggregation wants one: text counts where it is decimal. */
export function numericOf(value: CustomValue | undefined): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? readDecimal(value) : undefined
}
