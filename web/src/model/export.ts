import { type Absence, absenceWord } from '../contract.ts'
import type { FieldKind, Value } from './filter.ts'

/** One column of a file: what the screen says in words, with its unit in the heading. */
export interface ExportColumn<T> {
  readonly id: string
  readonly header: string
  /** what is true of the row: words as they are shown, ratios of 0 to 1, moments in ms since the epoch; null where not known */
  readonly value: (row: T) => Value
  /** what null means; default: not known */
  readonly absence?: Absence | ((row: T) => Absence)
  readonly kind?: FieldKind
  /** of a number: `ms` */
  readonly unit?: string
}

/** What it means that the column has no value here. */
export const absenceIn = <T>({ absence = 'unknown' }: Pick<ExportColumn<T>, 'absence'>, row: T): Absence =>
  typeof absence === 'function' ? absence(row) : absence

/** RFC 4180. A text that a spreadsheet would run as a formula is kept a text by a leading apostrophe. */
export function toCsv<T>(rows: readonly T[], columns: readonly ExportColumn<T>[]): string {
  const lines = [
    columns.map(heading),
    ...rows.map((row) => columns.map((column) => plain(written(row, column), absenceIn(column, row)))),
  ]
  return lines
    .map((cells) => cells.map(cell).join(','))
    .join('\r\n')
    .concat('\r\n')
}

export function toJson<T>(rows: readonly T[], columns: readonly ExportColumn<T>[]): string {
  return JSON.stringify(
    rows.map((row) => Object.fromEntries(columns.map((column) => [keyOf(column), written(row, column)]))),
    null,
    2,
  )
}

/** `nodes-of-west-20261122T210624Z.csv`: what it is, and when it was so. */
export function fileName(caption: string, at: number, extension: string): string {
  const what = caption
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  return `${what}-${isoMoment(at).replaceAll(/[-:]|\.\d+/g, '')}.${extension}`
}

/** RFC 3339, in UTC. */
export const isoMoment = (at: number): string => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? '' : date.toISOString()
}

function unitOf({ kind, unit }: ExportColumn<never>): string | undefined {
  return unit ?? (kind === 'percent' ? '%' : kind === 'bytes' ? 'bytes' : undefined)
}

const heading = (column: ExportColumn<never>): string => {
  const unit = unitOf(column)
  return unit === undefined ? column.header : `${column.header} (${unit})`
}

const keyOf = (column: ExportColumn<never>): string => {
  const unit = unitOf(column)?.replace('%', 'percent')
  return unit === undefined ? column.id : `${column.id}_${unit}`
}

function written<T>(row: T, { kind, value: read }: ExportColumn<T>): Value {
  const value = read(row)
  if (typeof value !== 'number') return value
  if (kind === 'time') return isoMoment(value) || null
  return kind === 'percent' ? Math.round(value * 1000) / 10 : value
}

const plain = (value: Value, absence: Absence): string | number => {
  if (value === null) return absenceWord[absence]
  if (typeof value === 'number') return value
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'object' ? value.join(', ') : value
}

function cell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const safe = /^[=+\-@\t\r\n＝＋－＠]/.test(value) ? `'${value}` : value
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
