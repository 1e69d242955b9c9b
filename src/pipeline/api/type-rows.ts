import type { RowKind } from '#metricsource'
import {
  absenceWord,
  type Health,
  invariant,
  type JsonValue,
  momentOf,
  parseLabelSelector,
  type ScalarValue,
  scalarOf,
  Table,
  unitText,
} from '#model'
import { isFleetKind } from '#resources'
import { Best } from './best.ts'
import { absenceOn } from './column-absence.ts'
import { InvalidCursorError, readCursor, writeCursor } from './page.ts'
import { RefusedError } from './problem.ts'
import { byText } from './views.ts'
import type { VisibleType } from './visible-types.ts'

/*
 *  places that may be seen → namespace, q, where → how many → order → one page of them
 *
 * Over one cluster or many: a kind of row on each of them, in the order of their names. Everything looks at columns; a row is made
 * only where it is shown.
 */

/** Which of the rows that may be seen, and in which order. */
export interface RowsQuery {
  readonly namespace?: string
  /** a label selector */
  readonly labels?: string
  readonly q?: string
  readonly where?: readonly string[]
  readonly sort?: string
  readonly order?: 'asc' | 'desc'
}

/** A row: of which cluster, and where it is there. */
export interface Located {
  readonly type: VisibleType
  readonly place: number
}

export interface RowsPage {
  readonly rows: readonly Located[]
  readonly total: number
  readonly next: string | null
}

type Column = (place: number) => ScalarValue
type Test = (place: number) => boolean

/** A row among several clusters as one number: numbers rise as clusters do by name, and rows by namespace and name. */
const SPAN = 2 ** 32

/**
 * One page. The cursor names the last row seen, so rows that come and go between two pages neither hide nor repeat others.
 * @param types of one kind, sorted by cluster
 * @throws InvalidCursorError, RefusedError `invalid_parameter`
 */
export function pageOfRows(
  types: readonly VisibleType[],
  query: RowsQuery & { limit?: number; cursor?: string },
): RowsPage {
  const { limit = 100, sort = 'name', order = 'asc', cursor } = query
  const all = new Ordered(types, sort, order)
  const after = cursor === undefined ? undefined : all.positionOf(cursor)
  const { found, total } =
    all.isNatural && isUnfiltered(query)
      ? { found: firstLying(types, limit + 1, order, after?.at), total: sum(types.map(countOf)) }
      : firstMatching(types, limit + 1, query, all, after)
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const isMore = found.length > limit && last !== undefined
  return { rows: rows.map((at) => all.located(at)), total, next: isMore ? all.cursorOf(last) : null }
}

function firstMatching(
  types: readonly VisibleType[],
  most: number,
  query: RowsQuery,
  all: Ordered,
  after: Position | undefined,
) {
  const best = new Best<number>(most, (left, right) => all.compare(left, right))
  let total = 0
  for (const at of matching(types, query)) {
    total += 1
    if (!after || all.isBehind(at, after)) best.add(at)
  }
  return { found: best.sorted(), total }
}

// ── rows as they lie: nothing is read of those that are not on the page ──────────────────────────────────────────────

const isUnfiltered = ({ namespace, labels, q = '', where = [] }: RowsQuery): boolean =>
  namespace === undefined && labels === undefined && q.trim() === '' && where.length === 0

const countOf = ({ places, rows }: VisibleType): number => places?.length ?? rows.size
const sum = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0)

/** The first that may be seen, or the last ones backwards. */
function firstLying(
  types: readonly VisibleType[],
  most: number,
  order: 'asc' | 'desc',
  after: number | undefined,
): readonly number[] {
  const found: number[] = []
  const step = order === 'asc' ? 1 : -1
  for (let number = step > 0 ? 0 : types.length - 1; found.length < most; number += step) {
    const type = types[number]
    if (!type) break
    const { places } = type
    const count = countOf(type)
    const bound = after === undefined ? undefined : after - number * SPAN
    let index = step > 0 ? 0 : count - 1
    if (bound !== undefined) index = step > 0 ? countUpTo(type, bound) : countUpTo(type, Math.ceil(bound) - 1) - 1
    for (; index >= 0 && index < count && found.length < most; index += step)
      found.push(number * SPAN + (places ? (places[index] as number) : index)) // below its length
  }
  return found
}

