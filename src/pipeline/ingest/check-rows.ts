import {
  type Batch,
  type Column,
  isJson,
  type JsonValue,
  type Labels,
  MAX_TABLE_ROWS,
  ROWS_ERRORS_KEPT,
  type RowsPart,
  Table,
} from '#model'
import { InvalidBatchError } from './errors.ts'

const MAX_SOURCES = 200
const MAX_FIELDS = 512
/** 8 for a row and 1 for each of its values, over the batch; as the wire charges. */
const MAX_VALUES = 12_000_000
const MAX_AGGREGATIONS = 200
const MAX_GROUPS = 20_000
const MAX_LABELS = 256
const MAX_NAME = 1024
const MAX_TEXT = 16_384
/** a namespace and a name, as Kubernetes has them */
const SOURCE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\/[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?$/
/** the plural of a kind of row that is compiled in, or what else a cluster tells in rows, such as node-usage */
const COMPILED_IN = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/
/** Whether a text can be the id of a MetricSource, or of a kind that is compiled in. */
export const isSourceId = (text: unknown): boolean =>
  typeof text === 'string' && (SOURCE.test(text) || COMPILED_IN.test(text))
const outcomes = new Set(['complete', 'changed', 'absent', 'forbidden', 'unreachable'])
const unread = new Set(['absent', 'forbidden', 'unreachable'])

/** @throws InvalidBatchError with the first fault found */
export function checkRowsParts({ tables, base }: Batch): void {
  if (!Array.isArray(tables)) throw new InvalidBatchError('custom', 'is no list')
  if (tables.length > MAX_SOURCES) throw new InvalidBatchError('custom', `holds more than ${MAX_SOURCES} sources`)
  const sources = new Set<string>()
  let values = 0
  // Array.isArray makes it a list of anything.
  for (const [i, part] of (tables as readonly RowsPart[]).entries()) {
    const where = `custom[${i}]`
    checkPart(part, where, base !== undefined)
    if (sources.has(part.source)) throw new InvalidBatchError(where, 'names a source a second time')
    sources.add(part.source)
    values += valuesOf(part)
    if (values > MAX_VALUES) throw new InvalidBatchError(where, `holds more than ${MAX_VALUES} values`)
  }
}

function valuesOf(part: RowsPart): number {
  if (part.outcome === 'complete') return part.rows.size * (8 + part.rows.fields.length)
  return part.outcome === 'changed' ? part.put.size * (8 + part.put.fields.length) + part.removed.length : 0
}

function checkPart(part: RowsPart, where: string, hasBase: boolean): void {
  const refuse = (at: string, what: string): never => {
    throw new InvalidBatchError(at === '' ? where : `${where}.${at}`, what)
  }
  if (typeof part !== 'object' || part === null) refuse('', 'is no object')
  if (!isSourceId(part.source)) refuse('source', 'is neither a namespace and name, nor a kind')
  if (typeof part.hash !== 'string' || part.hash.length > 128) refuse('hash', 'is no hash')
  if (!isAmount(part.durationMs)) refuse('durationMs', 'is no duration in milliseconds')
  if (!outcomes.has(part.outcome)) refuse('outcome', 'is unknown')
  if (part.outcome !== 'complete' && part.outcome !== 'changed') {
    if (!isTextOf(part.code, MAX_NAME) || !isTextOf(part.message, MAX_TEXT)) refuse('', 'has no code and message')
    return
  }
  if (part.outcome === 'changed') {
    if (!hasBase) refuse('', 'is a difference, and the batch names no base')
    const isList = Array.isArray(part.removed) && part.removed.length <= MAX_TABLE_ROWS
    if (!isList || !part.removed.every((id) => isTextOf(id, 2 * MAX_NAME))) refuse('removed', 'is no list of rows')
  }
  checkRows(part.outcome === 'complete' ? part.rows : part.put, (what) => refuse(rowsName(part), what))
  checkFacts(part, refuse)
}

const rowsName = ({ outcome }: RowsPart) => (outcome === 'complete' ? 'rows' : 'put')

function checkRows(rows: Table, refuse: (what: string) => never): void {
  if (!(rows instanceof Table)) refuse('are no rows')
  const { fields } = rows
  if (rows.size > MAX_TABLE_ROWS) refuse(`are more than ${MAX_TABLE_ROWS}`)
  if (fields.length > MAX_FIELDS) refuse(`have more than ${MAX_FIELDS} fields`)
  if (!fields.every((field) => isTextOf(field, MAX_NAME) && field !== '')) refuse('have a field without a usable name')
  // Most rows have the labels of another, as one object.
  const looked = new Set<unknown>()
  for (const { keys, labels, columns } of rows.chunks) {
    for (const name of keys.names)
      if (!isTextOf(name, MAX_NAME) || name === '' || name.includes('/')) refuse('have one without a usable name')
    for (const name of keys.namespaces.words)
      if (!isTextOf(name, MAX_NAME) || name.includes('/')) refuse('have one without a usable namespace')
    for (const one of labels.words) {
      if (looked.has(one)) continue
      looked.add(one)
      checkLabels(one, refuse)
    }
    for (const [i, column] of columns.entries())
      if (!isFine(column)) refuse(`have a value of ${JSON.stringify(fields[i])} that is too large, or none`)
  }
}

function checkLabels(labels: Labels, refuse: (what: string) => never): void {
  const entries = Object.entries(labels)
  if (entries.length > MAX_LABELS) refuse(`have one with more than ${MAX_LABELS} labels`)
  if (!entries.every(([key, value]) => key.length <= MAX_NAME && isTextOf(value, MAX_NAME)))
    refuse('have one whose labels are no texts of usable length')
}

type Facts = Extract<RowsPart, { outcome: 'complete' | 'changed' }>

function checkFacts(part: Facts, refuse: (at: string, what: string) => never): void {
  const { aggregations, truncated, errors, errorCount, reports } = part
  if (typeof truncated !== 'boolean') refuse('truncated', 'is neither true nor false')
  if (!isCount(errorCount)) refuse('errorCount', 'is no count')
  if (!Array.isArray(errors) || errors.length > ROWS_ERRORS_KEPT || !errors.every(isError))
    refuse('errors', `is no list of at most ${ROWS_ERRORS_KEPT} errors`)
  if (!Array.isArray(reports) || reports.length > MAX_FIELDS || !reports.every(isReport))
    refuse('reports', 'is no list of reports')
  if (typeof aggregations !== 'object' || aggregations === null) refuse('aggregations', 'is no object')
  const entries = Object.entries(aggregations)
  if (entries.length > MAX_AGGREGATIONS) refuse('aggregations', `are more than ${MAX_AGGREGATIONS}`)
  let groups = 0
  for (const [name, value] of entries) {
    if (name === '' || name.length > MAX_NAME) refuse('aggregations', 'have one without a usable name')
    if (isScalar(value)) continue
    if (typeof value !== 'object' || Array.isArray(value)) refuse('aggregations', 'have one that is no value')
    const each = Object.entries(value as object)
    groups += each.length
    if (groups > MAX_GROUPS) refuse('aggregations', `have more than ${MAX_GROUPS} groups`)
    if (!each.every(([key, one]) => key.length <= MAX_TEXT && isScalar(one)))
      refuse('aggregations', 'have a group that is no value')
  }
}

const isError = (error: unknown): boolean => {
  if (typeof error !== 'object' || error === null) return false
  const { namespace, outcome, code, message } = error as Readonly<Record<string, unknown>>
  const isTold = isTextOf(namespace, MAX_NAME) && isTextOf(code, MAX_NAME) && isTextOf(message, MAX_TEXT)
  return isTold && typeof outcome === 'string' && unread.has(outcome)
}

const isReport = (report: unknown): boolean => {
  if (typeof report !== 'object' || report === null) return false
  const { field, missing, malformed, example } = report as Readonly<Record<string, unknown>>
  return isTextOf(field, MAX_NAME) && isCount(missing) && isCount(malformed) && isTextOf(example, MAX_TEXT)
}

const isTextOf = (value: unknown, most: number) => typeof value === 'string' && value.length <= most
const isAmount = (value: unknown) => typeof value === 'number' && value >= 0 && value <= 8.64e15
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0
const isScalar = (value: unknown) =>
  value === null ||
  typeof value === 'boolean' ||
  (typeof value === 'number' && Number.isFinite(value)) ||
  isTextOf(value, MAX_TEXT)
/** A table made of what came from outside holds finite numbers; one of this process may hold anything. */
const isFine = ({ words, numbers }: Column) => {
  for (const word of words) if (!isValue(word)) return false
  return !numbers || numbers.every(isFiniteOrNull)
}
const isFiniteOrNull = (number: number) => Number.isFinite(number) || Number.isNaN(number)
const isValue = (value: JsonValue) =>
  typeof value === 'object' && value !== null
    ? isJson(value) && JSON.stringify(value).length <= MAX_TEXT
    : isScalar(value)
