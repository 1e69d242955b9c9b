import type { ScalarValue } from '#model'
import { findAll, findOne, MISSING, type Segment } from '#path'
import { asText, type Convert, compactJson } from './convert.ts'
import { cut } from './draft.ts'
import type { FieldType } from './types.ts'

/** Something was there that does not fit. */
export const MALFORMED = Symbol('malformed')

/** A field, ready to be read. */
export interface FieldPlan {
  readonly name: string
  readonly type: FieldType
  readonly segments: readonly Segment[]
  /** the path leads to one place at most */
  readonly isSingle: boolean
  readonly convert: Convert
  /** taken where nothing is found, or nothing that fits */
  readonly fallback: ScalarValue
}

/**
 * What a field is in an object. null counts as missing. Where a path of several ways finds one value, it is that one; several
 * are a number for arrayLength, a compact JSON list for string, and fit nothing else.
 */
export function readField(field: FieldPlan, object: unknown): ScalarValue | typeof MISSING | typeof MALFORMED {
  if (field.isSingle) {
    const found = findOne(object, field.segments)
    if (found === MISSING || found === null || found === undefined) return MISSING
    return field.convert(found) ?? MALFORMED
  }
  const { values, reached, isTooMany } = findAll(object, field.segments)
  if (isTooMany) return MALFORMED
  if (field.type === 'arrayLength') return reached ? values.length : MISSING
  if (values.length === 0) return MISSING
  if (values.length === 1) return field.convert(values[0]) ?? MALFORMED
  return (field.type === 'string' ? compactJson(values) : undefined) ?? MALFORMED
}

/** What was found where it did not fit, short enough to be shown. */
export function exampleOf(field: FieldPlan, object: unknown): string {
  if (field.isSingle) return shown(findOne(object, field.segments))
  const { values, isTooMany } = findAll(object, field.segments)
  if (isTooMany) return 'too many values'
  return values.length === 1 ? shown(values[0]) : `${values.length} values: ${shown(values)}`
}

function shown(value: unknown): string {
  if (typeof value === 'string') return cut(value)
  return cut(asText(value) ?? (Array.isArray(value) ? 'a long list' : 'a large object'))
}
