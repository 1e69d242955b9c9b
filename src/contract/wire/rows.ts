import {
  type Aggregated,
  type BatchView,
  type FieldReport,
  incompleteTargets,
  invariant,
  type JsonValue,
  type Keys,
  keepsRows,
  type Labels,
  MAX_TABLE_ROWS,
  type RowsError,
  type RowsFacts,
  type RowsPart,
  Table,
  type TableColumns,
} from '#model'
import { type Codec, type Decoding, ELEMENT_COST, type Encoding, readColumn, writeColumn } from './column.ts'
import { WireError } from './errors.ts'
import { recordCodec, setOwn } from './nested.ts'
import { readPlaces, writePlaces } from './places.ts'
import { numberCodec, scalarCodec, textCodec, valueCodec } from './scalars.ts'

/*
 * What a MetricSource saw, as the slot `custom` among the parts of a body: rows in columns whose names come with them. A
 * difference tells of rows what those of a snapshot do, and of the facts what is not as in the base.
 */
type PartWithRows = Extract<RowsPart, { outcome: 'complete' | 'changed' }>
type Complete = Extract<RowsPart, { outcome: 'complete' }>
export type RowsSeen = RowsFacts & { readonly hash: string }

const MAX_FIELDS = 512
const MAX_SOURCES = 200
/** Of one row, besides 1 for each of its values: it is no object, but a place in every column. */
const ROW_COST = 8

const outcomes = ['complete', 'changed', 'absent', 'forbidden', 'unreachable'] as const
const unread = ['absent', 'forbidden', 'unreachable'] as const

const scalar = scalarCodec()
const value = valueCodec()
const text = textCodec(false, undefined)
const count = numberCodec(false, true)
const duration = numberCodec(false, false)
const labelMap = recordCodec(false, text)
const group = recordCodec(false, scalar)

/** What of the facts is as the base has it. */
const SAME_HASH = 1
const SAME_AGGREGATIONS = 2
const SAME_ERRORS = 4
const SAME_REPORTS = 8
const TRUNCATED = 16
/** The check of the base is its sum. */
const SUM = 32

export function writeRowsPart(part: RowsPart, base: BatchView | undefined, into: Encoding): void {
  invariant(part.outcome !== 'changed', 'a batch to be sent has complete parts')
  const known = part.outcome === 'complete' ? base?.tables?.get(part.source) : undefined
  const isChange =
    part.outcome === 'complete' &&
    known !== undefined &&
    sameTexts(known.fields, part.rows.fields) &&
    !isWholeAgain(part, base)
  into.to.u8(outcomes.indexOf(isChange ? 'changed' : part.outcome))
  into.text(part.source)
  writeColumn(duration, [part.durationMs], into)
  if (part.outcome !== 'complete') {
    into.text(part.hash)
    into.text(part.code)
    into.text(part.message)
    return
  }
  writeFacts(part, isChange ? { base: base?.tableFacts?.get(part.source) } : undefined, into)
  if (isChange) writeRowChanges(part.rows, known, into)
  else {
    writeTexts(part.rows.fields, into)
    writeRows(part.rows, into)
  }
}

/** What stood beside an incomplete table is in no base: only all rows together say that it is gone, target by target. */
function isWholeAgain(part: Complete, base: BatchView | undefined): boolean {
  const before = base?.tableFacts?.get(part.source)
  if (before === undefined || !keepsRows(before)) return false
  if (!keepsRows(part)) return true
  const [former, now] = [incompleteTargets(before), incompleteTargets(part)]
  return now !== undefined && (former === undefined || [...former].some((target) => !now.has(target)))
}

export function readRowsPart(base: BatchView | undefined, out: Decoding): RowsPart {
  const outcome = outcomes[out.from.u8()]
  if (!outcome) throw new WireError('the outcome of a part is unknown')
  // One value that is neither null nor absent.
  const head = { source: out.text(), durationMs: readColumn(duration, false, 1, out)[0] as number }
  if (outcome !== 'complete' && outcome !== 'changed')
    return { ...head, hash: out.text(), outcome, code: out.text(), message: out.text() }
  const isChange = outcome === 'changed'
  const rows = isChange ? base?.tables?.get(head.source) : undefined
  if (isChange && !rows)
    throw new WireError(`the base has no rows of ${head.source.slice(0, 80)}`, { code: 'base_mismatch' })
  const { facts, isSum } = readFacts(isChange ? base?.tableFacts?.get(head.source) : undefined, out)
  if (rows)
    return { ...head, ...facts, outcome: 'changed', ...readRowChanges(rows, isSum ? sumOf(rows) : checkOf(rows), out) }
  return { ...head, ...facts, outcome: 'complete', rows: readRows(readTexts(MAX_FIELDS, out), out) }
}

