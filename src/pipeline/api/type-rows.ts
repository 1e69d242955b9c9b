import type { RowKind } from '#metricsource'
import { absenceWord, momentOf, type ScalarValue, sizeOf, type Table, unitText } from '#model'
import { isFleetKind } from '#resources'
import { atOnce, type Steps } from '#runtime'
import { Best } from './best.ts'
import { absenceOn } from './column-absence.ts'
import { type MatchingTable, matching } from './matching.ts'
import { textOf } from './row-columns.ts'
import type { RowsFilter } from './row-filter.ts'
import { type BoundedTable, type Part, type Position, type Ranged, RowOrder, SPAN } from './row-order.ts'
import { hasRow, listRows } from './row-set.ts'
import type { VisibleType } from './visible-types.ts'

/*
 *  rows that may be seen → namespace, q, where → how many → order → one page of them
 *
 * Over one cluster or many: a kind of row on each of them, in the order of their names. Everything looks at columns, chunk by chunk, and
 * knows of a chunk what it found there before (row-filter.ts, row-order.ts); a row is made only where it is shown.
 */

/** Which of the rows that may be seen, and in which order. */
export interface RowsQuery extends RowsFilter {
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

export type PageQuery = RowsQuery & { readonly limit?: number; readonly cursor?: string }

/**
 * One page. The cursor names the last row seen, so rows that come and go between two pages neither hide nor repeat others.
 * @param types of one kind, sorted by cluster
 * @throws InvalidCursorError, RefusedError `invalid_parameter`
 */
export const pageOfRows = (types: readonly VisibleType[], query: PageQuery): RowsPage => atOnce(pageSteps(types, query))

/** The same, step by step. */
export function* pageSteps(types: readonly VisibleType[], query: PageQuery): Steps<RowsPage> {
  const { limit = 100, sort = 'name', order = 'asc', cursor } = query
  const all = new RowOrder(types, sort, order)
  const after = cursor === undefined ? undefined : all.positionOf(cursor)
  const { tables, total } = yield* matching(types, query)
  const found = all.isNatural
    ? firstLying(tables, limit + 1, order, after?.at)
    : yield* firstSorted(all, tables, limit + 1, after)
  const rows = found.slice(0, limit)
  const last = rows.at(-1)
  const isMore = found.length > limit && last !== undefined
  return { rows: rows.map((at) => locatedIn(types, at)), total, next: isMore ? all.cursorOf(last) : null }
}

const rowsOfPart = new Uint16Array(512)

/** The first, or the last ones backwards; nothing is read of them. */
function firstLying(
  tables: readonly MatchingTable[],
  most: number,
  order: 'asc' | 'desc',
  after: number | undefined,
): readonly number[] {
  const found: number[] = []
  const isRising = order === 'asc'
  for (const { number, parts } of isRising ? tables : tables.toReversed()) {
    for (const { chunk, start: place, rows } of isRising ? parts : parts.toReversed()) {
      if (found.length >= most) return found
      const [size, start] = [sizeOf(chunk), number * SPAN + place]
      if (after !== undefined && (isRising ? start + size <= after : start >= after)) continue
      for (let k = 0; k < size && found.length < most; k++) {
        const row = isRising ? k : size - 1 - k
        const at = start + row
        if (hasRow(rows, row) && (after === undefined || (isRising ? at > after : at < after))) found.push(at)
      }
    }
  }
  return found
}

/**
 * Tables, and of these chunks, with the best bounds first: where none can have a better row than those that were found, the others
 * are not looked at.
 */
function* firstSorted(
  all: RowOrder,
  tables: readonly MatchingTable[],
  most: number,
  after: Position | undefined,
): Steps<readonly number[]> {
  const bounded: BoundedTable[] = []
  for (const found of tables) {
    if (found.parts.length === 0) continue
    const one = yield* all.boundsIn(found)
    if (!after || all.compare(one.last, after) > 0) bounded.push(one)
  }
  const compare = (left: Ranged, right: Ranged): number => all.compare(left.first, right.first)
  const best = new Best<Position>(most, (left, right) => all.compare(left, right))
  for (const { first, parts } of bounded.sort(compare)) {
    if (best.bound && all.compare(first, best.bound) > 0) break
    for (const { part, first, last } of parts(best.bound).sort(compare)) {
      if (best.bound && all.compare(first, best.bound) > 0) break
      if (after && all.compare(last, after) <= 0) continue
      const count = listRows(part.rows, sizeOf(part.chunk), rowsOfPart)
      all.addBest(best, part, rowsOfPart, count, after)
      yield
    }
  }
  return best.sorted().map(({ at }) => at)
}

function locatedIn(types: readonly VisibleType[], at: number): Located {
  return { type: types[Math.floor(at / SPAN)] as VisibleType, place: at % SPAN } // numbers are of these types
}

function* partsOf(tables: readonly MatchingTable[]): Generator<Part> {
  for (const { number, parts } of tables)
    for (const { chunk, start, rows } of parts) yield { number, chunk, start: number * SPAN + start, rows }
}

/** All of them in order. @throws RefusedError `invalid_parameter` */
export const orderedRows = (types: readonly VisibleType[], query: RowsQuery): readonly Located[] =>
  atOnce(orderedSteps(types, query))

/** The same, step by step. */
export function* orderedSteps(types: readonly VisibleType[], query: RowsQuery): Steps<readonly Located[]> {
  const { sort = 'cluster', order = 'asc' } = query
  const all = new RowOrder(types, sort, order)
  const { tables, total } = yield* matching(types, query)
  const found = all.isNatural ? firstLying(tables, total, order, undefined) : yield* all.sorted(partsOf(tables))
  return found.map((at) => locatedIn(types, at))
}

// ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

type Column = (place: number) => ScalarValue

/** RFC 4180. A text that a spreadsheet would run as a formula is kept a text by a leading apostrophe; null is empty. */
export function csvCell(value: ScalarValue): string {
  if (value === null) return ''
  if (typeof value !== 'string') return String(value)
  const safe = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** `fields`: names as they are declared, values as they were read. `labels`: as the page says them, for people. */
export type Headings = 'fields' | 'labels'

/** What is written of each row. */
export interface CsvOptions {
  readonly headings?: Headings
  /** names of those columns alone; absent: all. Where a row is stands there anyway. */
  readonly columns?: readonly string[]
  /** rows of many clusters: each says first which it is of, and last when that was read */
  readonly isFleet?: boolean
}

/** Line by line, with their ends. */
export function* rowsCsv(rows: readonly Located[], source: RowKind, options: CsvOptions = {}): Generator<string> {
  const { headings = 'fields', columns: only, isFleet = false } = options
  const chosen = source.columns.filter(({ name }) => only === undefined || only.includes(name))
  const readers = new Map<VisibleType, readonly Column[]>()
  const titles = headings === 'labels' ? labelTitles(source, chosen) : fieldTitles(chosen)
  const isNamed = isFleet && headings === 'fields' && !isFleetKind(source)
  if (isNamed) {
    titles.unshift('cluster')
    titles.push('observed_at')
  }
  yield `${titles.map(csvCell).join(',')}\r\n`
  for (const { type, place } of rows) {
    let columns = readers.get(type)
    if (!columns) {
      columns = headings === 'labels' ? labelledColumns(type, chosen) : fieldColumns(type, chosen)
      if (isNamed) {
        const observedAt = observedAtOf(type)
        columns = [() => type.cluster.name, ...columns, () => observedAt]
      }
      readers.set(type, columns)
    }
    yield `${columns.map((read) => csvCell(read(place))).join(',')}\r\n`
  }
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
  const { cluster, source } = type
  const displayName = cluster.connection?.displayName || absenceWord.none
  const asOf = observedAtOf(type) ?? absenceWord.unknown
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

/** When the rows were read, RFC 3339; null where that is not known. */
function observedAtOf({ state }: VisibleType): string | null {
  const at = state?.freshness?.observedAt
  return at === undefined ? null : isoMoment(at)
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

/** Of a field that is not there nothing. */
function columnNamed(rows: Table, field: string): Column {
  const value = rows.column(field)
  return (place) => (value ? textOf(value(place)) : null)
}