/** How many of the rows that may be seen are at this place or before it. */
function countUpTo({ places, rows }: VisibleType, place: number): number {
  if (!places) return Math.min(Math.max(Math.floor(place) + 1, 0), rows.size)
  let [low, high] = [0, places.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((places[middle] as number) <= place) low = middle + 1
    else high = middle
  }
  return low
}

/** All of them in order. @throws RefusedError `invalid_parameter` */
export function orderedRows(types: readonly VisibleType[], query: RowsQuery): readonly Located[] {
  const { sort = 'cluster', order = 'asc' } = query
  const all = new Ordered(types, sort, order)
  const found = [...matching(types, query)]
  if (all.isNatural) return (order === 'asc' ? found : found.reverse()).map((at) => all.located(at))
  return found.sort((left, right) => all.compare(left, right)).map((at) => all.located(at))
}

/** Those that may be seen and pass the filters of the question, as they lie. */
function* matching(types: readonly VisibleType[], query: RowsQuery): Generator<number> {
  for (const [number, type] of types.entries()) {
    const { places, rows } = type
    const tests = testsOf(type, rows, query)
    const count = countOf(type)
    for (let at = 0; at < count; at++) {
      const place = places ? (places[at] as number) : at // below its length
      if (passes(tests, place)) yield number * SPAN + place
    }
  }
}

function passes(tests: readonly Test[], place: number): boolean {
  for (const test of tests) if (!test(place)) return false
  return true
}

// ── filters ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function testsOf(
  type: VisibleType,
  rows: Table,
  { namespace, labels, q = '', where = [] }: RowsQuery,
): readonly Test[] {
  const words = [...new Set(q.toLowerCase().split(/\s+/))].filter(Boolean).slice(0, 10)
  return [
    ...(namespace === undefined ? [] : [(place: number) => rows.namespaceAt(place) === namespace]),
    ...(labels === undefined ? [] : [labelTest(rows, labels)]),
    ...where.map((text) => conditionOf(type, rows, text)),
    ...words.map((word) => wordTest(type, rows, word)),
  ]
}

/** Most rows share their labels with others: each map is looked at once. @throws RefusedError `invalid_parameter` */
function labelTest(rows: Table, selector: string): Test {
  const test = parseLabelSelector(selector)
  if (typeof test === 'string') throw new RefusedError('invalid_parameter', `labels=${test}`)
  const known = new Map<object, boolean>()
  return (place) => {
    const one = rows.labelsAt(place)
    let passes = known.get(one)
    if (passes === undefined) {
      passes = test(one)
      known.set(one, passes)
    }
    return passes
  }
}

const condition = /^([^=!<>~]+)(!=|!~|>=|<=|=|>|<|~)(.*)$/s

/** Alternatives stand between `||`: one of them has to hold. */
function conditionOf(type: VisibleType, rows: Table, text: string): Test {
  const [first, ...others] = text.split('||').map((one) => comparisonOf(type, rows, one))
  if (!first || others.length === 0) return first ?? (() => true)
  return (place) => first(place) || others.some((test) => test(place))
}

