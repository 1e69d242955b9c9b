import { maxHistoryPoints } from '#http'
import { minutes, seconds } from '#model'
import { RefusedError } from './problem.ts'

export const days = (n: number): number => n * 86_400_000
const minRangeMs = minutes(5)
const maxRangeMs = days(30)

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}
const durationShape = /^(?:\d{1,12}(?:\.\d{1,9})?(?:ms|[smhdw]))+$/

/**
 * Reads `90m`, `1h30m`, `1.5h`, `7d`, `500ms`: numbers with units, added up.
 * @returns ms; undefined where the text is no such thing
 */
export function parseDuration(text: string): number | undefined {
  if (!durationShape.test(text)) return undefined
  let sum = 0
  for (const [, number, unit] of text.matchAll(/([\d.]+)(ms|[smhdw])/g))
    sum += Number(number) * (unitMs[unit ?? ''] ?? 0)
  return Math.round(sum)
}

/** A duration, or plain seconds. */
export function parseStep(text: string): number | undefined {
  return /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Math.round(Number(text) * 1000) : parseDuration(text)
}

const dateShape = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/

/**
 * Reads Unix seconds, whole or not, or RFC 3339.
 * @returns ms since the Unix epoch; undefined where the text is neither
 */
export function parseTime(text: string): number | undefined {
  if (/^\d{1,11}(\.\d{1,9})?$/.test(text)) return Math.round(Number(text) * 1000)
  // A plus sign that nobody escaped arrives as a space.
  const date = text.replace(/ (?=\d\d:\d\d$)/, '+')
  if (!dateShape.test(date)) return undefined
  const at = Date.parse(date.replace(' ', 'T').toUpperCase())
  return Number.isFinite(at) && at >= 0 ? at : undefined
}

/** Steps that a reader of a chart can name, in seconds. */
const friendlySteps = [
  1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, 86_400,
].map(seconds)

export const friendlyStep = (ms: number): number => friendlySteps.find((step) => step >= ms) ?? days(1)

/** As short as it can be said: 1800000 is 30m. */
export function durationText(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's']) {
    const size = unitMs[unit] ?? 1
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}

export interface WindowQuery {
  readonly range?: string
  readonly start?: string
  readonly end?: string
  readonly step?: string
}

/** A question's time: whole multiples of the step, first and last point included, ms. */
export interface Window {
  readonly from: number
  readonly to: number
  readonly stepMs: number
}

const refuse = (message: string): never => {
  throw new RefusedError('invalid_range', message)
}

function read(name: string, text: string, parse: (text: string) => number | undefined, forms: string): number {
  return parse(text) ?? refuse(`${name}=${text.slice(0, 40)} is no ${forms}`)
}

const timeForms = 'time: give Unix seconds or RFC 3339 such as 2026-01-31T08:00:00Z'
const durationForms = 'duration: write 90m, 1h30m or 7d'

function bounds({ range, start, end }: WindowQuery, now: number): readonly [from: number, to: number] {
  if (range !== undefined && start !== undefined && end !== undefined)
    return refuse('range, start and end together say one thing too many: leave one out')
  const lengthMs = read('range', range ?? '1h', parseDuration, durationForms)
  if (range !== undefined && (lengthMs < minRangeMs || lengthMs > maxRangeMs))
    return refuse(`range=${range} is out of bounds: from 5m to 30d`)
  const from = start === undefined ? undefined : read('start', start, parseTime, timeForms)
  const given = end === undefined ? undefined : read('end', end, parseTime, timeForms)
  const fallback = from !== undefined && range !== undefined ? from + lengthMs : now
  const to = Math.min(given ?? fallback, now)
  return [from ?? to - lengthMs, to]
}

/**
 * What time a question is about.
 * @param intervalMs how often the cluster is collected: finer steps would show holes
 * @throws RefusedError `invalid_range`, or `too_many_points` with a step that would do
 */
export function windowOf(query: WindowQuery, now: number, intervalMs: number): Window {
  const [from, to] = bounds(query, now)
  if (from >= to) return refuse('start is not before end, or in the future')
  if (to - from > maxRangeMs) return refuse('start and end are more than 30d apart')
  const stepMs =
    query.step === undefined
      ? friendlyStep(Math.max(intervalMs, (to - from) / 300))
      : read('step', query.step, parseStep, 'step: give seconds or a duration such as 5m')
  if (stepMs < 1000 || stepMs % 1000 !== 0) return refuse('step is at least one second, and whole seconds')
  const aligned = { from: Math.floor(from / stepMs) * stepMs, to: Math.floor(to / stepMs) * stepMs, stepMs }
  const points = (aligned.to - aligned.from) / stepMs + 1
  if (points > maxHistoryPoints) {
    const enough = durationText(friendlyStep((to - from) / (maxHistoryPoints - 1)))
    throw new RefusedError(
      'too_many_points',
      `${points} points per series are more than ${maxHistoryPoints}: step=${enough} would do`,
    )
  }
  return aligned
}
