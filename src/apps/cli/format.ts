import { stringify } from 'yaml'

/** One column of a table for people: `-` stands for "not known". */
export interface Column<T> {
  readonly header: string
  readonly value: (row: T) => string | null
}

export const outputFormats = ['table', 'json', 'yaml'] as const
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

/** Text from a cluster must not move the cursor or colour the terminal of the person who reads it. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is taken out
  const clean = text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ').trim()
  return clean === '' ? '-' : clean
}

export function print<T>(format: OutputFormat, columns: readonly Column<T>[], rows: readonly T[]): string {
  if (format === 'json') return JSON.stringify(rows, null, 2)
  if (format === 'yaml') return stringify(rows).trimEnd()
  return table(columns, rows)
}

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