function comparisonOf(type: VisibleType, rows: Table, text: string): Test {
  const [, name = '', operator, operand = ''] = condition.exec(text) ?? []
  if (operator === undefined)
    throw new RefusedError(
      'invalid_parameter',
      `where=${text.slice(0, 80)} is none of field=text, ~, !=, !~, >, <, >= and <=`,
    )
  if (operator === '~' || operator === '!~') {
    const word = operand.toLowerCase()
    const holds = name.trim() === '*' ? wordTest(type, rows, word) : holdsTest(columnOf(type, rows, name.trim()), word)
    return operator === '~' ? holds : (place) => !holds(place)
  }
  const column = columnOf(type, rows, name.trim())
  const values = rows.column(name.trim())
  const wanted = operand.toLowerCase()
  const named = isReference(type, name.trim()) ? afterKind(wanted) : undefined
  // Of a list one of its items.
  const isOne = (place: number): boolean => {
    const value = values?.(place)
    if (Array.isArray(value)) return value.some((one) => isSame(scalarOf(one), wanted))
    if (named !== undefined && typeof value === 'string' && value.includes('/') !== wanted.includes('/'))
      return afterKind(value).toLowerCase() === named
    return isSame(column(place), wanted)
  }
  if (operator === '=') return isOne
  if (operator === '!=') return (place) => !isOne(place)
  const bound = operand.trim() === '' ? Number.NaN : Number(operand)
  const version = /^\s*v?(\d+(\.\d+)*\S*)/.exec(operand)?.[1]
  if (Number.isNaN(bound) && version === undefined)
    throw new RefusedError('invalid_parameter', `where=${text.slice(0, 80)} compares with what is no number`)
  const compare = comparisons[operator] ?? (() => false)
  return (place) => {
    const value = column(place)
    if (typeof value === 'string' && version !== undefined && /^v?\d/.test(value))
      return compare(byNumbers.compare(value.replace(/^v/, ''), version), 0)
    return typeof value === 'number' && compare(value, bound)
  }
}

/** What names an object is found by its name with and without its kind. */
const isReference = ({ source }: VisibleType, name: string): boolean =>
  source.columns.some((column) => column.name === name && column.refersTo === 'object')

const afterKind = (reference: string): string => reference.slice(reference.indexOf('/') + 1)

/** Versions compare number by number. */
const byNumbers = new Intl.Collator('en', { numeric: true })

const comparisons: Readonly<Record<string, (value: number, bound: number) => boolean>> = {
  '>': (value, bound) => value > bound,
  '<': (value, bound) => value < bound,
  '>=': (value, bound) => value >= bound,
  '<=': (value, bound) => value <= bound,
}

const holdsTest =
  (column: Column, word: string): Test =>
  (place) =>
    String(column(place) ?? '')
      .toLowerCase()
      .includes(word)

/**
 * Nothing is the empty text; a number is meant however it is written.
 * @param text in lower case: words are the same in either
 */
function isSame(value: ScalarValue, text: string): boolean {
  if (value === null) return text === ''
  if (String(value).toLowerCase() === text) return true
  return typeof value === 'number' && text.trim() !== '' && Number(text) === value
}

/** Most columns have few different values: each is looked into once. */
const maxRemembered = 10_000

function wordTest({ source }: VisibleType, rows: Table, word: string): Test {
  // Lists and objects that nobody sees without asking are not what a row is called.
  const unsaid = new Set(
    source.columns.filter(({ kind, isExtra }) => kind === 'any' && isExtra).map(({ name }) => name),
  )
  const columns = rows.fields.filter((field) => !unsaid.has(field)).map((field) => columnNamed(rows, field))
  const known = new Map<ScalarValue, boolean>()
  const holds = (value: ScalarValue): boolean => {
    if (value === null) return false
    let has = known.get(value)
    if (has === undefined) {
      has = String(value).toLowerCase().includes(word)
      if (known.size < maxRemembered) known.set(value, has)
    }
    return has
  }
  return (place) =>
    rows.nameAt(place).toLowerCase().includes(word) ||
    holds(rows.namespaceAt(place)) ||
    columns.some((column) => holds(column(place)))
}

/** What can be compared and shown: items of a list with commas, of an object its JSON. Of a field that is not there nothing. */
function columnNamed(rows: Table, field: string): Column {
  const value = rows.column(field)
  return (place) => (value ? textOf(value(place)) : null)
}

const isScalar = (value: JsonValue): boolean => typeof value !== 'object' || value === null
const textOf = (value: JsonValue): ScalarValue =>
  Array.isArray(value) && value.every(isScalar) ? value.join(', ') || null : scalarOf(value)