/** Rows and facts of every source after the batch; nothing where no source ever was. */
export function rowsViewOf(
  parts: readonly RowsPart[] = [],
  base: BatchView = {},
): Pick<BatchView, 'tables' | 'tableFacts'> {
  const given = parts.filter((part): part is PartWithRows => part.outcome === 'complete' || part.outcome === 'changed')
  if (given.length === 0) return {}
  const tables = new Map(base.tables)
  const tableFacts = new Map(base.tableFacts)
  for (const part of given) {
    const { source } = part
    const before = tables.get(source) ?? Table.empty
    tables.set(source, part.outcome === 'complete' ? part.rows : before.patch(part.put, part.removed))
    tableFacts.set(source, seenOf(part))
  }
  return { tables, tableFacts }
}

const seenOf = ({ hash, aggregations, truncated, errors, errorCount, reports }: PartWithRows): RowsSeen => ({
  hash,
  aggregations,
  truncated,
  errors,
  errorCount,
  reports,
})

/** @throws WireError where there are more than a batch may have, or one is there twice */
export function checkSources(parts: readonly RowsPart[]): void {
  if (parts.length > MAX_SOURCES) throw new WireError('the batch has too many sources')
  if (new Set(parts.map(({ source }) => source)).size < parts.length) throw new WireError('a source is there twice')
}

// Facts

/** @param change there where the part is told as a difference */
function writeFacts(part: Complete, change: { readonly base: RowsSeen | undefined } | undefined, into: Encoding): void {
  const base = change?.base
  const same =
    (base?.hash === part.hash ? SAME_HASH : 0) |
    (base && sameAggregations(base.aggregations, part.aggregations) ? SAME_AGGREGATIONS : 0) |
    (base && base.errorCount === part.errorCount && sameList(base.errors, part.errors) ? SAME_ERRORS : 0) |
    (base && sameList(base.reports, part.reports) ? SAME_REPORTS : 0)
  into.to.u8(same | (part.truncated ? TRUNCATED : 0) | (change && into.rowSums ? SUM : 0))
  if (!(same & SAME_HASH)) into.text(part.hash)
  if (!(same & SAME_AGGREGATIONS)) writeAggregations(part.aggregations, into)
  if (!(same & SAME_ERRORS)) writeErrors(part, into)
  if (!(same & SAME_REPORTS)) writeReports(part.reports, into)
}

function readFacts(base: RowsSeen | undefined, out: Decoding): { readonly facts: RowsSeen; readonly isSum: boolean } {
  const same = out.from.u8()
  if (same > (SAME_HASH | SAME_AGGREGATIONS | SAME_ERRORS | SAME_REPORTS | TRUNCATED | SUM))
    throw new WireError('a part says things of itself that are unknown')
  const known = (bit: number): RowsSeen | undefined => {
    if (!(same & bit)) return undefined
    if (!base) throw new WireError('the base has no such facts', { code: 'base_mismatch' })
    return base
  }
  const hash = known(SAME_HASH)?.hash ?? out.text()
  const aggregations = known(SAME_AGGREGATIONS)?.aggregations ?? readAggregations(out)
  const { errors, errorCount } = known(SAME_ERRORS) ?? readErrors(out)
  const reports = known(SAME_REPORTS)?.reports ?? readReports(out)
  const facts = { hash, aggregations, truncated: (same & TRUNCATED) !== 0, errors, errorCount, reports }
  return { facts, isSum: (same & SUM) !== 0 }
}

function writeAggregations(aggregations: RowsFacts['aggregations'], into: Encoding): void {
  const names = Object.keys(aggregations)
  const values = Object.values(aggregations)
  writeTexts(names, into)
  into.to.bits(values.map(isGroup))
  writeList(
    scalar,
    values.filter((value) => !isGroup(value)),
    into,
  )
  writeList(group, values.filter(isGroup), into)
}

