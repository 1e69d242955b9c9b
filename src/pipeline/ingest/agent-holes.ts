import { type Loss, missingFrom, type Ranges, seconds } from '#model'
import { HUB_ORIGIN } from './origins.ts'
import type { Neighbours, Seen } from './runs.ts'

/** An agent that has no interval from the hub reads so often. */
export const UNPLANNED_MS = seconds(30)

/** What is known of a cluster beside the numbers of the agent. */
export interface Beside {
  readonly intervalMs: number
  /** spans of time that history has samples of, by origin, or that were named as lost */
  readonly spans: readonly Ranges[]
  /** spans from before it were forgotten, ms */
  readonly knownFrom: number
}

/** The distance of two rounds that is no hole yet: two intervals, of the one in force or of the one that the agent still keeps. */
const usualMs = ({ paceMs }: Neighbours, intervalMs: number): number => 2 * Math.max(intervalMs, paceMs || UNPLANNED_MS)

const gapMs = ({ before, after }: Neighbours): number => after.at - before.until

/** The interval that an agent keeps after these two: the one in force, as soon as it is seen to keep it. */
export const paceAfter = (pair: Neighbours, intervalMs: number): number =>
  gapMs(pair) <= 1.5 * intervalMs ? intervalMs : pair.paceMs

/**
 * What history has nothing of between two rounds of an agent, though all that it numbered between them is here: it did not run, or
 * could not read the cluster. What others saw of that time, and what was declared, is no hole.
 * @param sequence of the later round
 */
export function holesBetween(pair: Neighbours, { intervalMs, spans, knownFrom }: Beside, sequence: number): Loss[] {
  const { before, after } = pair
  const isRead = before.isRead && after.isRead
  if (intervalMs <= 0 || (isRead && gapMs(pair) <= usualMs(pair, intervalMs))) return []
  const leastMs = isRead ? usualMs(pair, intervalMs) + before.until - before.at : intervalMs / 2
  const missing = spans.reduce<Ranges>(
    (pieces, ranges) => pieces.flatMap((piece) => missingFrom(ranges, piece)),
    [[Math.max(before.at, knownFrom), after.at]],
  )
  return missing.flatMap(([first, last]): Loss[] => {
    const [from, to] = [Math.max(first - 1, before.at), Math.min(last + 1, after.at)]
    if (to - from <= leastMs) return []
    const count = Math.max(1, Math.round((to - from) / intervalMs) - (after.isRead ? 1 : 0))
    const cause = isRead ? 'agent_down' : 'unreachable'
    return [{ origin: HUB_ORIGIN, sequence, lost: [], from, to, cause, count, keptEveryMs: 0 }]
  })
}

/** The last moment before this one that anybody saw or named; undefined: there is none. */
export function lastSeen(spans: readonly Ranges[], at: number): Seen | undefined {
  const ends = spans.flatMap((ranges) => ranges.filter(([first]) => first <= at).map(([, last]) => Math.min(last, at)))
  if (ends.length === 0) return undefined
  const end = Math.max(...ends)
  return { at: end, until: end, isRead: true }
}
