import { rfc3339 } from '../documents.ts'
import type { Measured, Series, Values } from './series.ts'

/** Labels of resolutions, and how long their buckets are; ms. `raw` is none. */
const RESOLUTIONS: Readonly<Record<string, number>> = { raw: 0, '1m': 60_000, '5m': 300_000, '15m': 900_000 }
const HOUR = 3_600_000

/** A question about the past, as it was asked. */
export interface HistoryQuery {
  readonly startMs: number
  readonly endMs: number
  /** the ends as they are told: as given, offset kept */
  readonly start: string
  readonly end: string
  readonly resolution: string
}

/** One point of a series. `…_max` is the highest measurement of a bucket; absent in measurements themselves. */
export interface HistoryPoint {
  readonly t: string
  readonly cpu: number
  readonly mem: number
  readonly disk: number
  readonly cpu_max?: number
  readonly mem_max?: number
  readonly disk_max?: number
}

/** What is absent or unreadable has a default: `end` is now, `start` an hour before the end, and the resolution goes by the range. */
export function historyQuery(query: URLSearchParams, now: number): HistoryQuery {
  const end = instantOf(query.get('end')) ?? { ms: now, text: rfc3339(now) }
  const from = end.ms - HOUR
  const start = instantOf(query.get('start')) ?? { ms: from, text: rfc3339(from) }
  const asked = query.get('resolution') || autoResolution(end.ms - start.ms)
  const resolution = Object.hasOwn(RESOLUTIONS, asked) ? asked : 'raw'
  return { startMs: start.ms, endMs: end.ms, start: start.text, end: end.text, resolution }
}

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(?!24)(\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/

function instantOf(text: string | null): { readonly ms: number; readonly text: string } | undefined {
  // A `+` that was not encoded arrives as a space.
  const written = text?.replace(/ (?=\d{2}:\d{2}$)/, '+')
  const match = written && RFC3339.exec(written)
  if (!match) return undefined
  const ms = Date.parse(written)
  const [, , , day] = match
  // A day that the month does not have would be taken for one of the next.
  const isDay = new Date(Date.parse(`${written.slice(0, 10)}T00:00:00Z`)).getUTCDate() === Number(day)
  return Number.isNaN(ms) || !isDay ? undefined : { ms, text: written }
}

function autoResolution(rangeMs: number): string {
  if (rangeMs <= HOUR) return 'raw'
  if (rangeMs <= 6 * HOUR) return '1m'
  return rangeMs <= 24 * HOUR ? '5m' : '15m'
}

/**
 * Points of one series in the range.
 * @param isWhole means are cut to whole numbers, as those of pods are
 * @param textOf writes a time, as `rfc3339`
 */
export function pointsOf(
  series: Pick<Series, 'between'>,
  { startMs, endMs, resolution }: HistoryQuery,
  isWhole: boolean,
  textOf: (ms: number) => string = rfc3339,
): readonly HistoryPoint[] {
  return [...downsampled(series.between(startMs, endMs), RESOLUTIONS[resolution] ?? 0)].map((bucket) =>
    pointOf(bucket, isWhole, textOf),
  )
}

/** For points of many series, which were measured at the same times: each is written once. */
export function timeTexts(): (ms: number) => string {
  const known = new Map<number, string>()
  return (ms) => {
    const text = known.get(ms) ?? rfc3339(ms)
    known.set(ms, text)
    return text
  }
}

/** In arrival order; a bucket that time went back to appears twice. @param resolutionMs 0: as they are */
export function* downsampled(points: Iterable<Measured>, resolutionMs: number): Generator<Measured> {
  if (resolutionMs === 0) return yield* points
  let open: Bucket | undefined
  for (const point of points) {
    const start = Math.floor(point.time / resolutionMs) * resolutionMs
    if (open && open.time !== start) {
      yield open.measured()
      open = undefined
    }
    open ??= new Bucket(start)
    open.add(point)
  }
  if (open) yield open.measured()
}

class Bucket {
  readonly time: number
  #count = 0
  readonly #sum: [number, number, number] = [0, 0, 0]
  readonly #max: [number, number, number] = [-Infinity, -Infinity, -Infinity]

  constructor(time: number) {
    this.time = time
  }

  add({ count, mean, max }: Measured): void {
    this.#count += count
    for (const at of [0, 1, 2] as const) {
      this.#sum[at] += mean[at] * count
      this.#max[at] = Math.max(this.#max[at], max[at])
    }
  }

  measured(): Measured {
    const [cpu, mem, disk] = this.#sum
    const mean: Values = [cpu / this.#count, mem / this.#count, disk / this.#count]
    // At least two: a bucket is told as one, also where it holds one measurement.
    return { time: this.time, count: Math.max(this.#count, 2), mean, max: this.#max }
  }
}

function pointOf({ time, count, mean, max }: Measured, isWhole: boolean, textOf: (ms: number) => string): HistoryPoint {
  const number = isWhole ? Math.trunc : (value: number) => value
  const point = { t: textOf(time), cpu: number(mean[0]), mem: number(mean[1]), disk: number(mean[2]) }
  if (count === 1) return point
  return { ...point, cpu_max: number(max[0]), mem_max: number(max[1]), disk_max: number(max[2]) }
}