function readAggregations(out: Decoding): RowsFacts['aggregations'] {
  const names = readTexts(Number.POSITIVE_INFINITY, out)
  const grouped = out.from.bits(names.length)
  const groups = grouped.filter((isGrouped) => isGrouped).length
  const scalars = readList(scalar, names.length - groups, out).values()
  const maps = readList(group, groups, out).values()
  const made: Record<string, Aggregated> = {}
  for (const [place, name] of names.entries())
    setOwn(made, name, (grouped[place] ? maps : scalars).next().value as Aggregated)
  return made
}

function writeErrors({ errors, errorCount }: RowsFacts, into: Encoding): void {
  into.to.varint(errorCount)
  into.to.varint(errors.length)
  into.charge(errors.length * 4 * ELEMENT_COST)
  for (const { namespace, outcome, code, message } of errors) {
    into.text(namespace)
    into.to.u8(unread.indexOf(outcome))
    into.text(code)
    into.text(message)
  }
}

function readErrors(out: Decoding): Pick<RowsFacts, 'errors' | 'errorCount'> {
  const errorCount = out.from.varint()
  const errors: RowsError[] = []
  const given = out.from.varint()
  out.charge(given * 4 * ELEMENT_COST)
  for (let i = 0; i < given; i++) {
    const namespace = out.text()
    const outcome = unread[out.from.u8()]
    if (!outcome) throw new WireError('the outcome of a namespace is unknown')
    errors.push({ namespace, outcome, code: out.text(), message: out.text() })
  }
  return { errors, errorCount }
}

function writeReports(reports: readonly FieldReport[], into: Encoding): void {
  writeTexts(
    reports.map(({ field }) => field),
    into,
  )
  into.charge(reports.length * 3 * ELEMENT_COST)
  const columns = [
    writeOf(count, ({ missing }) => missing),
    writeOf(count, ({ malformed }) => malformed),
    writeOf(text, ({ example }) => example),
  ]
  if (reports.length > 0) for (const write of columns) write()

  function writeOf(codec: Codec, get: (report: FieldReport) => unknown) {
    return () => writeColumn(codec, reports.map(get), into)
  }
}

function readReports(out: Decoding): readonly FieldReport[] {
  const fields = readTexts(Number.POSITIVE_INFINITY, out)
  out.charge(fields.length * 3 * ELEMENT_COST)
  if (fields.length === 0) return []
  const missing = readColumn(count, false, fields.length, out) as number[]
  const malformed = readColumn(count, false, fields.length, out) as number[]
  const examples = readColumn(text, false, fields.length, out) as string[]
  return fields.map((field, i) => ({
    field,
    missing: missing[i] ?? 0,
    malformed: malformed[i] ?? 0,
    example: examples[i] ?? '',
  }))
}

// Rows

function writeRows(rows: Table, into: Encoding): void {
  const { to } = into
  const { namespaces, names, labels, values } = rows.toColumns()
  checkSize(rows.size)
  if (values.length > MAX_FIELDS) throw new WireError('a source has more fields than a part may hold')
  to.varint(rows.size)
  into.charge(rows.size * (ROW_COST + values.length))
  if (rows.size === 0) return
  writeColumn(text, namespaces, into)
  writeColumn(text, names, into)
  writeColumn(labelMap, labels, into)
  for (const column of values) writeColumn(value, column, into)
}

function readRows(fields: readonly string[], out: Decoding): Table {
  const size = out.from.varint()
  checkSize(size)
  out.charge(size * (ROW_COST + fields.length))
  if (size === 0) return Table.of(fields, [])
  const column = (codec: Codec) => readColumn(codec, false, size, out)
  return checked({
    fields,
    namespaces: column(text) as string[],
    names: column(text) as string[],
    labels: column(labelMap) as Record<string, string>[],
    values: fields.map(() => column(value) as JsonValue[]),
  })
}

function checkSize(rows: number): void {
  if (rows > MAX_TABLE_ROWS)
    throw new WireError(`a source has ${rows} rows, and a table holds at most ${MAX_TABLE_ROWS}`)
}

function checked(columns: TableColumns): Table {
  const rows = Table.from(columns)
  if (!rows) throw new WireError('the rows of a source make no table')
  return rows
}

const ALL_ROWS = 0
const SOME_ROWS = 1

