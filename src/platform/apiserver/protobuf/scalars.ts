import type { ScalarKind } from './table.ts'

/** RFC 3339 as the API writes it; fractions of a second only in micro times. */
const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.(\d{1,9}))?(?:Z|[+-]\d{2}:\d{2})$/

export interface Instant {
  readonly seconds: number
  readonly nanos: number
}

/** Instants read lately: an object says most of its times more than once. */
const lately = new Map<string, Instant>()
const KEPT = 256

/** @returns undefined where the value is no point in time. */
export function parseInstant(value: unknown): Instant | undefined {
  if (typeof value !== 'string') return undefined
  const known = lately.get(value)
  if (known) return known
  const instant = readInstant(value)
  if (!instant) return undefined
  if (lately.size >= KEPT) lately.clear()
  lately.set(value, instant)
  return instant
}

function readInstant(value: string): Instant | undefined {
  const match = INSTANT.exec(value)
  if (!match) return undefined
  const ms = Date.parse(value)
  if (Number.isNaN(ms)) return undefined
  return { seconds: Math.floor(ms / 1000), nanos: Number((match[1] ?? '').padEnd(9, '0')) }
}

/** @returns undefined where seconds are beyond what a date can say. */
export function formatInstant({ seconds, nanos }: Instant, micro: boolean): string | undefined {
  const date = new Date(seconds * 1000)
  if (Number.isNaN(date.getTime())) return undefined
  const text = date.toISOString().slice(0, -5)
  if (text.length !== 19) return undefined
  return micro ? `${text}.${String(Math.floor(nanos / 1000)).padStart(6, '0')}Z` : `${text}Z`
}

/** What JSON leaves out: the zero of the kind. */
export const isZero = (kind: ScalarKind, value: unknown): boolean =>
  value === '' || value === false || value === 0 || (kind === 'strings' && (value as string[]).length === 0)
