import { Document, visit } from 'yaml'
import { printable, UNSEEN } from './terminal.ts'
import type { OutputFormat } from './words.ts'

/** One column of a table for people: `-` stands for "not known". */
export interface Column<T> {
  readonly header: string
  readonly value: (row: T) => string | null
  /** what the row has there, where `value` says it in words that move with the clock */
  readonly lasting?: (row: T) => unknown
  /** for those who ask for more than fits most terminals */
  readonly isWide?: true
}

/** Left-aligned columns, as kubectl prints them; the last column is not padded. */
export const table = <T>(columns: readonly Column<T>[], rows: readonly T[]): string =>
  tableLines(columns, rows).join('\n')

/** @param widths of a table that goes on: columns keep them, or grow */
export function tableLines<T>(columns: readonly Column<T>[], rows: readonly T[], widths: number[] = []): string[] {
  const cells = [
    columns.map((column) => column.header),
    ...rows.map((row) => columns.map((column) => printable(column.value(row) ?? '-'))),
  ]
  for (const index of columns.keys())
    widths[index] = Math.max(widths[index] ?? 0, ...cells.map((line) => line[index]?.length ?? 0))
  return cells.map((line) =>
    line
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('   ')
      .trimEnd(),
  )
}

/** Those that move a terminal and that JSON and YAML would print as they are. */
const UNESCAPED = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Rows for people, or the documents themselves for programs. */
export function print<T>(format: 'table' | 'wide', columns: readonly Column<T>[], rows: readonly T[]): string
export function print(format: 'json' | 'yaml', columns: readonly never[], documents: unknown, indent?: number): string
export function print(format: OutputFormat, columns: readonly Column<never>[], rows: unknown, indent = 2): string {
  if (format === 'json') return escaped(JSON.stringify(rows, null, indent))
  if (format === 'yaml') return yaml(rows)
  const shown = format === 'wide' ? columns : columns.filter(({ isWide }) => !isWide)
  return table(shown, rows as readonly never[]) // the overloads hold columns and rows together
}

function yaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false })
  visit(document, {
    Scalar(_, scalar) {
      // Only between double quotes can such a character be written in another way.
      if (typeof scalar.value === 'string' && scalar.value.search(UNSEEN) >= 0) scalar.type = 'QUOTE_DOUBLE'
    },
  })
  return escaped(document.toString({ lineWidth: 0 }).trimEnd())
}

const escaped = (text: string): string =>
  text.replace(UNESCAPED, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** `12s`, `5m`, `3h`, `2d`: the largest unit that is not zero. */
export function age(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000))
  if (s < 120) return `${s}s`
  if (s < 7200) return `${Math.floor(s / 60)}m`
  if (s < 172_800) return `${Math.floor(s / 3600)}h`
  return `${Math.floor(s / 86_400)}d`
}

/** `used/allocatable` as a percentage; null where either is not known. */
export function share(amount: number | null, of: number | null): string | null {
  return amount === null || of === null || of === 0 ? null : `${Math.round((amount / of) * 100)}%`
}
