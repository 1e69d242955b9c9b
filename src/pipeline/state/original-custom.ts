import { type Aggregated, type RowsState, type ScalarValue, type SourceId, Table, type TableRow } from '#model'
import {
  type Fields,
  fieldsOf,
  flagIn,
  isFields,
  listIn,
  mapIn,
  nameIn,
  textIn,
  timeIn,
  wholeIn,
} from './original-fields.ts'

const MAX_FIELDS = 512
const MAX_TEXT = 16_384
const MAX_GROUPS = 10_000

/**
 * What a MetricSource saw of one cluster, as documented. An empty collection may say `null` instead of a list (STA-Q05).
 * @param aggregations of the other document; absent where there is none
 * @returns undefined where the document does not say when it was collected: then it is none
 */
export function customOf(
  source: SourceId,
  resources: Fields,
  aggregations: Fields | undefined,
  mode: 'pull' | 'push',
): RowsState | undefined {
  const at = timeIn(resources, 'collectedAt')
  if (at === null || (resources.resources !== null && !Array.isArray(resources.resources))) return undefined
  const fields = new Set<string>()
  let isCut = false
  const rows = listIn(resources, 'resources').flatMap((document): TableRow[] => {
    const row = rowOf(document)
    if (!row) return []
    for (const field of Object.keys(row.values)) {
      if (fields.size < MAX_FIELDS) fields.add(field)
      else if (!fields.has(field)) isCut = true
    }
    return [row]
  })
  const given = Array.isArray(resources.resources) ? resources.resources.length : 0
  const malformed = given - rows.length
  return {
    source,
    hash: '',
    durationMs: wholeIn(resources, 'durationMs'),
    outcome: 'complete',
    code: '',
    message: '',
    attemptedAt: at,
    freshness: { observedAt: at, receivedAt: at, source: mode },
    aggregations: aggregationsOf(fieldsOf(aggregations?.values)),
    truncated: flagIn(resources, 'truncated') || isCut,
    errors: [],
    errorCount: 0,
    reports: malformed > 0 ? [{ field: '', missing: 0, malformed, example: '' }] : [],
    rows: Table.of([...fields], rows),
  }
}

function rowOf(document: Fields): TableRow | undefined {
  const name = nameIn(document, '_name')
  const namespace = textIn(document, '_namespace')
  // A slash would make two rows one, and a broken character another name than its own.
  if (name === undefined || `${name}${namespace}`.match(/[/\ufffd]/)) return undefined
  const values = Object.entries(fieldsOf(document.values)).map(([field, value]) => [field, scalarOf(value)] as const)
  return { namespace, name, labels: mapIn(document, '_labels'), values: Object.fromEntries(values) }
}

/** Lists and objects are their JSON, as wherever a value must be a scalar. */
function scalarOf(value: unknown): ScalarValue {
  if (typeof value === 'string') return value.slice(0, MAX_TEXT)
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  if (typeof value === 'boolean') return value
  return value === null || value === undefined ? null : jsonOf(value)
}

function jsonOf(value: unknown): string | null {
  try {
    return JSON.stringify(value).slice(0, MAX_TEXT)
  } catch {
    return null // nested deeper than can be told
  }
}

const aggregationsOf = (values: Fields): Readonly<Record<string, Aggregated>> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      isFields(value)
        ? Object.fromEntries(
            Object.entries(value)
              .slice(0, MAX_GROUPS)
              .map(([group, one]) => [group, scalarOf(one)]),
          )
        : scalarOf(value),
    ]),
  )
