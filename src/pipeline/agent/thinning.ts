import { type Loss, rangesOf, type SequenceRange } from '#model'

export interface Held {
  readonly sequence: number
  readonly collectedAt: number
  readonly kind: 'batch' | 'loss'
  /** batches of one lane speak of the same things: each lane keeps one of its own; absent: 0, the rounds */
  readonly lane?: number
}

/**
 * One batch of each lane is kept per `keptEveryMs` of collection time, the first of each span; declarations and what `mustStay` names
 * are always kept. `former` were kept before these: their spans have their one. Order and everything else stay as they are.
 */
export function thin<T extends Held>(
  held: readonly T[],
  keptEveryMs: number,
  mustStay: (sequence: number) => boolean,
  former: readonly Held[] = [],
): { readonly kept: readonly T[]; readonly lost: readonly T[] } {
  const spanOf = ({ collectedAt, lane = 0 }: Held) => `${lane}:${Math.floor(collectedAt / keptEveryMs)}`
  const spans = new Set(former.map(spanOf))
  const kept: T[] = []
  const lost: T[] = []
  for (const entry of held) {
    const span = spanOf(entry)
    const stays = entry.kind === 'loss' || mustStay(entry.sequence) || !spans.has(span)
    if (entry.kind === 'batch') spans.add(span)
    ;(stays ? kept : lost).push(entry)
  }
  return { kept, lost }
}

/** What a declaration says, before it has a sequence of its own. */
export type Declared = Omit<Loss, 'origin' | 'sequence'>

/** A declaration that covers all of these batches. */
export function declare(lost: readonly Held[], cause: Loss['cause'], keptEveryMs = 0): Declared {
  const times = lost.map(({ collectedAt }) => collectedAt)
  return {
    lost: rangesOf(lost.map(({ sequence }) => single(sequence))),
    from: Math.min(...times),
    to: Math.max(...times),
    cause,
    count: lost.length,
    keptEveryMs,
  }
}

/**
 * One declaration instead of several; `own` are the sequences of declarations that it replaces, which never come either.
 * Their causes are told by the worse one: dropped, then damaged, then thinned.
 */
export function merge(declared: readonly Declared[], own: readonly number[] = []): Declared {
  const cause = (['dropped', 'damaged', 'thinned'] as const).find((cause) =>
    declared.some((one) => one.cause === cause),
  )
  return {
    lost: rangesOf([...declared.flatMap(({ lost }) => lost), ...own.map(single)]),
    from: Math.min(...declared.map(({ from }) => from)),
    to: Math.max(...declared.map(({ to }) => to)),
    cause: cause ?? 'dropped',
    count: declared.reduce((sum, { count }) => sum + count, 0),
    keptEveryMs: cause === 'thinned' ? Math.max(...declared.map(({ keptEveryMs }) => keptEveryMs)) : 0,
  }
}

const single = (sequence: number): SequenceRange => [sequence, sequence]
