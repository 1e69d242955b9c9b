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

/**
 * What a chart has to mark. Pulled runs count only where the cluster pushes as well: else pulling is the usual way.
 * @param runs in the order of time
 */
export function spansOf(
  runs: readonly Run[],
  losses: readonly Pick<Loss, 'from' | 'to' | 'cause' | 'count'>[],
  pushes: boolean,
): readonly HistorySpan[] {
  const marked = runs.flatMap(({ way, from, to, count }): HistorySpan[] => {
    if (way === 'pushed' || (way === 'pulled' && !pushes)) return []
    return [{ kind: way, from, to, cause: '', count }]
  })
  const lost = mergeLosses(losses)
  return [...marked, ...lost].sort((left, right) => left.from - right.from || left.to - right.to)
}

const holes = new Set<string>(holeCauses)

function mergeLosses(losses: readonly Pick<Loss, 'from' | 'to' | 'cause' | 'count'>[]): readonly HistorySpan[] {
  const open = new Map<string, HistorySpan>()
  const done: HistorySpan[] = []
  for (const { from, to, cause, count } of [...losses].sort((left, right) => left.from - right.from)) {
    const last = open.get(cause)
    // The hub tells each of its own holes from end to end: what lies between two of them is there.
    if (last && from - last.to <= (holes.has(cause) ? 0 : SPAN_GAP_MS)) {
      open.set(cause, { ...last, to: Math.max(last.to, to), count: last.count + count })
    } else {
      if (last) done.push(last)
      open.set(cause, { kind: 'lost', from, to, cause, count })
    }
  }
  return [...done, ...open.values()]
}
