import { nearRanges, type Ranges, withRange } from '#model'

/** The newest batch of a cluster that state takes. */
export interface Live {
  readonly origin: string
  readonly sequence: number
  /** collection time, ms */
  readonly at: number
}

/** What is known of a cluster when a batch of it is offered. */
export interface Known {
  readonly live: Live | undefined
  /** spans of time whose samples history has, by who numbered their batches */
  readonly covered: Iterable<readonly [origin: string, spans: Ranges]>
  readonly intervalMs: number
}

/** A batch that is offered. */
export interface Offered extends Live {
  /** there are numbers in it */
  readonly hasSamples: boolean
}

/*
 * Where a batch belongs, decided once by each consumer, when it is taken, and written into its record.
 *
 *   state    it is newer than the newest: by its number within one origin, by its time between two
 *   history  no other origin has samples of its time: none of its spans holds it or ends within half an interval
 *
 * Spans of one origin are one where they are at most one and a half intervals apart, so that a single round that came
 * late tears no hole. One origin never stands in its own way: its numbers tell its batches apart.
 */
export const isForState = ({ live }: Known, offered: Offered): boolean => isNewer(offered, live)
export const isForHistory = (known: Known, offered: Offered): boolean =>
  offered.hasSamples && !isCovered(known, offered)

/** The spans of an origin with a batch of this time, which history took. */
export const coveredWith = (spans: Ranges, at: number, intervalMs: number): Ranges =>
  withRange(spans, [at, at], 1.5 * intervalMs)

function isNewer({ origin, sequence, at }: Live, live: Live | undefined): boolean {
  if (!live) return true
  // A clock may be set back; numbers only rise.
  return origin === live.origin ? sequence > live.sequence : at >= live.at
}

function isCovered({ covered, intervalMs }: Known, { origin, at }: Live): boolean {
  for (const [other, spans] of covered) {
    if (other !== origin && nearRanges(spans, at, intervalMs / 2)) return true
  }
  return false
}
