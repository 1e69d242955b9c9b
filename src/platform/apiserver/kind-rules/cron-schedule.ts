import type { FieldFault } from '../types.ts'
import { required, wrong } from './rule.ts'

/** Least and greatest number of each field, and names that stand for numbers. */
const FIELDS: readonly (readonly [least: number, greatest: number, names: readonly string[]])[] = [
  [0, 59, []],
  [0, 23, []],
  [1, 31, []],
  [1, 12, ['', 'jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']],
  [0, 6, ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']],
]

const DESCRIPTORS = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly']

type Bounds = (typeof FIELDS)[number]

/** A number or a name. @returns what is wrong with it, as text */
function numberOf(text: string, names: readonly string[]): number | string {
  const named = text === '' ? -1 : names.indexOf(text.toLowerCase())
  if (named >= 0) return named
  if (!/^[+-]?\d+$/.test(text))
    return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`
  const number = Number(text)
  return number < 0 ? `negative number (${number}) not allowed: ${text}` : number
}

/** One range of a field: `*`, `3`, `1-5`, each with a step behind a slash. */
function rangeProblem(text: string, [least, greatest, names]: Bounds): string | undefined {
  const [range = '', step, ...more] = text.split('/')
  const [low = '', high, ...rest] = range.split('-')
  if (rest.length > 0) return `too many hyphens: ${text}`
  const whole = low === '*' || low === '?'
  const start = whole ? least : numberOf(low, names)
  if (typeof start === 'string') return start
  const end =
    whole || (step !== undefined && high === undefined) ? greatest : high === undefined ? start : numberOf(high, names)
  if (typeof end === 'string') return end
  if (more.length > 0) return `too many slashes: ${text}`
  const by = step === undefined ? 1 : numberOf(step, [])
  if (typeof by === 'string') return by
  if (start < least) return `beginning of range (${start}) below minimum (${least}): ${text}`
  if (end > greatest) return `end of range (${end}) above maximum (${greatest}): ${text}`
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${text}`
  return by === 0 ? `step of range should be a positive number: ${text}` : undefined
}

function scheduleProblem(schedule: string): string | undefined {
  if (/^\s*(CRON_)?TZ=/.test(schedule)) return 'cannot use TZ or CRON_TZ in schedule, use timeZone field instead'
  if (schedule.startsWith('@'))
    return DESCRIPTORS.includes(schedule) || /^@every (\d+(\.\d+)?(ns|us|ms|s|m|h))+$/.test(schedule)
      ? undefined
      : `unrecognized descriptor: ${schedule}`
  const parts = schedule.trim().split(/\s+/)
  if (parts.length !== FIELDS.length) return `expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`
  for (const [index, bounds] of FIELDS.entries())
    for (const range of (parts[index] ?? '').split(',').filter(Boolean)) {
      const problem = rangeProblem(range, bounds)
      if (problem) return problem
    }
  return undefined
}

export function scheduleFault(schedule: unknown, path: string): FieldFault[] {
  if (typeof schedule !== 'string' || schedule === '') return [required(path)]
  const problem = scheduleProblem(schedule)
  return problem ? [wrong(path, schedule, problem)] : []
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

export function timeZoneFault(zone: unknown, path: string): FieldFault[] {
  if (zone === undefined) return []
  const name = String(zone)
  if (name === '') return [wrong(path, name, 'timeZone must be nil or non-empty string')]
  if (name.toLowerCase() === 'local')
    return [wrong(path, name, 'timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones')]
  return isTimeZone(name) ? [] : [wrong(path, name, `unknown time zone ${name}`)]
}
