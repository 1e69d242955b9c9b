import { Ring } from './ring.ts'

/** Values of one node (percents) or pod (nanocores, bytes, bytes): cpu, memory, disk. */
export type Values = readonly [cpu: number, mem: number, disk: number]

/** So many measurements taken together. */
export interface Measured {
  /** ms since the Unix epoch: of the measurement, or of the start of the bucket */
  readonly time: number
  readonly count: number
  readonly mean: Values
  readonly max: Values
}

const minute = 60_000
const hour = 60 * minute

/** Kept beside the measurements themselves, which are kept an hour, or until there are so many. */
const ROLLUPS = [
  { resolutionMs: minute, spanMs: 24 * hour },
  { resolutionMs: 5 * minute, spanMs: 7 * 24 * hour },
  { resolutionMs: 15 * minute, spanMs: 30 * 24 * hour },
] as const
const RAW_SPAN_MS = hour
const RAW_ROWS = 3600
/** mean and maximum of three values, and of how many */
const ROLLUP_WIDTH = 7

/** As long as anything is kept, ms. */
export const LONGEST_SPAN_MS = 30 * 24 * hour

/** One entity over time, in four tiers: each point is added to all of them. */
export class Series {
  readonly #raw = new Ring(3, RAW_ROWS, true)
  readonly #rollups = ROLLUPS.map(({ resolutionMs, spanMs }) => new Rollup(resolutionMs, spanMs))
  lastAt = Number.NEGATIVE_INFINITY

