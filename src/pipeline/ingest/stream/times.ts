/** Clocks that differ by less are the same: the way of a message takes as long. */
const SAME_MS = 1_000
/** Time and age of one batch differ by more only where the clock was set since, and not where the message took long. */
const LATE_MS = 15_000
/** An original keeps at most ten batches: older than this its time is a mistake. */
const ORIGINAL_PAST_MS = 15 * 60_000
/** Beyond this an original's time in the future is a mistake, too. */
const ORIGINAL_FUTURE_MS = 120_000

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
 * When a batch was collected, by the hub's clock. A clock that is right is believed to the millisecond; one that is off by a second
 * or more is shifted by the same amount for every batch, so that their distances stay. Where the clock was set since the batch was
 * collected, or since it was last compared, the age of the batch counts.
 */
export function correctTime({ collectedAt, ageMs, offsetMs, now }: Times): Corrected {
  const shifted = shift(collectedAt, offsetMs)
  if (ageMs === undefined) return bounded(shifted, collectedAt, now)
  const byAge = now - ageMs
  // A message comes late, never early.
  const lateMs = byAge - shifted
  return bounded(lateMs >= -SAME_MS && lateMs <= LATE_MS ? shifted : byAge, collectedAt, now)
}

/** The same for an original collector, which tells neither age nor clock: a time out of reason is that of arrival. */
export function correctOriginalTime({ collectedAt, offsetMs, now }: Omit<Times, 'ageMs'>): Corrected {
  const shifted = shift(collectedAt, offsetMs)
  const sane = shifted > now - ORIGINAL_PAST_MS && shifted <= now + ORIGINAL_FUTURE_MS
  return bounded(sane ? shifted : now, collectedAt, now)
}

const shift = (collectedAt: number, offsetMs: number) =>
  Math.abs(offsetMs) < SAME_MS ? collectedAt : collectedAt - offsetMs

function bounded(at: number, collectedAt: number, now: number): Corrected {
  const whole = Math.round(Math.min(Math.max(Number.isFinite(at) ? at : now, 1), now))
  return { at: whole, corrected: whole !== collectedAt }
}