function writeRowChanges(rows: Table, base: Table, into: Encoding): void {
  const { to } = into
  const { changed, before, added, removed } = rows.changes(base)
  to.varint(base.size)
  to.u32(into.rowSums ? sumOf(base) : checkOf(base))
  writePlaces(removed, to)
  writePlaces(before, to)
  if (changed.length > 0) writeChangedColumns(base.only(before), rows.only(changed), into)
  writeRows(rows.only(added), into)
}

function writeChangedColumns(before: Table, after: Table, into: Encoding): void {
  const { to } = into
  into.charge(after.size * (ROW_COST + after.fields.length))
  const [old, now] = [before.toColumns(), after.toColumns()]
  const columns = [
    { codec: labelMap, old: old.labels as readonly unknown[], now: now.labels as readonly unknown[] },
    ...now.values.map((values, i) => ({ codec: value, old: old.values[i] ?? [], now: values })),
  ].map(({ codec, old, now }) => ({ codec, now, differs: now.map((one, i) => !sameValue(codec, old[i], one)) }))
  to.bits(columns.map(({ differs }) => differs.includes(true)))
  for (const { codec, now, differs } of columns) {
    if (!differs.includes(true)) continue
    const isAll = !differs.includes(false)
    to.u8(isAll ? ALL_ROWS : SOME_ROWS)
    if (!isAll) to.bits(differs)
    writeColumn(codec, isAll ? now : now.filter((_, i) => differs[i]), into)
  }
}

function readRowChanges(
  base: Table,
  check: number,
  out: Decoding,
): { readonly put: Table; readonly removed: readonly string[] } {
  const { from } = out
  if (from.varint() !== base.size || from.u32() !== check)
    throw new WireError('the difference is to another base', { code: 'base_mismatch' })
  const removed = readPlaces(base.size, from).map((place) => base.idAt(place))
  const places = readPlaces(base.size, from)
  const changed = places.length > 0 ? readChangedColumns(base, places, out) : base.only([])
  const added = readRows(base.fields, out)
  checkSize(base.size - removed.length + added.size)
  return { put: added.size === 0 ? changed : changed.patch(added, []), removed }
}

function readChangedColumns(base: Table, places: readonly number[], out: Decoding): Table {
  const { fields } = base
  const size = places.length
  out.charge(size * (ROW_COST + fields.length))
  const given = out.from.bits(1 + fields.length)
  const column = <T>(codec: Codec, before: ((place: number) => T) | undefined): readonly T[] => {
    const rows = out.from.u8()
    // The codec of the column gives values of its kind.
    if (rows === ALL_ROWS) return readColumn(codec, false, size, out) as T[]
    if (rows !== SOME_ROWS) throw new WireError(`the choice ${rows} of rows is unknown`)
    const differs = out.from.bits(size)
    const values = readList(codec, differs.filter((differ) => differ).length, out) as T[]
    let next = 0
    return places.map((place, i) => (differs[i] ? values[next++] : before?.(place)) as T)
  }
  const labels = given[0] ? column<Labels>(labelMap, (place) => base.labelsAt(place)) : undefined
  const values: (readonly JsonValue[] | undefined)[] = []
  for (let i = 0; i < fields.length; i++) {
    values.push(given[i + 1] ? column<JsonValue>(value, base.column(fields[i] as string)) : undefined)
  }
  const rows = base.changedAt(places, labels, values)
  if (!rows) throw new WireError('the rows of a source make no table')
  return rows
}

/** Where FNV-1a of 32 bit begins. */
const FNV = 0x811c9dc5

/** What a check was before and after the namespaces, and the names, of a chunk. */
interface Passed {
  namespaces: readonly [before: number, after: number]
  names: readonly [before: number, after: number]
}

const passed = new WeakMap<Keys, Passed>()
const NEVER = [-1, -1] as const

/**
 * FNV-1a over the fields, then all namespaces, then all names: tells a base of others from the right one. Of a chunk whose keys
 * were passed with the same hash before, what came out is known: values that change cost nothing.
 */
function checkOf(table: Table): number {
  const known = checks.get(table.keys)
  if (known !== undefined) return known
  const check = checkOfKeys(table)
  checks.set(table.keys, check)
  return check
}

const checks = new WeakMap<object, number>()