  add(time: number, values: Values, mayGrow: (bytes: number) => boolean): void {
    this.#raw.push(time, values, mayGrow)
    for (const rollup of this.#rollups) rollup.add(time, values, mayGrow)
    this.lastAt = Math.max(this.lastAt, time)
  }

  get bytes(): number {
    return this.#rollups.reduce((sum, { bytes }) => sum + bytes, this.#raw.bytes)
  }

  /** What is known of this time, oldest first, both ends included: the finest tier there is of each stretch. */
  *between(start: number, end: number): Generator<Measured> {
    const begins = this.#begins()
    let from = start
    // A coarser tier tells of what lies before the next finer one begins.
    for (let at = this.#rollups.length - 1; at >= 0; at--) {
      const until = Math.min(begins[at] ?? end, end + 1)
      if (from < until) yield* (this.#rollups[at] as Rollup).between(from, until)
      from = Math.max(from, begins[at] ?? from)
    }
    for (const [time, values] of this.points(from - 1))
      if (time >= from && time <= end) yield { time, count: 1, mean: values, max: values }
  }

  /** Measurements since then, as they came. */
  *points(after: number): Generator<readonly [time: number, values: Values]> {
    for (let at = 0; at < this.#raw.size; at++) {
      const time = this.#raw.timeAt(at)
      if (time > after) yield [time, triple(this.#raw.valuesAt(at))]
    }
  }

  /** For a file: all tiers as numbers. `restore` makes the same of them. */
  dump(): number[][] {
    const raw: number[] = []
    for (const [time, values] of this.points(Number.NEGATIVE_INFINITY)) raw.push(time, ...values)
    return [raw, ...this.#rollups.map((rollup) => rollup.dump())]
  }

  static restore(tiers: readonly (readonly number[])[], mayGrow: (bytes: number) => boolean): Series {
    const series = new Series()
    const [raw = [], ...rollups] = tiers
    for (let at = 0; at + 3 < raw.length; at += 4) {
      const time = raw[at] as number
      series.#raw.push(time, raw.slice(at + 1, at + 4), mayGrow)
      series.lastAt = Math.max(series.lastAt, time)
    }
    for (const [place, numbers] of rollups.entries()) series.#rollups[place]?.restore(numbers, mayGrow)
    return series
  }

  /**
   * From when on what is finer than each rollup is told: at the start of a bucket of it, so that nothing is told of twice, unless
   * the rollup knows of nothing that is older.
   */
  #begins(): readonly number[] {
    let oldest =
      this.#raw.size === 0 ? Number.POSITIVE_INFINITY : Math.max(this.#raw.timeAt(0), this.lastAt - RAW_SPAN_MS)
    return this.#rollups.map((rollup) => {
      const begin = rollup.beginOfFiner(oldest)
      oldest = Math.min(begin, rollup.oldest(this.lastAt))
      return begin
    })
  }
}

/** Buckets of one resolution, the last of which is still open. */
class Rollup {
  readonly #resolutionMs: number
  readonly #spanMs: number
  readonly #ring: Ring
  #start = Number.NaN
  #count = 0
  readonly #sum = [0, 0, 0]
  readonly #max = [0, 0, 0]

  constructor(resolutionMs: number, spanMs: number) {
    this.#resolutionMs = resolutionMs
    this.#spanMs = spanMs
    this.#ring = new Ring(ROLLUP_WIDTH, spanMs / resolutionMs, false)
  }

  get bytes(): number {
    return this.#ring.bytes
  }

  add(time: number, values: Values, mayGrow: (bytes: number) => boolean): void {
    const start = Math.floor(time / this.#resolutionMs) * this.#resolutionMs
    if (start !== this.#start) this.#close(start, mayGrow)
    for (const at of [0, 1, 2] as const) {
      this.#sum[at] = (this.#sum[at] ?? 0) + values[at]
      this.#max[at] = this.#count === 0 ? values[at] : Math.max(this.#max[at] ?? 0, values[at])
    }
    this.#count++
  }

  /** Start of the oldest bucket that is asked for, where the newest measurement is of then. */
  oldest(newest: number): number {
    const oldest = this.#oldest()
    return Number.isNaN(oldest) ? Number.POSITIVE_INFINITY : Math.max(oldest, newest - this.#spanMs)
  }

  beginOfFiner(oldest: number): number {
    const bucket = Math.floor(oldest / this.#resolutionMs) * this.#resolutionMs
    return this.#oldest() < bucket ? Math.ceil(oldest / this.#resolutionMs) * this.#resolutionMs : bucket
  }

  #oldest(): number {
    return this.#ring.size > 0 ? this.#ring.timeAt(0) : this.#start
  }

  *between(start: number, before: number): Generator<Measured> {
    for (let at = 0; at < this.#ring.size; at++) {
      const time = this.#ring.timeAt(at)
      if (time < start || time >= before) continue
      const row = this.#ring.valuesAt(at)
      yield { time, count: row[6] ?? 1, mean: triple(row), max: triple(row, 3) }
    }
    if (this.#count > 0 && this.#start >= start && this.#start < before)
      yield { time: this.#start, count: this.#count, mean: this.#means(), max: triple(this.#max) }
  }

  dump(): number[] {
    const numbers: number[] = []
    for (let at = 0; at < this.#ring.size; at++)
      numbers.push(this.#ring.timeAt(at), ...Array.from(this.#ring.valuesAt(at)))
    if (this.#count > 0) numbers.push(this.#start, ...this.#sum, ...this.#max, this.#count)
    return [this.#count > 0 ? 1 : 0, ...numbers]
  }

  restore([isOpen = 0, ...numbers]: readonly number[], mayGrow: (bytes: number) => boolean): void {
    const rows = Math.floor(numbers.length / (ROLLUP_WIDTH + 1))
    for (let row = 0; row < rows - isOpen; row++) {
      const [time = 0, ...values] = numbers.slice(row * (ROLLUP_WIDTH + 1), (row + 1) * (ROLLUP_WIDTH + 1))
      this.#ring.push(time, values, mayGrow)
    }
    if (isOpen === 0 || rows === 0) return
    const [start = 0, ...values] = numbers.slice((rows - 1) * (ROLLUP_WIDTH + 1))
    this.#start = start
    for (const at of [0, 1, 2] as const) {
      this.#sum[at] = values[at] ?? 0
      this.#max[at] = values[at + 3] ?? 0
    }
    this.#count = values[6] ?? 0
  }

  #close(start: number, mayGrow: (bytes: number) => boolean): void {
    if (this.#count > 0) this.#ring.push(this.#start, [...this.#means(), ...this.#max, this.#count], mayGrow)
    this.#start = start
    this.#count = 0
    this.#sum.fill(0)
  }

  #means(): Values {
    const mean = (at: 0 | 1 | 2) => (this.#sum[at] ?? 0) / this.#count
    return [mean(0), mean(1), mean(2)]
  }
}

const triple = (numbers: ArrayLike<number>, from = 0): Values => [
  numbers[from] ?? 0,
  numbers[from + 1] ?? 0,
  numbers[from + 2] ?? 0,
]
