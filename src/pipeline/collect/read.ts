import type { ResourceCondition } from '#model'

/**
 * Reading what an API server sent, field by field. Nothing here throws: what is missing or of another kind reads as
 * "nothing", because one odd object must not hide the others.
 */
export type Fields = Readonly<Record<string, unknown>>

/** The value as an object; an empty one where it is none. */
export function fields(value: unknown): Fields {
  return isFields(value) ? value : {}
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The objects of a list; [] where it is none. */
export function items(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** The value where it is a text; '' for everything else. */
export function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

export function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i

/** ms since the Unix epoch; null where the value is neither an RFC 3339 time nor a time that protobuf gave, which is in ms already. */
export function instant(value: unknown): number | null {
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value !== 'string' || !RFC3339.test(value)) return null
  const ms = Date.parse(value)
  return Number.isNaN(ms) ? null : Math.trunc(ms)
}

/** Labels or annotations: only what is text. */
export function textMap(value: unknown): Record<string, string> {
  const result: Record<string, string> = {}
  for (const [key, entry] of Object.entries(fields(value))) if (typeof entry === 'string') result[key] = entry
  return result
}

/** The conditions of a status, in order. */
export function conditions(value: unknown): ResourceCondition[] {
  return items(value).map((condition) => ({
    type: text(condition.type),
    status: text(condition.status),
    reason: text(condition.reason),
    message: text(condition.message),
    lastTransitionAt: instant(condition.lastTransitionTime),
  }))
}
