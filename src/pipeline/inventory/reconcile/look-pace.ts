import { minutes, seconds } from '#model'
import { backoffMs } from '#runtime'
import type { SinkFamily } from '#sinks'

const BACKOFF = { fromMs: seconds(10), toMs: minutes(5) }
/** A database or a broker that is away, or starts anew, is looked at so often: exports go on as soon as it is back. */
const PASSING_MS = seconds(5)
/** A sink that answered is looked at again after so long. */
const VERIFIED_MS = minutes(60)

/** What came of looking at a sink, as far as it matters for when it is looked at next. */
export interface Looked {
  readonly family: SinkFamily
  /** in a row; 0: it can be written to */
  readonly failures: number
  /** what is in the way may be over in a moment */
  readonly isPassing: boolean
}

/** When a sink is looked at again by itself, ms. @param random from 0 to 1 */
export function lookAgainMs({ family, failures, isPassing }: Looked, random: () => number): number {
  if (failures === 0) return VERIFIED_MS
  // A look at what is written as a whole costs as much as a write.
  if (isPassing && family !== 'snapshot') return (PASSING_MS / 2) * (1 + random())
  return BACKOFF.fromMs / 2 + backoffMs(failures - 1, { ...BACKOFF, random }) / 2
}
