import { holeCauses, type Loss, type SampleSet } from '#model'
import type { HistorySpan } from './types.ts'

/**
 * Neighbours further apart than this are two spans: what lies between is a hole, and no span may cover it up. Twice the
 * widest distance of batches that belong together (an agent thins to one per 5 minutes).
 */
export const SPAN_GAP_MS = 600_000

/** How one batch came: a pull, a push, or a push out of the agent's buffer; or it never came, but was made up. */
export type Way = 'pulled' | 'pushed' | 'repaired' | 'simulated'

/** What is made up of the past is sparse on purpose: twice half an hour. */
const SIMULATED_GAP_MS = 3_600_000
export const spanGapMs = (way: Way): number => (way === 'simulated' ? SIMULATED_GAP_MS : SPAN_GAP_MS)

export function wayOf({ source, repaired, simulated }: Pick<SampleSet, 'source' | 'repaired' | 'simulated'>): Way {
  if (simulated) return 'simulated'
  if (repaired) return 'repaired'
  return source === 'push' ? 'pushed' : 'pulled'
}

/** What MetricSources saw between two rounds: how it came is told by the rounds beside it. */
export const isBetweenRounds = ({ groups }: SampleSet): boolean =>
  groups.length > 0 && groups.every(({ scope }) => scope === 'custom')

/** Consecutive batches that came one way; ms. */
export interface Run {
  readonly way: Way
  readonly from: number
  readonly to: number
  readonly count: number
}

/** Single batches, in any order, as runs in the order of time. A batch of another way, or a gap, ends a run. */
export function runsOf(batches: readonly { readonly way: Way; readonly at: number }[]): readonly Run[] {
  const runs: Run[] = []
  for (const { way, at } of [...batches].sort((left, right) => left.at - right.at)) {
    const last = runs.at(-1)
    if (last?.way === way && at - last.to <= spanGapMs(way))
      runs[runs.length - 1] = { ...last, to: at, count: last.count + 1 }
    else runs.push({ way, from: at, to: at, count: 1 })
  }
  return runs
}

/** What a chart is made of: all of it that touches the asked time. */
export interface Marks {
  /** in the order of time */
  readonly runs: readonly Run[]
  readonly losses: readonly Lost[]
  /** an agent, or a collector of the original, sends batches of the cluster */
  readonly pushes: boolean
  /** of any way, in any order, or several rolled up; where the cluster pushes, all that lie `holesWithin` the losses */
  readonly batches: readonly Stretch[]
}

/** What a chart has to mark. Pulled runs count only where the cluster pushes as well: else pulling is the usual way. */
export function spansOf({ runs, losses, pushes, batches }: Marks, asked: Stretch): readonly HistorySpan[] {
  const marked = runs.flatMap(({ way, from, to, count }): HistorySpan[] => {
    if (way === 'pushed' || (way === 'pulled' && !pushes)) return []
    return [{ kind: way, from, to, cause: '', count }]
  })
  const lost = mergeLosses(losses)
  const missing = pushes
    ? stillLost(lost, batches).filter(({ from, to }) => to >= asked.from && from <= asked.to)
    : lost
  return [...marked, ...missing].sort((left, right) => left.from - right.from || left.to - right.to)
}

const holes = new Set<string>(holeCauses)

type Lost = Pick<Loss, 'from' | 'to' | 'cause' | 'count'>
/** ms, both ends included */
export type Stretch = Pick<Loss, 'from' | 'to'>

/**
 * What is missing still: an agent may have delivered, or declared, what the hub once missed. A hole is left with the pieces between
 * them that are longer than two of its intervals; what was not received is whatever nothing else names.
 */
function stillLost(losses: readonly HistorySpan[], batches: readonly Stretch[]): readonly HistorySpan[] {
  const rank = ({ cause }: HistorySpan): number => (cause === 'not_received' ? 2 : holes.has(cause) ? 1 : 0)
  return losses.flatMap((hole) => {
    if (rank(hole) === 0) return [hole]
    const named = losses.filter((other) => rank(other) < rank(hole) && other.to > hole.from && other.from < hole.to)
    // Several rolled up around a hole are no batch in it.
    const seen = batches.filter(
      ({ from, to }) => to > hole.from && from < hole.to && (from > hole.from || to < hole.to),
    )
    return unnamed(hole, [...seen, ...named])
  })
}

/** The pieces of a hole that nothing else names, as far as they are longer than two of its intervals. */
export function unnamed(hole: HistorySpan, others: readonly Stretch[]): readonly HistorySpan[] {
  const within = others.filter(({ from, to }) => to > hole.from && from < hole.to)
  return within.length === 0 ? [hole] : piecesOf(hole, within)
}

function piecesOf(hole: HistorySpan, covers: readonly Stretch[]): readonly HistorySpan[] {
  const intervalMs = (hole.to - hole.from) / (hole.count + 1)
  const pieces: HistorySpan[] = []
  let from = hole.from
  for (const cover of [...covers, { from: hole.to, to: hole.to }].sort((left, right) => left.from - right.from)) {
    const lengthMs = cover.from - from
    if (lengthMs > 2 * intervalMs)
      pieces.push({ ...hole, from, to: cover.from, count: Math.max(1, Math.round(lengthMs / intervalMs) - 1) })
    from = Math.max(from, cover.to)
  }
  return pieces
}

function mergeLosses(losses: readonly Lost[]): readonly HistorySpan[] {
  const open = new Map<string, HistorySpan>()
  const done: HistorySpan[] = []
  for (const { from, to, cause, count } of [...losses].sort((left, right) => left.from - right.from)) {
    const last = open.get(cause)
    // The hub tells each of its own holes from end to end: what lies between two of them is there.
    const isHole = holes.has(cause)
    if (last && from - last.to <= (isHole ? 0 : SPAN_GAP_MS)) {
      // One that was told again after a crash is the same.
      const sum = isHole && from < last.to ? Math.max(last.count, count) : last.count + count
      open.set(cause, { ...last, to: Math.max(last.to, to), count: sum })
    } else {
      if (last) done.push(last)
      open.set(cause, { kind: 'lost', from, to, cause, count })
    }
  }
  return [...done, ...open.values()]
}

/** The stretch of time that holds what the hub names as missing; undefined: it names nothing. */
export function holesWithin(losses: readonly Lost[]): Stretch | undefined {
  const causing = losses.filter(({ cause }) => holes.has(cause))
  if (causing.length === 0) return undefined
  return {
    from: causing.reduce((least, { from }) => Math.min(least, from), Number.POSITIVE_INFINITY),
    to: causing.reduce((most, { to }) => Math.max(most, to), 0),
  }
}
