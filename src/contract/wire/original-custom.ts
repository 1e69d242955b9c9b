import type { MessageInitShape } from '@bufbuild/protobuf'
import {
  type Aggregated,
  type FieldReport,
  type RowsPart,
  type ScalarValue,
  type SourceId,
  Table,
  type TableRow,
} from '#model'
import type {
  CustomCollectedResource,
  CustomResourceBatch,
  CustomResourceBatchSchema,
} from './generated/clusterpulse/collector/v1/collector_pb.ts'
import { setOwn } from './nested.ts'

/*
 * Custom resources of the original, which tells values as JSON per row and counts nothing. A row whose JSON cannot be read is
 * there all the same, with nothing in its fields; how many there were stands in a report of no field.
 */
const MAX_FIELDS = 512
const MAX_TEXT = 16_384
const EXAMPLE = 120

/** @param hashOf the definition a source is collected by, where it is known; '' where not */
export function customFromOriginal(
  batches: readonly CustomResourceBatch[],
  hashOf: (source: SourceId) => string,
): readonly RowsPart[] {
  // Of a source that is told twice the last is kept, as the original's hub would have written it.
  return [...new Map(batches.map((one) => [one.sourceId, rowsPart(one, hashOf(one.sourceId))])).values()]
}

function rowsPart({ sourceId, resources, ...batch }: CustomResourceBatch, hash: string): RowsPart {
  const fields = new Set<string>()
  const unread: string[] = []
  let isCut = false
  const rows = resources.flatMap((resource): TableRow[] => {
    const key = keyOf(resource)
    const values = key && valuesOf(resource.valuesJson)
    if (!values) unread.push(new TextDecoder().decode(resource.valuesJson.subarray(0, EXAMPLE)))
    if (!key) return []
    for (const field of Object.keys(values ?? {})) {
      if (field !== '' && fields.size < MAX_FIELDS) fields.add(field)
      else if (!fields.has(field)) isCut = true
    }
    return [{ ...key, labels: resource.labels, values: values ?? {} }]
  })
  const duration = Number(batch.durationMs)
  return {
    source: sourceId,
    hash,
    durationMs: duration > 0 ? duration : 0,
    outcome: 'complete',
    rows: Table.of([...fields], rows),
    aggregations: aggregationsOf(batch.aggregationValues),
    truncated: batch.truncated || isCut,
    errors: [],
    errorCount: 0,
    reports: reportOf(unread),
  }
}

function reportOf(unread: readonly string[]): readonly FieldReport[] {
  const [example] = unread
  return example === undefined ? [] : [{ field: '', missing: 0, malformed: unread.length, example }]
}

/** undefined: it cannot be told from others */
function keyOf({ id, namespace, name }: CustomCollectedResource): Pick<TableRow, 'namespace' | 'name'> | undefined {
  const own = name || id.slice(id.lastIndexOf('/') + 1)
  return own === '' || own.includes('/') || namespace.includes('/') ? undefined : { namespace, name: own }
}

/** undefined: it is no JSON object. Lists and objects within are their JSON, as wherever a value must be a scalar. */
function valuesOf(json: Uint8Array): Readonly<Record<string, ScalarValue>> | undefined {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json))
  } catch {
    return undefined // the caller counts it
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const values: Record<string, ScalarValue> = {}
  for (const [field, one] of Object.entries(value)) setOwn(values, field, scalarOf(one))
  return values
}

function scalarOf(value: unknown): ScalarValue {
  if (typeof value === 'string') return value.slice(0, MAX_TEXT)
  if (typeof value === 'object' && value !== null) return JSON.stringify(value).slice(0, MAX_TEXT)
  // A number of JSON may be beyond what a double holds: then it is not known.
  if (typeof value === 'number') return Number.isFinite(value) ? value : null
  return typeof value === 'boolean' ? value : null
}

function aggregationsOf(values: Readonly<Record<string, number>>): Readonly<Record<string, Aggregated>> {
  const made: Record<string, Aggregated> = {}
  for (const [name, value] of Object.entries(values)) setOwn(made, name, Number.isFinite(value) ? value : null)
  return made
}

/** Complete parts as the original sends them: grouped and unknown aggregations have no place there. */
export function customToOriginal(parts: readonly RowsPart[]): MessageInitShape<typeof CustomResourceBatchSchema>[] {
  const encoder = new TextEncoder()
  return parts.flatMap((part) => {
    if (part.outcome !== 'complete') return []
    const { source, rows, truncated, durationMs, aggregations } = part
    const resources = [...rows.rows()].map(({ namespace, name, labels, values }, row) => ({
      id: rows.idAt(row),
      namespace,
      name,
      labels,
      valuesJson: encoder.encode(JSON.stringify(values)),
    }))
    const numbers = Object.entries(aggregations).filter((one): one is [string, number] => typeof one[1] === 'number')
    return [
      {
        sourceId: source,
        resourceCount: rows.size,
        truncated,
        durationMs: BigInt(Math.round(durationMs)),
        resources,
        aggregationValues: Object.fromEntries(numbers),
      },
    ]
  })
}