function checkOfKeys({ fields, chunks }: Table): number {
  let hash = FNV
  for (const field of fields) hash = hashed(hash, field)
  for (const { keys } of chunks) {
    const known = passed.get(keys) ?? { namespaces: NEVER, names: NEVER }
    passed.set(keys, known)
    if (known.namespaces[0] !== hash) {
      const before = hash
      for (let row = 0; row < keys.names.length; row++) hash = hashed(hash, keys.namespaces.at(row))
      known.namespaces = [before, hash]
    } else hash = known.namespaces[1]
  }
  for (const { keys } of chunks) {
    const known = passed.get(keys) as Passed // the loop before has set it
    if (known.names[0] !== hash) {
      const before = hash
      for (const name of keys.names) hash = hashed(hash, name)
      known.names = [before, hash]
    } else hash = known.names[1]
  }
  return hash >>> 0
}

const sums = { ofTables: new WeakMap<object, number>(), ofChunks: new WeakMap<Keys, number>() }

/**
 * The same for peers that take sums: FNV-1a over namespace and name of each row, added up, and over the fields. Rows that come and go
 * cost their chunks, where the other costs all that follow.
 */
function sumOf(table: Table): number {
  const known = sums.ofTables.get(table.keys)
  if (known !== undefined) return known
  let sum = FNV
  for (const field of table.fields) sum = hashed(sum, field)
  for (const { keys } of table.chunks) sum = (sum + sumOfKeys(keys)) | 0
  sums.ofTables.set(table.keys, sum >>> 0)
  return sum >>> 0
}

function sumOfKeys(keys: Keys): number {
  const known = sums.ofChunks.get(keys)
  if (known !== undefined) return known
  let sum = 0
  for (let row = 0; row < keys.names.length; row++) {
    sum = (sum + hashed(hashed(FNV, keys.namespaces.at(row)), keys.names.at(row) as string)) | 0
  }
  sums.ofChunks.set(keys, sum)
  return sum
}

function hashed(before: number, text: string): number {
  let hash = before
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  // No unit of UTF-16: the end of a text.
  return Math.imul(hash ^ 0x10000, 0x01000193)
}

// Small things

function writeTexts(texts: readonly string[], into: Encoding): void {
  into.to.varint(texts.length)
  into.charge(texts.length * ELEMENT_COST)
  for (const one of texts) into.text(one)
}

function readTexts(most: number, out: Decoding): readonly string[] {
  const size = out.from.varint()
  if (size > most) throw new WireError('there are more names than a part may hold')
  out.charge(size * ELEMENT_COST)
  const texts: string[] = []
  for (let i = 0; i < size; i++) texts.push(out.text())
  return texts
}

/** A column that may be of no rows. */
function writeList(codec: Codec, values: readonly unknown[], into: Encoding): void {
  if (values.length > 0) writeColumn(codec, values, into)
}

function readList(codec: Codec, size: number, out: Decoding): unknown[] {
  return size === 0 ? [] : readColumn(codec, false, size, out)
}

const isGroup = (value: Aggregated | undefined): value is Readonly<Record<string, string | number | boolean | null>> =>
  typeof value === 'object' && value !== null
const sameTexts = (a: readonly string[], b: readonly string[]) =>
  a.length === b.length && a.every((one, i) => one === b[i])
const sameValue = (codec: Codec, a: unknown, b: unknown) =>
  Object.is(a, b) || (a != null && b != null && codec.equal(a, b))

/** Of flat objects, in order. */
const sameList = (a: readonly object[], b: readonly object[]) =>
  a === b || (a.length === b.length && a.every((one, i) => sameFlat(one, b[i] ?? {})))

function sameFlat(a: object, b: object): boolean {
  const [names, others] = [Object.keys(a), Object.keys(b)]
  if (!sameTexts(names, others)) return false
  const theirs = Object.values(b)
  return Object.values(a).every((value, i) => Object.is(value, theirs[i]))
}

function sameAggregations(a: RowsFacts['aggregations'], b: RowsFacts['aggregations']): boolean {
  if (a === b) return true
  if (!sameTexts(Object.keys(a), Object.keys(b))) return false
  const theirs = Object.values(b)
  return Object.values(a).every((value, i) => {
    const other = theirs[i]
    return isGroup(value) ? isGroup(other) && sameFlat(value, other) : Object.is(value, other)
  })
}
