import type { Value } from './filter.ts'

export interface ExportColumn<T> {
  readonly id: string
  readonly value: (row: T) => Value
}

/** RFC 4180. A text that a spreadsheet would run as a formula is kept a text by a leading apostrophe. */
export function toCsv<T>(rows: readonly T[], columns: readonly ExportColumn<T>[]): string {
  const lines = [columns.map(({ id }) => id), ...rows.map((row) => columns.map(({ value }) => plain(value(row))))]
  return lines
    .map((cells) => cells.map(cell).join(','))
    .join('\r\n')
    .concat('\r\n')
}

export function toJson<T>(rows: readonly T[], columns: readonly ExportColumn<T>[]): string {
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(columns.map(({ id, value }) => [id, value(row)]))),
    null,
    2,
  )
}

const plain = (value: Value): string | number => {
  if (value === null) return ''
  if (typeof value === 'number') return value
  return typeof value === 'object' ? value.join(' ') : String(value)
}

function cell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
