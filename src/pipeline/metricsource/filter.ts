import { RE2JS } from 're2js'
import type { ScalarValue } from '#model'
import { readDecimal } from '#path'
import { isTimestamp, textForm } from './convert.ts'
import type { DraftFilter } from './draft.ts'
import { readBytes, readCompatibleQuantity, readQuantity } from './quantity.ts'
import type { ColumnInfo } from './types.ts'

/** Whether a value passes. */
export type Test = (value: ScalarValue) => boolean

/** What regular expressions may still cost, ms of wall time; shared by all filters of one pass over rows. */
export interface Budget {
  leftMs: number
}

export type CompiledFilter =
  /** `start` begins a pass; once its budget is spent nothing more passes, and nothing may be made of what did before */
  | {
      readonly start: (budget: Budget) => Test
      readonly usesBudget: boolean
      readonly warning?: string
      readonly fault?: never
    }
  /** a sentence; nothing can ever be compared with it */
  | { readonly fault: string; readonly start?: never; readonly usesBudget?: never; readonly warning?: never }

/** A filter that costs next to nothing. */
const simple = (test: Test, warning?: string): CompiledFilter => ({
  ...{ start: () => test, usesBudget: false },
  ...(warning === undefined ? {} : { warning }),
})

/** The longest regular expression, in UTF-16 units. */
const MAX_PATTERN = 1024
/** The largest program a regular expression may become: repetitions of repetitions grow fast. */
const MAX_PROGRAM = 1000
/** Longer texts match nothing, UTF-16 units. */
const MAX_MATCHED = 8192

/**
 * A filter for values of a column of this type. Nothing passes where there is no value, but for notEquals; nothing passes that
 * cannot be compared. Numbers and quantities are equal where their amounts are: 10 and 10.0, 1Gi and 1024Mi.
 */
export function compileFilter({ operator, value }: DraftFilter, type: ColumnInfo['type']): CompiledFilter {
  switch (operator) {
    case 'equals':
      return simple(equals([value], type))
    case 'notEquals': {
      const isEqual = equals([value], type)
      return simple((one) => !isEqual(one))
    }
    case 'contains':
      return simple((one) => one !== null && textForm(one).includes(value))
    case 'startsWith':
      return simple((one) => one !== null && textForm(one).startsWith(value))
    case 'endsWith':
      return simple((one) => one !== null && textForm(one).endsWith(value))
    case 'greaterThan':
      return ordered(value, type, (order) => order > 0)
    case 'lessThan':
      return ordered(value, type, (order) => order < 0)
    case 'in': {
      const items = itemsOf(value)
      return simple(equals(items, type), items.length === 0 ? 'is an empty list: nothing is in it' : undefined)
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

/** Whether a value is one of these: of texts and booleans what is written, of numbers the amount. */
function equals(items: readonly string[], type: ColumnInfo['type']): Test {
  const texts = new Set(items)
  const numbers = new Set(items.map(readFor(type)))
  return (value) => {
    if (typeof value === 'string') return texts.has(value)
    if (typeof value === 'number') return numbers.has(value)
    return value !== null && texts.has(String(value))
  }
}

function ordered(text: string, type: ColumnInfo['type'], passes: (order: number) => boolean): CompiledFilter {
  const number = readFor(type)(text)
  if (number !== undefined) {
    const test: Test = (value) => {
      const amount = typeof value === 'number' ? value : typeof value === 'string' ? readQuantity(value) : undefined
      return amount !== undefined && passes(amount - number)
    }
    return simple(test)
  }
  if (isTimestamp(text)) {
    const time = Date.parse(text)
    return simple((value) => typeof value === 'string' && isTimestamp(value) && passes(Date.parse(value) - time))
  }
  return simple(() => false, 'is neither a number, a quantity nor a time: nothing passes')
}

function matching(pattern: string): CompiledFilter {
  if (pattern.length > MAX_PATTERN) {
    return { fault: `a regular expression may have ${MAX_PATTERN} characters, this has ${pattern.length}` }
  }
  try {
    const compiled = RE2JS.compile(pattern)
    if (compiled.programSize() > MAX_PROGRAM) return { fault: 'is too large a regular expression: repeat less' }
    const known = new Map<ScalarValue, boolean>()
    return { start: (budget) => within(budget, known, (text) => compiled.test(text)), usesBudget: true }
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^error parsing regexp: /, '') : String(error)
    return { fault: `is no regular expression of RE2: ${why}` }
  }
}

const REMEMBERED = 512
const MAX_REMEMBERED = 256

/**
 * Time is linear in the text, but the factor is the author's. Columns repeat themselves, so a text is tried once as long as few
 * are different.
 */
function within(budget: Budget, known: Map<ScalarValue, boolean>, matches: (text: string) => boolean): Test {
  return (value) => {
    if (value === null || budget.leftMs <= 0) return false
    const before = known.get(value)
    if (before !== undefined) return before
    const text = textForm(value)
    if (text.length > MAX_MATCHED) return false
    const since = performance.now()
    const passes = matches(text)
    budget.leftMs -= performance.now() - since
    if (known.size < REMEMBERED && text.length <= MAX_REMEMBERED) known.set(value, passes)
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
export function numericOf(value: ScalarValue | undefined): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? readDecimal(value) : undefined
}
