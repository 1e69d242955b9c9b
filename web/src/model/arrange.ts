import type { Filter, Value } from './filter.ts'
import { type OrderedRows, orderedRows } from './ordered-rows.ts'

export interface ArrangeOptions<T> {
  readonly filter: Filter<T>
  readonly sortValue: (row: T) => Value
  readonly descending: boolean
  /** the last word between equals, so that the order is the same on every screen */
  readonly name: (row: T) => string
}

/** The rows that pass, in order. Unknown values come last, whichever way the order runs. */
export function arrange<T>(rows: readonly T[], { filter, sortValue, descending, name }: ArrangeOptions<T>): T[] {
  const keyed: { row: T; key: string | number | null; name: string }[] = []
  for (const row of rows) {
    if (filter.test(row)) keyed.push({ row, key: sortKey(sortValue(row)), name: sortText(name(row)) })
  }
  const direction = descending ? -1 : 1
  keyed.sort((a, b) => compareKeys(a.key, b.key, direction) || compare(a.name, b.name))
  return keyed.map(({ row }) => row)
}

function compareKeys(a: string | number | null, b: string | number | null, direction: number): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1
  return compare(a, b) * direction
}

const compare = <K extends string | number>(a: K, b: K): number => (a < b ? -1 : a > b ? 1 : 0)

function sortKey(value: Value): string | number | null {
  if (value === null || typeof value === 'number') return value
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'object') return value.length === 0 ? null : sortText(value.join(' '))
  return value === '' ? null : sortText(value)
}

/** node-2 before node-10: runs of digits are compared as numbers. */
const sortText = (text: string): string => text.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(10, '0'))

export type Line<T> =
  | { readonly kind: 'group'; readonly key: string; readonly group: string; readonly rows: readonly T[] }
  | { readonly kind: 'row'; readonly key: string; readonly row: T; readonly index: number }

/** Lines of a table, made as they are looked at: an array, or what stands for a long one. */
export interface Lines<T> {
  readonly length: number
  slice(from: number, to: number): readonly Line<T>[]
}

/** Each row is a line. */
export const rowLines = <T>(rows: Pick<OrderedRows<T>, 'size' | 'slice'>, rowKey: (row: T) => string): Lines<T> => ({
  length: rows.size,
  slice: (from, to) =>
    rows.slice(from, to).map((row, place) => ({ kind: 'row', key: rowKey(row), row, index: from + place })),
})

/** Lines of a table in their groups; groups come in the order of their first row, so the worst group is first. */
export function groupLines<T>(rows: readonly T[], rowKey: (row: T) => string, groupOf?: (row: T) => string): Lines<T> {
  if (!groupOf) return rowLines(orderedRows(rows, rowKey), rowKey)
  const line = (row: T, index: number): Line<T> => ({ kind: 'row', key: rowKey(row), row, index })
  const groups = new Map<string, T[]>()
  for (const row of rows) {
    const group = groupOf(row)
    const members = groups.get(group)
    if (members) members.push(row)
    else groups.set(group, [row])
  }
  const lines: Line<T>[] = []
  let index = 0
  for (const [group, members] of groups) {
    lines.push({ kind: 'group', key: `group ${group}`, group, rows: members })
    for (const row of members) lines.push(line(row, index++))
  }
  return lines
}
