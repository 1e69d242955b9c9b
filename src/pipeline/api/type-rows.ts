import { type CustomRows, type CustomValue, momentOf, unitText } from '#model'
import { Best } from './best.ts'
import { InvalidCursorError, readCursor, writeCursor } from './page.ts'
import { RefusedError } from './problem.ts'
import { byText } from './views.ts'
import type { VisibleType } from './visible-types.ts'

/*
 *  places that may be seen → namespace, q, where → how many → order → one page of them
 *
 * Everything looks at columns; a row is made only where it is shown.
 */

/** Which of the rows that may be seen, and in which order. */
export interface RowsQuery {
  readonly namespace?: string
  readonly q?: string
  readonly where?: readonly string[]
  readonly sort?: string
  readonly order?: 'asc' | 'desc'
}

export interface PlacesPage {
  readonly places: readonly number[]
  readonly total: number
  readonly next: string | null
}

type Column = (place: number) => CustomValue
type Test = (place: number) => boolean

/**
 * One page. The cursor names the last row seen, so rows that come and go between two pages neither hide nor repeat others.
 * @throws InvalidCursorError, RefusedError `invalid_parameter`
 */
export function pageOfRows(type: VisibleType, query: RowsQuery & { limit?: number; cursor?: string }): PlacesPage {
  const { limit = 100, sort = 'name', order = 'asc', cursor } = query
  const { rows } = type
  const { value, compare } = orderOf(type, sort, order)
  const after = cursor === undefined ? undefined : positionOf(rows, cursor, sort, order)
  const best = new Best<number>(limit + 1, (left, right) => compare(value(left), left, value(right), right))
  let total = 0
  for (const place of matching(type, query)) {
    total += 1
    if (!after || compare(value(place), place, after.value, after.place) > 0) best.add(place)
  }
  const found = best.sorted()
  const places = found.slice(0, limit)
  const last = places.at(-1)
  const isMore = found.length > limit && last !== undefined
  return { places, total, next: isMore ? cursorOf(rows, last, value(last), sort, order) : null }
}

/** All of them in order. @throws RefusedError `invalid_parameter` */
export function orderedPlaces(type: VisibleType, query: RowsQuery): readonly number[] {
  const places = [...matching(type, query)]
  const { sort, order = 'asc' } = query
  if (sort === undefined || sort === 'namespace') return order === 'asc' ? places : places.reverse()
  const { value, compare } = orderOf(type, sort, order)
  return places.sort((left, right) => compare(value(left), left, value(right), right))
}

/** Those that may be seen and pass the filters of the question, as they lie. */
function* matching(type: VisibleType, query: RowsQuery): Generator<number> {
  const tests = testsOf(type, query)
  const { places, rows } = type
  const count = places?.length ?? rows.size
  for (let at = 0; at < count; at++) {
    const place = places ? (places[at] as number) : at // below its length
    if (passes(tests, place)) yield place
  }
}

function passes(tests: readonly Test[], place: number): boolean {
  for (const test of tests) if (!test(place)) return false
  return true
}

// ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function testsOf(type: VisibleType, { namespace, q = '', where = [] }: RowsQuery): readonly Test[] {
  const { namespaces } = type.rows.columns
  const words = [...new Set(q.toLowerCase().split(/\s+/))].filter(Boolean).slice(0, 10)
  return [
    ...(namespace === undefined ? [] : [(place: number) => namespaces[place] === namespace]),
    ...where.map((text) => conditionOf(type, text)),
    ...words.map((word) => wordTest(type.rows, word)),
  ]
}

const condition = /^([^=!<>]+)(!=|=|>|<)(.*)$/s

function conditionOf(type: VisibleType, text: string): Test {
  const [, name, operator, operand = ''] = condition.exec(text) ?? []
  if (name === undefined || operator === undefined)
    throw new RefusedError('invalid_parameter', `where=${text.slice(0, 80)} is none of field=text, !=, > and <`)
  const column = columnOf(type, name.trim())
  if (operator === '=') return (place) => isSame(column(place), operand)
  if (operator === '!=') return (place) => !isSame(column(place), operand)
  const bound = operand.trim() === '' ? Number.NaN : Number(operand)
  if (Number.isNaN(bound))
    throw new RefusedError('invalid_parameter', `where=${text.slice(0, 80)} compares with what is no number`)
  const isAbove = operator === '>'
  return (place) => {
    const value = column(place)
    return typeof value === 'number' && (isAbove ? value > bound : value < bound)
  }
}

/** Nothing is the empty text; a number is meant however it is written. */
function isSame(value: CustomValue, text: string): boolean {
  if (value === null) return text === ''
  if (String(value) === text) return true
  return typeof value === 'number' && text.trim() !== '' && Number(text) === value
}

/** Most columns have few different values: each is looked into once. */
const maxRemembered = 10_000

function wordTest(rows: CustomRows, word: string): Test {
  const { names, namespaces, values } = rows.columns
  const known = new Map<CustomValue, boolean>()
  const holds = (value: CustomValue): boolean => {
    if (value === null) return false
    let has = known.get(value)
    if (has === undefined) {
      has = String(value).toLowerCase().includes(word)
      if (known.size < maxRemembered) known.set(value, has)
    }
    return has
  }
  return (place) =>
    (names[place] ?? '').toLowerCase().includes(word) ||
    holds(namespaces[place] ?? '') ||
    values.some((column) => holds(column[place] ?? null))
}

