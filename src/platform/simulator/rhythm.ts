import { hash, hashAfter, hashBegun } from './random.ts'

const DAY_MS = 86_400_000
/** Applications have their busiest hour in one of so many hours, one after the other. */
const SHIFTS = 6
/** How much less is asked for on a Saturday or a Sunday. */
const WEEKEND = 0.22
/** A weekend begins and ends within so many days, by UTC. */
const EDGE = 0.25

/** Between -1 and 1, without jumps: random heights at every period, joined smoothly. */
export const wave = (seed: number | string, now: number, periodMs: number): number => waveOf(seed, periodMs)(now)

/** The same for one who asks for many times. */
export function waveOf(seed: number | string, periodMs: number): (now: number) => number {
  const begun = hashBegun(`${seed}/`)
  const height = (index: number) => (hashAfter(begun, String(index)) / 2 ** 32) * 2 - 1
  // Who asks for many times asks for several of one period.
  let [known, low, high] = [Number.NaN, 0, 0]
  return (now) => {
    const at = now / periodMs
    const step = Math.floor(at)
    if (step !== known) {
      high = step + 1 === known ? low : height(step + 1)
      low = height(step)
      known = step
    }
    const along = smooth(at - step)
    return low * (1 - along) + high * along
  }
}

/** What an application is asked for, 1 on average of a working day: more by day than by night, less on a weekend. */
export function demandOf(app: string, now: number): number {
  return weekly(now) * daily(now, hash(app) % SHIFTS)
}

/** The same over many applications. */
export function usualDemand(now: number): number {
  let sum = 0
  for (let shift = 0; shift < SHIFTS; shift++) sum += daily(now, shift)
  return (weekly(now) * sum) / SHIFTS
}

const daily = (now: number, shift: number): number =>
  1 + 0.4 * Math.sin(2 * Math.PI * (now / DAY_MS - 0.3 - shift / 24))

function weekly(now: number): number {
  // The first of January 1970 was a Thursday: days since the beginning of a Saturday.
  const day = (now / DAY_MS + 5) % 7
  const begun = smooth((day + EDGE / 2) / EDGE)
  const over = smooth((day - 2 + EDGE / 2) / EDGE)
  const begins = smooth((day - 7 + EDGE / 2) / EDGE)
  return 1 - WEEKEND * (begun - over + begins)
}

/** From 0 to 1 as `along` goes from 0 to 1, flat at both ends and beyond. */
export function smooth(along: number): number {
  const within = Math.min(1, Math.max(0, along))
  return within * within * (3 - 2 * within)
}
