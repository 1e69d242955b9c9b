/** Comparisons that count: with a few the fastest message among them decides, and a clock that was set back is found out soon. */
const KEPT = 5
/** Less than this is a message that took its time; a clock that was set moves more. */
const SAME_MS = 1_000

/**
 * How much another clock is ahead of ours, from what it showed when its messages were sent. A message is late and never early, so
 * the greatest difference of the last few is nearest to the truth: neither jitter nor one slow message moves it. It stays as it is
 * until another value is plainly better, so that times corrected by it keep their distances.
 */
export class ClockOffset {
  readonly #seen: number[] = []
  #ms: number | undefined

  /** theirs minus ours, whole ms; undefined before the first comparison */
  get ms(): number | undefined {
    return this.#ms
  }

  /** @param theirs what their clock showed when the message was sent @param now ours when it came; ms since the Unix epoch */
  compare(theirs: number, now: number): void {
    this.#seen.push(Math.round(theirs - now))
    if (this.#seen.length > KEPT) this.#seen.shift()
    const newest = Math.max(...this.#seen)
    if (this.#ms === undefined || newest > this.#ms || newest < this.#ms - SAME_MS) this.#ms = newest
  }
}