/** @throws RefusedError `invalid_parameter` with the columns there are */
function columnOf({ source, cluster }: VisibleType, rows: Table, name: string): Column {
  if (name === 'name') return (place) => source.rowName(rows.nameAt(place))
  if (name === 'cluster') return () => cluster.name
  if (name === 'namespace') return (place) => rows.namespaceAt(place)
  if (rows.fields.includes(name)) return columnNamed(rows, name)
  const columns = source.columns.map((column) => column.name)
  if (columns.includes(name)) return () => null // declared, and not collected yet
  const known = ['name', 'namespace', 'cluster', ...columns].join(', ')
  throw new RefusedError('invalid_parameter', `there is no column ${JSON.stringify(name.slice(0, 80))}: use ${known}`)
}

// ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const ranks: Readonly<Record<Health, number>> = { unhealthy: 0, degraded: 1, unknown: 2, healthy: 3 }

/**
 * What rows are compared by: of words that say how well something is that first, of versions their numbers.
 * @throws RefusedError `invalid_parameter`
 */
function orderOf(type: VisibleType, rows: Table, sort: string): Column {
  const column = columnOf(type, rows, sort)
  const { health, isVersion } = type.source.columns.find(({ name }) => name === sort) ?? {}
  if (isVersion) return versionsOf(column)
  return health ? keyed(column, (word) => `${ranks[health[word] ?? 'degraded']} ${word}`) : column
}

/** Numbers with their digits filled up, so that they compare as text; what is appended sorts a pre-release before its release, and 1.2 before 1.2.3. */
const versionsOf = (column: Column): Column =>
  keyed(column, (word) => {
    const filled = word.replace(/^v(?=\d)/, '').replaceAll(/\d+/g, (digits) => digits.padStart(10, '0'))
    return `${filled}#`.replace('-', '!')
  })

/** Words by a key that is made once of each; other values as they are. */
function keyed(column: Column, keyOf: (word: string) => string): Column {
  const keys = new Map<string, string>()
  return (place) => {
    const word = column(place)
    if (typeof word !== 'string') return word
    let key = keys.get(word)
    if (key === undefined) {
      key = keyOf(word)
      keys.set(word, key)
    }
    return key
  }
}

/** What rows of a type are sorted by, by place. @throws RefusedError `invalid_parameter` */
export const sortValues = (type: VisibleType, sort: string): Column => orderOf(type, type.rows, sort)

/** A row with what it is sorted by, wherever its table is. */
export interface Placed {
  readonly value: ScalarValue
  readonly cluster: string
  readonly namespace: string
  readonly name: string
}

/** The order of `orderedRows`, of rows one by one. */
export function comparePlaced(left: Placed, right: Placed, order: 'asc' | 'desc'): number {
  const direction = order === 'asc' ? 1 : -1
  const lies = (): number =>
    byText(left.cluster, right.cluster) || byText(left.namespace, right.namespace) || byText(left.name, right.name)
  if (left.value === right.value) return direction * lies()
  if (left.value === null || right.value === null) return left.value === null ? 1 : -1
  return direction * (compareValues(left.value, right.value) || lies())
}

type Position = { readonly value: ScalarValue; readonly at: number }

/** Whether rows are in one namespace, and called what they are sorted by. */
function liesByName({ rows, source }: VisibleType): boolean {
  if (rows.size === 0) return true
  const name = rows.nameAt(0)
  return source.rowName(name) === name && rows.namespaceAt(0) === rows.namespaceAt(rows.size - 1)
}

/** Rows of several clusters in one order: by value, then as they lie. null sorts last, whichever way. */
class Ordered {
  /** rows already lie in this order */
  readonly isNatural: boolean
  readonly #types: readonly VisibleType[]
  readonly #rows: readonly Table[]
  readonly #columns: readonly Column[]
  readonly #sort: string
  readonly #order: 'asc' | 'desc'

