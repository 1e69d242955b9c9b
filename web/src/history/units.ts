import type { MetricUnit } from '../contract.ts'
import { formatBytes, formatCores, notNothing } from '../model/format.ts'
import { formatSeconds } from '../model/row-values.ts'

/** `amount` is a number of the declaration's own meaning. Both may be below nothing. */
export type Unit = MetricUnit | 'amount' | 'seconds' | 'milliseconds'

const toTenth = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 })
const one = (value: number) => notNothing(value, 0.1, toTenth.format)
const few = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 4 })

/** A value with its unit. A count is the average of a span, so it may have a fraction. */
export function formatValue(unit: Unit, value: number): string {
  switch (unit) {
    case 'bytes':
      return formatBytes(value)
    case 'cores':
      return formatCores(value)
    case 'percent':
      return `${one(value)} %`
    case 'flag':
      return value >= 1 ? 'yes' : value <= 0 ? 'no' : `${one(value * 100)} % of the time`
    case 'seconds':
      return formatSeconds(value)
    case 'milliseconds':
      return `${one(value)} ms`
    case 'amount':
      return few.format(value)
    case 'count':
      return one(value)
  }
}

export const unitWord: Readonly<Record<Unit, string>> = {
  bytes: 'bytes',
  cores: 'cores',
  percent: '%',
  flag: 'yes or no',
  count: 'count',
  amount: 'as declared',
  seconds: 'seconds',
  milliseconds: 'ms',
}

export interface ValueAxis {
  /** 0, or below it where a value is */
  readonly min: number
  readonly max: number
  readonly ticks: readonly number[]
  readonly labels: readonly string[]
}

/** The least that an axis goes up to, where values are small. */
const leastTop: Readonly<Record<Unit, number>> = {
  count: 4,
  percent: 100,
  bytes: 1024,
  cores: 0.1,
  flag: 1,
  amount: 0,
  seconds: 0,
  milliseconds: 10,
}

/**
 * From 0 to a round number above the largest value, in round steps: powers of ten for numbers, of two for bytes.
 * @param smallest where it is below 0 the axis goes down to it
 */
export function valueAxis(unit: Unit, largest: number, most = 4, smallest = 0): ValueAxis {
  if (unit === 'flag') return { min: 0, max: 1, ticks: [0, 1], labels: ['no', 'yes'] }
  const least = leastTop[unit] || (largest > 0 || smallest < 0 ? 0 : 1)
  const top = Number.isFinite(largest) ? Math.max(largest * 1.02, least) : Math.max(least, 1)
  const bottom = Number.isFinite(smallest) ? Math.max(0, -smallest * 1.02) : 0
  const span = top + bottom
  const step = stepOf(unit, span / most)
  const [below, above] = [Math.ceil(bottom / step - 1e-9), Math.ceil(top / step - 1e-9)]
  const ticks = Array.from({ length: below + above + 1 }, (_, index) =>
    Number(((index - below) * step).toPrecision(12)),
  )
  return {
    min: below === 0 ? 0 : -below * step,
    max: above * step,
    ticks,
    labels: ticks.map((value) => label(unit, value, step)),
  }
}

function stepOf(unit: Unit, least: number): number {
  if (unit === 'bytes') return binaryStep(least)
  const step = decimalStep(least, unit === 'count' ? 1 : 0)
  return unit === 'seconds' && step > 10 ? (clockSteps.find((each) => each >= least) ?? dayStep(least)) : step
}

/** Steps of a clock that its largest fitting unit says without a fraction, in seconds. */
const clockSteps = [15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400]
const dayStep = (least: number): number => 86_400 * Math.max(1, Math.ceil(decimalStep(least / 86_400, 1)))

function decimalStep(least: number, smallest: number): number {
  const size = 10 ** Math.floor(Math.log10(least))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((each) => each >= least * 0.999) ?? 10 * size
  const whole = step < 10 && step % 1 !== 0 && smallest >= 1 ? Math.ceil(step) : step
  return Math.max(whole, smallest)
}

function binaryStep(least: number): number {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(least) / 10))
  const factor = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find((each) => each * unit >= least * 0.999) ?? 1024
  return factor * unit
}

/** With as many digits as the step has: a rounded tick would stand at the wrong height. */
function label(unit: Unit, value: number, step: number): string {
  if (value === 0) return '0'
  if (unit === 'bytes') return formatBytes(value)
  if (unit === 'seconds') return clockLabel(value, step)
  const text = numberLabel(value, step)
  if (unit === 'percent') return `${text} %`
  return unit === 'milliseconds' ? `${text} ms` : text
}

function numberLabel(value: number, step: number): string {
  const digits = 1 - Math.floor(Math.log10(step)) // of 2.5 as of 2
  return digits > 15
    ? few.format(value)
    : new Intl.NumberFormat(undefined, { maximumFractionDigits: Math.max(0, digits) }).format(value)
}

/** In the largest unit of which the step is a whole number. */
function clockLabel(value: number, step: number): string {
  const [size, word] = clockUnits.find(([size]) => step % size === 0) ?? [1, 's']
  return `${numberLabel(value / size, step / size)} ${word}`
}

const clockUnits = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
] as const

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000]
const timeSteps = [
  ...[1, 2, 5, 10, 15, 30].map((count) => count * minute),
  ...[1, 2, 3, 6, 12].map((count) => count * hour),
  ...[1, 2, 4, 7, 14].map((count) => count * day),
]

/** Round moments of the reader's own clock within a range, at most so many; days stay days where a clock is put back. */
export function timeTicks(from: number, to: number, most: number): number[] {
  const step = timeSteps.find((each) => (to - from) / each <= most) ?? 30 * day
  const ticks: number[] = []
  const start = new Date(from)
  start.setHours(0, 0, 0, 0)
  // Two hours before the first: where the clock was put back, local steps lag behind real ones.
  const first = Math.floor((from - start.getTime() - 2 * hour) / step)
  for (let count = Math.max(0, first); ticks.length <= 2 * most; count++) {
    const at = roundMoment(start, step, count)
    if (at > to) break
    if (at >= from && at !== ticks.at(-1)) ticks.push(at)
  }
  return ticks
}

function roundMoment(start: Date, step: number, count: number): number {
  const date = new Date(start)
  if (step >= day) date.setDate(date.getDate() + (count * step) / day)
  else date.setMinutes((count * step) / minute) // of the local clock, across the change of an hour
  return date.getTime()
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
const date = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' })

/** Midnight is told by its date. */
export function timeLabel(at: number): string {
  const moment = new Date(at)
  return moment.getHours() === 0 && moment.getMinutes() === 0 ? date.format(moment) : clock.format(moment)
}

export const formatTime = (at: number): string => exact.format(at)