/** @throws RefusedError `invalid_parameter` with the columns there are */
function columnOf({ rows, source }: VisibleType, name: string): Column {
  const { names, namespaces } = rows.columns
  if (name === 'name') return (place) => names[place] ?? null
  if (name === 'namespace') return (place) => namespaces[place] ?? null
  const values = rows.column(name)
  if (values) return (place) => values[place] ?? null
  const columns = source.columns.map((column) => column.name)
  if (columns.includes(name)) return () => null // declared, and not collected yet
  const known = ['name', 'namespace', ...columns].join(', ')
  throw new RefusedError('invalid_parameter', `there is no column ${JSON.stringify(name.slice(0, 80))}: use ${known}`)
}

// ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Order {
  readonly value: Column
  readonly compare: (left: CustomValue, leftPlace: number, right: CustomValue, rightPlace: number) => number
}

/** By value, then as the rows lie: by namespace, then name. null sorts last, whichever way. */
function orderOf(type: VisibleType, sort: string, order: 'asc' | 'desc'): Order {
  const direction = order === 'asc' ? 1 : -1
  const compare: Order['compare'] = (left, leftPlace, right, rightPlace) => {
    if (left === right) return direction * (leftPlace - rightPlace)
    if (left === null || right === null) return left === null ? 1 : -1
    return direction * (compareValues(left, right) || leftPlace - rightPlace)
  }
  // Rows lie in the order of their namespaces.
  return { value: sort === 'namespace' ? () => null : columnOf(type, sort), compare }
}

type Present = NonNullable<CustomValue>
const ranks: Readonly<Record<string, number>> = { number: 0, boolean: 1, string: 2 }

/** What depends may be of several kinds: each kind stands together. */
function compareValues(left: Present, right: Present): number {
  if (typeof left === 'string' && typeof right === 'string') return byText(left, right)
  if (typeof left !== typeof right) return (ranks[typeof left] ?? 0) - (ranks[typeof right] ?? 0)
  return Number(left) - Number(right)
}

const cursorOf = (rows: CustomRows, place: number, value: CustomValue, sort: string, order: string): string => {
  const { names, namespaces } = rows.columns
  return writeCursor([value, JSON.stringify([namespaces[place], names[place]])], sort, order)
}

/** Where the row of a cursor is, or would be: half a place before the first that comes after it. */
function positionOf(rows: CustomRows, cursor: string, sort: string, order: string) {
  const [value, key] = readCursor(cursor, sort, order)
  const [namespace, name] = keyOf(key)
  const found = rows.indexOf(namespace, name)
  return { value, place: found >= 0 ? found : firstAfter(rows, namespace, name) - 0.5 }
}

function keyOf(text: string): readonly [namespace: string, name: string] {
  let key: unknown
  try {
    key = JSON.parse(text)
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new InvalidCursorError()
  }
  const [namespace, name] = Array.isArray(key) ? (key as unknown[]) : []
  if (typeof namespace !== 'string' || typeof name !== 'string') throw new InvalidCursorError()
  return [namespace, name]
}

function firstAfter(rows: CustomRows, namespace: string, name: string): number {
  const { names, namespaces } = rows.columns
  let [low, high] = [0, rows.size]
  while (low < high) {
    const middle = (low + high) >> 1
    const order = byText(namespaces[middle] ?? '', namespace) || byText(names[middle] ?? '', name)
    if (order > 0) high = middle
    else low = middle + 1
  }
  return low
}

// ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** RFC 4180. A text that a spreadsheet would run as a formula is kept a text by a leading apostrophe; null is empty. */
export function csvCell(value: CustomValue): string {
  if (value === null) return ''
  if (typeof value !== 'string') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** `fields`: names as they are declared, values as they were read. `labels`: as the page says them, for people. */
export type Headings = 'fields' | 'labels'

export function rowsCsv(type: VisibleType, places: readonly number[], headings: Headings = 'fields'): string {
  const columns = headings === 'labels' ? labelledColumns(type) : fieldColumns(type)
  const lines = [columns.map(([heading]) => csvCell(heading)).join(',')]
  for (const place of places) lines.push(columns.map(([, read]) => csvCell(read(place))).join(','))
  return `${lines.join('\r\n')}\r\n`
}

type CsvColumn = readonly [heading: string, read: Column]

function fieldColumns({ rows }: VisibleType): readonly CsvColumn[] {
  const { fields, names, namespaces, values } = rows.columns
  return [
    ['namespace', (place) => namespaces[place] ?? ''],
    ['name', (place) => names[place] ?? ''],
    ...fields.map((field, at): CsvColumn => [field, (place) => values[at]?.[place] ?? null]),
  ]
}

/** Units in the headings, moments in RFC 3339, yes and no; and of which cluster and of when each row is. */
function labelledColumns(type: VisibleType): readonly CsvColumn[] {
  const { cluster, rows, source, state } = type
  const { fields, names, namespaces, values } = rows.columns
  const at = state?.freshness?.observedAt
  const [displayName, asOf] = [cluster.connection?.displayName || null, at === undefined ? null : isoMoment(at)]
  return [
    ['Namespace', (place) => namespaces[place] ?? ''],
    ['Name', (place) => names[place] ?? ''],
    ...fields.map((field, index): CsvColumn => {
      const unit = source.columns.find(({ name }) => name === field)?.unit ?? 'none'
      const heading = unitText[unit] === undefined ? field : `${field} (${unitText[unit]})`
      return [heading, (place) => said(values[index]?.[place] ?? null, unit)]
    }),
    ['Cluster', () => cluster.name],
    ['Display name', () => displayName],
    ['As of', () => asOf],
  ]
}

function said(value: CustomValue, unit: string): CustomValue {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  const at = unit === 'time' ? momentOf(value) : undefined
  return at === undefined ? value : (isoMoment(at) ?? value)
}

/** RFC 3339, in UTC; null where the number is no date. */
function isoMoment(at: number): string | null {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