  /** @throws RefusedError `invalid_parameter`: there is no such column */
  constructor(types: readonly VisibleType[], sort: string, order: 'asc' | 'desc') {
    this.#types = types
    this.#rows = types.map(({ rows }) => rows)
    // Clusters stand by name, and rows of one by namespace, then by name.
    const isOne = types.length < 2
    this.isNatural =
      sort === 'cluster' || (isOne && (sort === 'namespace' || (sort === 'name' && types.every(liesByName))))
    this.#columns = this.isNatural ? [] : types.map((type, at) => orderOf(type, this.#rows[at] ?? Table.empty, sort))
    this.#sort = sort
    this.#order = order
  }

  compare(left: number, right: number): number {
    return this.#compare({ value: this.#value(left), at: left }, { value: this.#value(right), at: right })
  }

  isBehind(at: number, after: Position): boolean {
    return this.#compare({ value: this.#value(at), at }, after) > 0
  }

  located(at: number): Located {
    const [type] = this.#of(at)
    return { type, place: at % SPAN }
  }

  cursorOf(at: number): string {
    const [type, rows] = this.#of(at)
    const place = at % SPAN
    const key = JSON.stringify([type.cluster.name, rows.namespaceAt(place), rows.nameAt(place)])
    // By name rows may lie in order on this page, and not on the next.
    const value = this.#sort === 'name' ? type.source.rowName(rows.nameAt(place)) : this.#value(at)
    return writeCursor([value, key], this.#sort, this.#order)
  }

  /** Where the row of a cursor is, or would be: half a place before the first that comes after it. @throws InvalidCursorError */
  positionOf(cursor: string): Position {
    const [written, key] = readCursor(cursor, this.#sort, this.#order)
    const value = this.isNatural ? null : written
    const [cluster, namespace, name] = keyOf(key)
    const number = this.#types.findIndex((type) => byText(type.cluster.name, cluster) >= 0)
    if (number < 0) return { value, at: this.#types.length * SPAN }
    const rows = this.#rows[number] ?? Table.empty
    if (this.#types[number]?.cluster.name !== cluster) return { value, at: number * SPAN - 0.5 }
    return { value, at: number * SPAN + this.#placeOf(rows, namespace, name) }
  }

  /** Where the row is; half a place off where it would be. */
  #placeOf(rows: Table, namespace: string, name: string): number {
    // By name rows lie in order where they are of one namespace, which those of the page before may not have been.
    const own = this.isNatural && this.#sort === 'name' && rows.size > 0 ? rows.namespaceAt(0) : namespace
    const found = rows.indexOf(own, name)
    if (found < 0) return rows.firstNotBefore(own, name) - 0.5
    return found + Math.sign(byText(namespace, own)) / 2
  }

  #of(at: number): readonly [VisibleType, Table] {
    const number = Math.floor(at / SPAN)
    const type = this.#types[number]
    invariant(type, 'a row is of one of the clusters')
    return [type, this.#rows[number] ?? Table.empty]
  }

  /** What rows are compared by besides where they lie. */
  #value(at: number): ScalarValue {
    return this.isNatural ? null : (this.#columns[Math.floor(at / SPAN)]?.(at % SPAN) ?? null)
  }

  #compare(left: Position, right: Position): number {
    const direction = this.#order === 'asc' ? 1 : -1
    if (left.value === right.value) return direction * (left.at - right.at)
    if (left.value === null || right.value === null) return left.value === null ? 1 : -1
    return direction * (compareValues(left.value, right.value) || left.at - right.at)
  }
}

type Present = NonNullable<ScalarValue>
const kindRanks: Readonly<Record<string, number>> = { number: 0, boolean: 1, string: 2 }

/** What depends may be of several kinds: each kind stands together. */
function compareValues(left: Present, right: Present): number {
  if (typeof left === 'string' && typeof right === 'string') return byText(left, right)
  if (typeof left !== typeof right) return (kindRanks[typeof left] ?? 0) - (kindRanks[typeof right] ?? 0)
  return Number(left) - Number(right)
}

function keyOf(text: string): readonly [cluster: string, namespace: string, name: string] {
  let key: unknown
  try {
    key = JSON.parse(text)
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new InvalidCursorError()
  }
  const [cluster, namespace, name] = Array.isArray(key) ? (key as unknown[]) : []
  if (typeof cluster !== 'string' || typeof namespace !== 'string' || typeof name !== 'string')
    throw new InvalidCursorError()
  return [cluster, namespace, name]
}

// ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** RFC 4180. A text that a spreadsheet would run as a formula is kept a text by a leading apostrophe; null is empty. */
export function csvCell(value: ScalarValue): string {
  if (value === null) return ''
  if (typeof value !== 'string') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** `fields`: names as they are declared, values as they were read. `labels`: as the page says them, for people. */
export type Headings = 'fields' | 'labels'

/** What is written of each row. */
export interface CsvOptions {
  readonly headings?: Headings
  /** names of those columns alone; absent: all. Where a row is stands there anyway. */
  readonly columns?: readonly string[]
  /** rows of many clusters: each says first which it is of */
  readonly isFleet?: boolean
}

export function rowsCsv(rows: readonly Located[], source: RowKind, options: CsvOptions = {}): string {
  const { headings = 'fields', columns: only, isFleet = false } = options
  const chosen = source.columns.filter(({ name }) => only === undefined || only.includes(name))
  const readers = new Map<VisibleType, readonly Column[]>()
  const titles = headings === 'labels' ? labelTitles(source, chosen) : fieldTitles(chosen)
  const isNamed = isFleet && headings === 'fields' && !isFleetKind(source)
  if (isNamed) titles.unshift('cluster')
  const lines = [titles.map(csvCell).join(',')]
  for (const { type, place } of rows) {
    let columns = readers.get(type)
    if (!columns) {
      columns = headings === 'labels' ? labelledColumns(type, chosen) : fieldColumns(type, chosen)
      if (isNamed) columns = [() => type.cluster.name, ...columns]
      readers.set(type, columns)
    }
    lines.push(columns.map((read) => csvCell(read(place))).join(','))
  }
  return `${lines.join('\r\n')}\r\n`
}

type Columns = RowKind['columns']

const fieldTitles = (columns: Columns): string[] => ['namespace', 'name', ...columns.map(({ name }) => name)]

function fieldColumns({ rows, source }: VisibleType, columns: Columns): readonly Column[] {
  return [
    (place) => rows.namespaceAt(place),
    (place) => source.rowName(rows.nameAt(place)),
    ...columns.map(({ name }) => columnNamed(rows, name)),
  ]
}

/** Units in the headings, moments in RFC 3339, yes and no, words where there is no value; and of which cluster and of when each row is. */
const labelTitles = (kind: RowKind, columns: Columns): string[] => [
  'Namespace',
  'Name',
  ...columns.map(({ name, label = name, unit }) =>
    unitText[unit] === undefined ? label : `${label} (${unitText[unit]})`,
  ),
  ...(isFleetKind(kind) ? [] : ['Cluster', 'Display name', 'As of']),
]

function labelledColumns(type: VisibleType, columns: Columns): readonly Column[] {
  const { cluster, source, state } = type
  const at = state?.freshness?.observedAt
  const displayName = cluster.connection?.displayName || absenceWord.none
  const asOf = (at === undefined ? null : isoMoment(at)) ?? absenceWord.unknown
  const [namespace, name, ...values] = fieldColumns(type, columns) as [Column, Column, ...Column[]]
  return [
    namespace,
    name,
    ...columns.map((column, index): Column => {
      const nothing = absenceWord[absenceOn(column, type)]
      return (place) => said(values[index]?.(place) ?? null, column.unit) ?? nothing
    }),
    ...(isFleetKind(source) ? [] : [() => cluster.name, () => displayName, () => asOf]),
  ]
}

function said(value: ScalarValue, unit: string): ScalarValue {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  const at = unit === 'time' ? momentOf(value) : undefined
  return at === undefined ? value : (isoMoment(at) ?? value)
}

/** RFC 3339, in UTC; null where the number is no date. */
function isoMoment(at: number): string | null {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? null : date.toISOString()
}
