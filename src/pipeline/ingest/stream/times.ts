/** Clocks that differ by less are the same: the way of a message takes as long. */
const SAME_MS = 1_000
/** Beyond this a clock is wrong, not late: what it says of the past may have been said by another setting of it. */
const WRONG_MS = 120_000
/** An original keeps at most ten batches: older than this its time is a mistake. */
const ORIGINAL_PAST_MS = 15 * 60_000

export interface Times {
  /** by the collector's clock, ms since the Unix epoch */
  readonly collectedAt: number
  /** time since then by a clock that does not jump, as of sending */
  readonly ageMs?: number | undefined
  /** the collector's clock minus ours, ms */
  readonly offsetMs: number
  /** ours, at arrival */
  readonly now: number
}

export interface Corrected {
  /** by the hub's clock, whole ms, never in the future */
  readonly at: number
  /** the collector's own time was not kept */
  readonly corrected: boolean
}

/**
 * When a batch was collected, by the hub's clock. A clock that is right is believed to the millisecond; one that is a
 * little off is shifted; one that is wrong, or that jumped since it was last compared, counts for nothing where the age
 * of the batch is known.
 */
export function correctTime({ collectedAt, ageMs, offsetMs, now }: Times): Corrected {
  const shifted = Math.abs(offsetMs) <= SAME_MS ? collectedAt : collectedAt - offsetMs
  const byAge = ageMs === undefined ? undefined : now - ageMs
  const disagree = byAge !== undefined && !(Math.abs(shifted - byAge) <= WRONG_MS)
  const wrong = Math.abs(offsetMs) > WRONG_MS || disagree
  const at = wrong && byAge !== undefined ? byAge : shifted
  return bounded(at, collectedAt, now)
}

/** The same for an original collector, which tells neither age nor clock: a time out of reason is that of arrival. */
export function correctOriginalTime({ collectedAt, offsetMs, now }: Omit<Times, 'ageMs'>): Corrected {
  const shifted = Math.abs(offsetMs) <= SAME_MS ? collectedAt : collectedAt - offsetMs
  const sane = shifted > now - ORIGINAL_PAST_MS && shifted <= now + WRONG_MS
  return bounded(sane ? shifted : now, collectedAt, now)
}

function bounded(at: number, collectedAt: number, now: number): Corrected {
  const whole = Math.round(Math.min(Math.max(Number.isFinite(at) ? at : now, 1), now))
  return { at: whole, corrected: whole !== collectedAt }
}
