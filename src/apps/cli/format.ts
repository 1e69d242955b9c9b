import { Document, visit } from 'yaml'

/** One column of a table for people: `-` stands for "not known". */
export interface Column<T> {
  readonly header: string
  readonly value: (row: T) => string | null
  /** for those who ask for more than fits most terminals */
  readonly isWide?: true
}

/** `wide`: a table with every column there is. */
export const outputFormats = ['table', 'wide', 'json', 'yaml'] as const
export type OutputFormat = (typeof outputFormats)[number]

/** Left-aligned columns, two spaces apart, as kubectl prints them; the last column is not padded. */
export function table<T>(columns: readonly Column<T>[], rows: readonly T[]): string {
  const cells = [
    columns.map((column) => column.header),
    ...rows.map((row) => columns.map((column) => printable(column.value(row) ?? '-'))),
  ]
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => line[index]?.length ?? 0)))
  return cells
    .map((line) =>
      line
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('   ')
        .trimEnd(),
    )
    .join('\n')
}

/** What moves the cursor, colours the terminal, or turns the reading direction: C0 and C1 controls, bidirectional marks. */
const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu
/** Those of them that JSON and YAML would print as they are. */
const UNESCAPED = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/** Text from a cluster, on one line, as it may reach the terminal of the person who reads it; `-` for nothing. */
export function printable(text: string): string {
  const clean = text.replace(UNSEEN, ' ').replace(/ {2,}/g, ' ').trim()
  return clean === '' ? '-' : clean
}

/** The same with its spaces kept, so that a caret stays under what it points at. */
export const printableLine = (text: string): string => text.replace(UNSEEN, ' ').trimEnd()

export function print<T>(format: OutputFormat, columns: readonly Column<T>[], rows: readonly T[]): string {
  if (format === 'json') return escaped(JSON.stringify(rows, null, 2))
  if (format === 'yaml') return yaml(rows)
  return table(format === 'wide' ? columns : columns.filter(({ isWide }) => !isWide), rows)
}

function yaml(rows: readonly unknown[]): string {
  const document = new Document(rows, { aliasDuplicateObjects: false })
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
