import { isDeepStrictEqual } from 'node:util'
import { cutText } from './cut-text.ts'

type Fields = Readonly<Record<string, unknown>>

/** Lists whose items the API server takes as they are, since they may be texts or objects. */
const REFERENCES = ['databaseSinkRefs', 'snapshotSinkRefs', 'eventSinkRefs'] as const
/** Settings of types that are refused, whatever they say. */
const REFUSED = ['http', 'bigquery', 'mongodb'] as const
/** More than a reference has. */
const MAX_FIELDS = 20
/** Longer than a name may be, UTF-16 units. */
const MAX_TEXT = 1000

/**
 * The spec of an object of inventory without what no schema bounds, which would be kept in memory whole. What is wrong with it stays
 * wrong: a field that nobody knows stays one, with nothing in it.
 */
export function prunedSpec<T>(spec: T): T {
  if (!isFields(spec)) return spec
  const changes: Record<string, unknown> = {}
  for (const key of REFERENCES) {
    const list = spec[key]
    if (!Array.isArray(list)) continue
    const pruned = list.map(prunedReference)
    if (pruned.some((one, i) => one !== list[i])) changes[key] = pruned
  }
  for (const key of REFUSED) if (isFields(spec[key]) && !isDeepStrictEqual(spec[key], {})) changes[key] = {}
  return Object.keys(changes).length === 0 ? spec : { ...spec, ...changes }
}

function prunedReference(item: unknown): unknown {
  if (Array.isArray(item)) return []
  if (!isFields(item)) return bounded(item)
  const fields = Object.entries(item)
  if (fields.length <= MAX_FIELDS && fields.every((field) => !field.some(isUnbounded))) return item
  return Object.fromEntries(fields.slice(0, MAX_FIELDS).map(([key, value]) => [cutText(key, MAX_TEXT), bounded(value)]))
}

const isUnbounded = (value: unknown): boolean =>
  isNested(value) || (typeof value === 'string' && value.length > MAX_TEXT)

/** Of a text its beginning, which is as wrong; of what is nested nothing. */
function bounded(value: unknown): unknown {
  if (typeof value === 'string') return cutText(value, MAX_TEXT)
  return isNested(value) ? null : value
}

const isNested = (value: unknown): boolean => typeof value === 'object' && value !== null
const isFields = (value: unknown): value is Fields => isNested(value) && !Array.isArray(value)
