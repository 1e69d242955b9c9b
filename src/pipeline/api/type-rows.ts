import type { ResourceDescriptor } from '#metricsource'
import { type CustomValue, invariant, momentOf, parseLabelSelector, scalarOf, Table, unitText } from '#model'
import { Best } from './best.ts'
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

type Column = (place: number) => CustomValue
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
  const best = new Best<number>(limit + 1, (left, right) => all.compare(left, right))
  let total = 0
  for (const at of matching(types, query)) {
    total += 1
    if (!after || all.isBehind(at, after)) best.add(at)
  }
  const found = best.sorted()
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const isMore = found.length > limit && last !== undefined
  return { rows: rows.map((at) => all.located(at)), total, next: isMore ? all.cursorOf(last) : null }
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
    const count = places?.length ?? rows.size
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
    ...words.map((word) => wordTest(rows, word)),
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

const condition = /^([^=!<>]+)(!=|=|>|<)(.*)$/s

function conditionOf(type: VisibleType, rows: Table, text: string): Test {
  const [, name, operator, operand = ''] = condition.exec(text) ?? []
  if (name === undefined || operator === undefined)
    throw new RefusedError('invalid_parameter', `where=${text.slice(0, 80)} is none of field=text, !=, > and <`)
  const column = columnOf(type, rows, name.trim())
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

function wordTest(rows: Table, word: string): Test {
  const columns = rows.fields.map((field) => columnNamed(rows, field))
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
    rows.nameAt(place).toLowerCase().includes(word) ||
    holds(rows.namespaceAt(place)) ||
    columns.some((column) => holds(column(place)))
}

/** What can be compared and shown: of a list or an object its JSON. Of a field that is not there nothing. */
function columnNamed(rows: Table, field: string): Column {
  const value = rows.column(field)
  return (place) => (value ? scalarOf(value(place)) : null)
}

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

type Position = { readonly value: CustomValue; readonly at: number }

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
    // Clusters stand by name, and rows of one by namespace.
    this.isNatural = sort === 'cluster' || (sort === 'namespace' && types.length < 2)
    this.#columns = this.isNatural ? [] : types.map((type, at) => columnOf(type, this.#rows[at] ?? Table.empty, sort))
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
    return writeCursor([this.#value(at), key], this.#sort, this.#order)
  }

  /** Where the row of a cursor is, or would be: half a place before the first that comes after it. @throws InvalidCursorError */
  positionOf(cursor: string): Position {
    const [value, key] = readCursor(cursor, this.#sort, this.#order)
    const [cluster, namespace, name] = keyOf(key)
    const number = this.#types.findIndex((type) => byText(type.cluster.name, cluster) >= 0)
    if (number < 0) return { value, at: this.#types.length * SPAN }
    const rows = this.#rows[number] ?? Table.empty
    if (this.#types[number]?.cluster.name !== cluster) return { value, at: number * SPAN - 0.5 }
    const found = rows.indexOf(namespace, name)
    return { value, at: number * SPAN + (found >= 0 ? found : rows.firstNotBefore(namespace, name) - 0.5) }
  }

  #of(at: number): readonly [VisibleType, Table] {
    const number = Math.floor(at / SPAN)
    const type = this.#types[number]
    invariant(type, 'a row is of one of the clusters')
    return [type, this.#rows[number] ?? Table.empty]
  }

  #value(at: number): CustomValue {
    return this.isNatural ? null : (this.#columns[Math.floor(at / SPAN)]?.(at % SPAN) ?? null)
  }

  #compare(left: Position, right: Position): number {
    const direction = this.#order === 'asc' ? 1 : -1
    if (left.value === right.value) return direction * (left.at - right.at)
    if (left.value === null || right.value === null) return left.value === null ? 1 : -1
    return direction * (compareValues(left.value, right.value) || left.at - right.at)
  }
}

type Present = NonNullable<CustomValue>
const ranks: Readonly<Record<string, number>> = { number: 0, boolean: 1, string: 2 }

/** What depends may be of several kinds: each kind stands together. */
function compareValues(left: Present, right: Present): number {
  if (typeof left === 'string' && typeof right === 'string') return byText(left, right)
  if (typeof left !== typeof right) return (ranks[typeof left] ?? 0) - (ranks[typeof right] ?? 0)
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
export function csvCell(value: CustomValue): string {
  if (value === null) return ''
  if (typeof value !== 'string') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** `fields`: names as they are declared, values as they were read. `labels`: as the page says them, for people. */
export type Headings = 'fields' | 'labels'

/** @param isFleet rows of many clusters: each says first which it is of */
export function rowsCsv(
  rows: readonly Located[],
  source: ResourceDescriptor,
  headings: Headings,
  isFleet = false,
): string {
  const readers = new Map<VisibleType, readonly Column[]>()
  const titles = (headings === 'labels' ? labelTitles(source) : fieldTitles(source)).slice()
  if (isFleet && headings === 'fields') titles.unshift('cluster')
  const lines = [titles.map(csvCell).join(',')]
  for (const { type, place } of rows) {
    let columns = readers.get(type)
    if (!columns) {
      columns = headings === 'labels' ? labelledColumns(type) : fieldColumns(type)
      if (isFleet && headings === 'fields') columns = [() => type.cluster.name, ...columns]
      readers.set(type, columns)
    }
    lines.push(columns.map((read) => csvCell(read(place))).join(','))
  }
  return `${lines.join('\r\n')}\r\n`
}

const fieldTitles = ({ columns }: ResourceDescriptor): string[] => [
  'namespace',
  'name',
  ...columns.map(({ name }) => name),
]

function fieldColumns({ rows, source }: VisibleType): readonly Column[] {
  return [
    (place) => rows.namespaceAt(place),
    (place) => source.rowName(rows.nameAt(place)),
    ...source.columns.map(({ name }) => columnNamed(rows, name)),
  ]
}

/** Units in the headings, moments in RFC 3339, yes and no; and of which cluster and of when each row is. */
const labelTitles = ({ columns }: ResourceDescriptor): string[] => [
  'Namespace',
  'Name',
  ...columns.map(({ name, label = name, unit }) =>
    unitText[unit] === undefined ? label : `${label} (${unitText[unit]})`,
  ),
  'Cluster',
  'Display name',
  'As of',
]

function labelledColumns(type: VisibleType): readonly Column[] {
  const { cluster, source, state } = type
  const at = state?.freshness?.observedAt
  const [displayName, asOf] = [cluster.connection?.displayName || null, at === undefined ? null : isoMoment(at)]
  const [namespace, name, ...values] = fieldColumns(type) as [Column, Column, ...Column[]]
  return [
    namespace,
    name,
    ...source.columns.map(
      ({ unit }, index): Column =>
        (place) =>
          said(values[index]?.(place) ?? null, unit),
    ),
    () => cluster.name,
    () => displayName,
    () => asOf,
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
