import { readDecimal } from './decimal.ts'
import type { Condition, Operand, Segment } from './path.ts'

/** Nothing was there: not the same as null, which somebody wrote. */
export const MISSING = Symbol('missing')

/** More matches than this are too many to be a value. */
export const MAX_MATCHES = 10_000
/** of descents */
const MAX_DEPTH = 256

/**
 * Decides what a step shows: gets the list or object, the key or index that is there, and what stands there. What it returns is
 * walked on and found; undefined: as if nothing were there.
 */
export type View = (parent: object, key: string | number, value: unknown) => unknown

/**
 * What stands at the end of a path that leads to one place at most. Only what an object says itself counts, nothing it inherits.
 * @returns MISSING where a step leads nowhere
 */
export function findOne(object: unknown, segments: readonly Segment[], view?: View): unknown {
  let current: unknown = object
  for (let i = 0; i < segments.length; i++) {
    current = step(current, segments[i], view)
    if (current === MISSING) return MISSING
  }
  return current
}

function step(current: unknown, segment: Segment | undefined, view: View | undefined): unknown {
  if (typeof current !== 'object' || current === null || segment === undefined) return MISSING
  if (segment.kind === 'key') {
    if (Array.isArray(current)) return MISSING
    const value = ownValue(current as Readonly<Record<string, unknown>>, segment.key)
    return value === MISSING ? MISSING : seen(current, segment.key, value, view)
  }
  if (segment.kind !== 'index' || !Array.isArray(current)) return MISSING
  const index = segment.index < 0 ? segment.index + current.length : segment.index
  return index >= 0 && index < current.length ? seen(current, index, current[index], view) : MISSING
}

/** Of a map as JSON has it: what such maps inherit is functions, and `__proto__`. Asking each for its own keys costs more than the value. */
export function ownValue(map: Readonly<Record<string, unknown>>, key: string): unknown {
  const value = map[key]
  const isPlain = value !== undefined && typeof value !== 'function' && key !== '__proto__'
  return isPlain || Object.hasOwn(map, key) ? value : MISSING
}

function seen(parent: object, key: string | number, value: unknown, view: View | undefined): unknown {
  if (view === undefined) return value
  const shown = view(parent, key, value)
  return shown === undefined ? MISSING : shown
}

/** All entries of a list, all values of an object. */
function entriesOf(value: object, view: View | undefined): readonly unknown[] {
  if (view === undefined) return Array.isArray(value) ? value : Object.values(value)
  const shown: unknown[] = []
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) shown.push(view(value, i, value[i]))
  else for (const [key, entry] of Object.entries(value)) shown.push(view(value, key, entry))
  return shown.filter((entry) => entry !== undefined)
}

/** What a path of several ways found. */
export interface Matches {
  readonly values: readonly unknown[]
  /** something was there to choose from, even where nothing fitted */
  readonly reached: boolean
  readonly isTooMany: boolean
  /** an index met what is no list, or lies beyond its end: kubectl calls that an error */
  readonly isOutside: boolean
}

/** Everything at the ends of a path, in the order of the object. null and what leads nowhere are left out. */
export function findAll(object: unknown, segments: readonly Segment[], view?: View): Matches {
  let current: unknown[] = [object]
  let reached = false
  let isOutside = false
  for (const segment of segments) {
    const next: unknown[] = []
    for (const value of current) {
      const before = next.length
      if (choose(value, segment, next, view)) reached = true
      if (segment.kind === 'index' && value !== null && next.length === before) isOutside = true
      if (next.length > MAX_MATCHES) return { values: [], reached: true, isTooMany: true, isOutside }
    }
    current = next
  }
  const values = current.filter((value) => value !== null && value !== undefined)
  return { values, reached, isTooMany: false, isOutside }
}

/** Adds what the step finds; tells whether there was a list or an object to choose from. */
function choose(value: unknown, segment: Segment, into: unknown[], view: View | undefined): boolean {
  if (typeof value !== 'object' || value === null) return false
  switch (segment.kind) {
    case 'key':
    case 'index': {
      const found = step(value, segment, view)
      if (found !== MISSING) into.push(found)
      return false
    }
    case 'items':
      for (const item of segment.items) {
        const found = step(
          value,
          typeof item === 'string' ? { kind: 'key', key: item } : { kind: 'index', index: item },
          view,
        )
        if (found !== MISSING) into.push(found)
      }
      return true
    case 'slice':
      if (!Array.isArray(value)) return false
      for (const entry of sliced(entriesOf(value, view), segment)) into.push(entry)
      return true
    case 'descendants':
      descend(value, into, view)
      return true
    case 'all':
    case 'filter': {
      for (const entry of entriesOf(value, view)) {
        if (segment.kind === 'filter' && !holds(segment.condition, entry, view)) continue
        into.push(entry)
        if (into.length > MAX_MATCHES) return true
      }
      return true
    }
  }
}

/** The value and every list and object in it, parents first. What is nested deeper than JSON may be is left out. */
function descend(value: object, into: unknown[], view: View | undefined, depth = 0): void {
  into.push(value)
  if (depth === MAX_DEPTH) return
  for (const entry of entriesOf(value, view)) {
    if (into.length > MAX_MATCHES) return
    if (typeof entry === 'object' && entry !== null) descend(entry, into, view, depth + 1)
  }
}

function sliced(
  list: readonly unknown[],
  { from, to, step: by }: Extract<Segment, { kind: 'slice' }>,
): readonly unknown[] {
  const entries = list.slice(from, to)
  return by === 1 ? entries : entries.filter((_, i) => i % by === 0)
}

function holds(condition: Condition, entry: unknown, view: View | undefined): boolean {
  switch (condition.kind) {
    case 'and':
      return holds(condition.left, entry, view) && holds(condition.right, entry, view)
    case 'or':
      return holds(condition.left, entry, view) || holds(condition.right, entry, view)
    case 'not':
      return !holds(condition.of, entry, view)
    case 'exists':
      return amountIn(condition.operand, entry, view) !== null
    case 'compare': {
      const left = amountIn(condition.left, entry, view)
      const right = amountIn(condition.right, entry, view)
      if (condition.operator === '==') return isEqual(left, right)
      if (condition.operator === '!=') return !isEqual(left, right)
      const order = orderOf(left, right)
      if (order === undefined) return false
      if (condition.operator === '<') return order < 0
      if (condition.operator === '<=') return order <= 0
      return condition.operator === '>' ? order > 0 : order >= 0
    }
  }
}

/** What is missing is null. */
function amountIn(operand: Operand, entry: unknown, view: View | undefined): unknown {
  if (operand.kind === 'literal') return operand.value
  const found = findOne(entry, operand.segments, view)
  return found === MISSING || found === undefined ? null : found
}

function isEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a === 'boolean' && typeof b === 'string') return String(a) === b
  if (typeof a === 'string' && typeof b === 'boolean') return a === String(b)
  if (typeof a === typeof b) return false
  return orderOf(a, b) === 0
}

/** Two texts by their letters; where a number is one of them, as numbers; undefined where they cannot be compared. */
function orderOf(a: unknown, b: unknown): number | undefined {
  if (typeof a === 'string' && typeof b === 'string') return a === b ? 0 : a < b ? -1 : 1
  const [left, right] = [numberOf(a), numberOf(b)]
  return left === undefined || right === undefined ? undefined : left - right
}

function numberOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  return typeof value === 'string' ? readDecimal(value) : undefined
}
