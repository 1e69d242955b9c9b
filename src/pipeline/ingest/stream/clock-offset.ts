/** Comparisons that count: with a few the fastest message among them decides, and a clock that was set back is found out soon. */
const KEPT = 5
/** Less than this is a message that took its time; a clock that was set moves more. */
const SAME_MS = 1_000
/** No message is later than this. */
const LATEST_MS = 60_000
/** Messages that are late by more than `MUCH_MS` for `MUCH_FOR_MS`, or by less for `LITTLE_FOR_MS`, are not late: the clock was set back. */
const MUCH_MS = 15_000
const MUCH_FOR_MS = 15_000
const LITTLE_FOR_MS = 120_000

/**
 * How much another clock is ahead of ours, from what it showed when its messages were sent. A message is late and never early, so
 * the greatest difference of the last few is nearest to the truth: neither jitter nor one slow message moves it. It stays as it is
 * until another value is plainly better, so that times corrected by it keep their distances.
 *
 * Messages that are all late make a right clock look behind. What was sent in answer to ours bounds that: it cannot be older than
 * ours. As long as both a right clock and lateness explain what was seen, the clock counts as right.
 */
export class ClockOffset {
  readonly #seen: number[] = []
  #ms: number | undefined
  /** ours, when what they wait for was sent */
  #greetedAt: number | undefined
  #atMost = Number.POSITIVE_INFINITY
  /** ours, between which their first messages waited for us */
  #waited = { from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY }
  /** ours, since when each message says that their clock is behind */
  #behindSince = Number.POSITIVE_INFINITY

  /** theirs minus ours, whole ms; undefined before the first comparison */
  get ms(): number | undefined {
    return this.#ms
  }

  /** A message was sent to them; they send what is compared from now on after they have it. @param now ours, ms since the Unix epoch */
  greeted(now: number): void {
    this.#greetedAt = now
    if (this.#seen.length > 0) this.#decide(now)
  }

  /**
   * What they sent meanwhile waited for us, and says nothing of their clock. Both ours, ms since the Unix epoch.
   * @param from when their stream came @param to when it was open
   */
  waited(from: number, to: number): void {
    this.#waited = { from: from - SAME_MS, to }
  }

  /** @param theirs what their clock showed when the message was sent @param now ours when it came; ms since the Unix epoch */
  compare(theirs: number, now: number): void {
    if (theirs >= this.#waited.from && theirs <= this.#waited.to) return
    const ahead = Math.round(theirs - now)
    this.#seen.push(ahead)
    if (this.#seen.length > KEPT) this.#seen.shift()
    if (ahead >= -SAME_MS) this.#behindSince = Number.POSITIVE_INFINITY
    else this.#behindSince = Math.min(this.#behindSince, now)
    if (this.#greetedAt !== undefined) this.#bound(theirs - this.#greetedAt, ahead)
    this.#decide(now)
  }

  #bound(atMost: number, ahead: number): void {
    // It was set forward: what was found before bounds nothing any more.
    this.#atMost = ahead > this.#atMost + SAME_MS ? atMost : Math.min(this.#atMost, atMost)
  }

  #decide(now: number): void {
    const atLeast = Math.max(...this.#seen)
    const found = this.#isLateOnly(atLeast, now) ? 0 : atLeast
    if (this.#ms === undefined || found > this.#ms || found < this.#ms - SAME_MS) this.#ms = found
  }

  #isLateOnly(atLeast: number, now: number): boolean {
    if (atLeast >= 0 || atLeast < -LATEST_MS || this.#greetedAt === undefined || this.#atMost < -SAME_MS) return false
    return now - this.#behindSince < (atLeast < -MUCH_MS ? MUCH_FOR_MS : LITTLE_FOR_MS)
  }
}
