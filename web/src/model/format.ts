const number = (options: Intl.NumberFormatOptions) => {
  const format = new Intl.NumberFormat(undefined, options)
  return (value: number) => format.format(value)
}
const whole = number({ maximumFractionDigits: 0 })
const one = number({ maximumFractionDigits: 1 })
const two = number({ maximumFractionDigits: 2 })

/** What stands where a value is not known. Zero is a measurement and never stands in for it. */
export const dash = '–'

export const formatCount = whole

/** What is not nothing is not rounded to nothing: `<0.01`, and `>−0.01` below nothing. `least` is the last digit that is shown. */
export function notNothing(value: number, least: number, format: (value: number) => string): string {
  if (value === 0 || Math.abs(value) >= least / 2) return format(value)
  return value < 0 ? `>${format(-least)}` : `<${format(least)}`
}

/** Three digits that matter. */
export function formatAmount(value: number): string {
  const size = Math.abs(value)
  if (size >= 100) return whole(value)
  return size >= 10 ? one(value) : notNothing(value, 0.01, two)
}

const units = ['B', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei']

/** Binary units: 1 Ki is 1024. */
export function formatBytes(bytes: number): string {
  let [value, step] = [bytes, 0]
  while (Math.abs(value) >= 1023.5 && step < units.length - 1) {
    value /= 1024
    step++
  }
  return `${step === 0 ? notNothing(value, 1, whole) : formatAmount(value)} ${units[step]}`
}

export const formatCores = (cores: number): string => `${formatAmount(cores)} ${cores === 1 ? 'core' : 'cores'}`

/** From a ratio of 0 to 1. What is almost all or almost nothing is not rounded into all or nothing. */
export function formatPercent(ratio: number): string {
  const percent = ratio * 100
  if (percent > 0 && percent < 1) return '<1 %'
  if (percent > 99 && percent < 100) return '>99 %'
  return `${whole(percent)} %`
}

const [minute, hour, day] = [60, 3600, 86_400]

/** A span in the largest unit that says enough: seconds up to two minutes. */
export function formatSpan(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 2 * minute) return `${seconds} s`
  if (seconds < 2 * hour) return `${Math.floor(seconds / minute)} min`
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)} h`
  return `${whole(Math.floor(seconds / day))} d`
}

/** What is left, to the second, as on a clock: 14:32. */
export function formatCountdown(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const two = (value: number) => String(value).padStart(2, '0')
  const [hours, minutes] = [Math.floor(seconds / hour), Math.floor((seconds % hour) / minute)]
  return `${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % minute)}`
}

const local = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** For hover and focus: the moment in local time and in UTC. */
export function formatMoment(at: number): string {
  const date = new Date(at)
  if (Number.isNaN(date.getTime())) return 'no date'
  return `${local.format(date)} · ${date.toISOString().replace('T', ' ').slice(0, 19)} UTC`
}

/** For paper, where an age would be wrong the minute after. */
export function formatUtc(at: number): string {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? 'no date' : `${date.toISOString().replace('T', ' ').slice(0, 16)} UTC`
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const date = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })

/** From one moment to another; the date once where it is one. */
export function formatStretch(from: number, to: number): string {
  const same = new Date(from).toDateString() === new Date(to).toDateString()
  return `${date.format(from)} ${clock.format(from)} – ${same ? '' : `${date.format(to)} `}${clock.format(to)}`
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`

/** With a capital letter, as a sentence begins. */
export const beginningSentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
