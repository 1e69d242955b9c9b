import {
  type Codec,
  type Decoding,
  ELEMENT_COST,
  type Encoding,
  kinds,
  readColumn,
  writeColumn,
  wrongKind,
} from './column.ts'
import { WireError } from './errors.ts'
import { textKey } from './scalars.ts'

/** Lists of values of one shape: each distinct list once, its length, and all their elements as one column. */
export function listCodec(nullable: boolean, items: Codec): Codec {
  const key = (value: unknown) => `[${(value as unknown[]).map((item) => keyOf(items, item)).join('')}]`
  return {
    nullable,
    blank: nullable ? null : [],
    equal: (a, b) => equalLists(items, a as unknown[], b as unknown[]),
    key,
    write(values, into) {
      const lists = writeDistinct(values as unknown[][], key, into)
      for (const list of lists) into.to.varint(list.length)
      const elements = lists.flat()
      into.charge(elements.length * ELEMENT_COST)
      writeColumn(items, elements, into)
      return kinds.lists
    },
    read(kind, count, out) {
      if (kind !== kinds.lists) throw wrongKind(kind)
      const codes = readDistinct(count, out)
      const ends = readEnds(codes.distinct, out)
      const elements = readColumn(items, false, ends.at(-1) ?? 0, out)
      const lists = ends.map((end, i) => elements.slice(ends[i - 1] ?? 0, end))
      return codes.of(lists)
    },
  }
}

function equalLists(items: Codec, a: readonly unknown[], b: readonly unknown[]): boolean {
  return a === b || (a.length === b.length && a.every((item, i) => equalValues(items, item, b[i])))
}

/**
 * Maps from text to values of one shape: each distinct list of names once, each distinct map as one of those, and all their
 * values as one column.
 */
export function recordCodec(nullable: boolean, values: Codec): Codec {
  const key = (value: unknown) =>
    `{${Object.entries(value as object)
      .map(([name, one]) => `${textKey(name)}${keyOf(values, one)}`)
      .join('')}}`
  return {
    nullable,
    blank: nullable ? null : {},
    equal: (a, b) => equalRecords(values, a as Entries, b as Entries),
    key,
    write(all, into) {
      const records = writeDistinct(all as Entries[], key, into)
      const layouts = records.map((record) => Object.keys(record))
      const distinct = writeDistinct(layouts, (layout) => layout.map(textKey).join(''), into)
      for (const layout of distinct) {
        into.to.varint(layout.length)
        for (const name of layout) into.text(name)
        into.charge(layout.length * ELEMENT_COST)
      }
      const each = records.flatMap((record) => Object.values(record))
      into.charge(each.length * ELEMENT_COST)
      writeColumn(values, each, into)
      return kinds.records
    },
    read(kind, count, out) {
      if (kind !== kinds.records) throw wrongKind(kind)
      const codes = readDistinct(count, out)
      const layoutCodes = readDistinct(codes.distinct, out)
      const layouts: string[][] = []
      for (let i = 0; i < layoutCodes.distinct; i++) layouts.push(readLayout(out))
      const records = readRecords(layoutCodes.of(layouts), values, out)
      return codes.of(records)
    },
  }
}

type Entries = Readonly<Record<string, unknown>>

function equalRecords(values: Codec, a: Entries, b: Entries): boolean {
  if (a === b) return true
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every((name) => Object.hasOwn(b, name) && equalValues(values, a[name], b[name]))
}

function readLayout(out: Decoding): string[] {
  const size = out.from.varint()
  out.charge(size * ELEMENT_COST)
  const names: string[] = []
  for (let i = 0; i < size; i++) names.push(out.text())
  return names
}

function readRecords(layouts: readonly string[][], values: Codec, out: Decoding): Entries[] {
  const total = layouts.reduce((sum, layout) => sum + layout.length, 0)
  out.charge(total * ELEMENT_COST)
  const each = readColumn(values, false, total, out)
  // Things of one layout mostly have the same values: a copy of the first with what differs is much faster to make.
  const firsts = new Map<readonly string[], { readonly record: Entries; readonly start: number }>()
  let start = 0
  return layouts.map((layout) => {
    const first = firsts.get(layout)
    const record: Record<string, unknown> = { ...first?.record }
    for (let i = 0; i < layout.length; i++) {
      const value = each[start + i]
      if (!first || !Object.is(value, each[first.start + i])) setOwn(record, layout[i]!, value)
    }
    if (!first) firsts.set(layout, { record, start })
    start += layout.length
    return record
  })
}

/** Sets a property of any name: an assignment to `__proto__` would make none. */
export function setOwn(record: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') record[name] = value
  else Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true })
}

/** Writes how many distinct values there are, and which each is: 0 the next new one, else its number plus one. */
function writeDistinct<T>(values: readonly T[], key: (value: T) => string, { to }: Encoding): T[] {
  const numbers = new Map<string, number>()
  const distinct: T[] = []
  const codes = values.map((value) => {
    const id = key(value)
    const known = numbers.get(id)
    if (known !== undefined) return known + 1
    numbers.set(id, distinct.length)
    distinct.push(value)
    return 0
  })
  to.varint(distinct.length)
  if (distinct.length < values.length) for (const code of codes) to.varint(code)
  return distinct
}

interface Distinct {
  readonly distinct: number
  /** what was meant by each code */
  of<T>(values: readonly T[]): T[]
}

function readDistinct(count: number, { from }: Decoding): Distinct {
  const distinct = from.varint()
  if (distinct > count) throw new WireError('there are more distinct values than values')
  if (distinct === count) return { distinct, of: (values) => values as (typeof values)[number][] }
  if (count > from.left) throw new WireError('the body ends too early')
  const numbers: number[] = new Array(count)
  let next = 0
  for (let i = 0; i < count; i++) {
    const code = from.varint()
    const number = code === 0 ? next++ : code - 1
    if (number >= distinct) throw new WireError('a value is not among the distinct ones')
    numbers[i] = number
  }
  // Every number is below `distinct`, which is how many values there are.
  return { distinct, of: <T>(values: readonly T[]) => numbers.map((number) => values[number] as T) }
}

/** Where each list ends among all elements. */
function readEnds(count: number, out: Decoding): number[] {
  if (count > out.from.left) throw new WireError('the body ends too early')
  const ends: number[] = new Array(count)
  let end = 0
  for (let i = 0; i < count; i++) {
    end += out.from.varint()
    ends[i] = end
  }
  out.charge(end * ELEMENT_COST)
  return ends
}

const keyOf = (codec: Codec, value: unknown) => (value === null ? 'n' : codec.key(value))

function equalValues(codec: Codec, a: unknown, b: unknown): boolean {
  return Object.is(a, b) || (a !== null && b !== null && codec.equal(a, b))
}
