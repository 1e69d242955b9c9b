import type { StreamLimits } from '../line/limits.ts'

/** A token bucket that may go into debt: what was taken once is paid by waiting before the next. */
export class Bucket {
  readonly #perSecond: number
  readonly #burst: number
  #tokens: number
  #at: number

  constructor(perSecond: number, burst: number, now: number) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#tokens = burst
    this.#at = now
  }

  take(amount: number, now: number): void {
    this.#refill(now)
    this.#tokens -= amount
  }

  /** ms until the debt is paid; 0 without one */
  debtMs(now: number): number {
    this.#refill(now)
    return this.#tokens >= 0 ? 0 : Math.ceil((-this.#tokens / this.#perSecond) * 1000)
  }

  /** at least half of the burst is there: whoever took before has paused */
  isRested(now: number): boolean {
    this.#refill(now)
    return this.#tokens >= this.#burst / 2
  }

  // A clock that was set back gives nothing and takes nothing.
  #refill(now: number): void {
    const elapsed = Math.max(0, now - this.#at)
    this.#at = now
    this.#tokens = Math.min(this.#burst, this.#tokens + (elapsed / 1000) * this.#perSecond)
  }
}

/** Messages, bytes and inflated bytes of one stream. Over its rate it waits; without a pause for `overRateMs` it is far over. */
export class StreamRate {
  readonly #messages: Bucket
  readonly #bytes: Bucket
  readonly #inflated: Bucket
  readonly #overRateMs: number
  #overSince: number | undefined

  constructor(
    limits: Pick<StreamLimits, 'messagesPerSecond' | 'bytesPerSecond' | 'inflatedBytesPerSecond' | 'overRateMs'>,
    now: number,
  ) {
    this.#messages = new Bucket(limits.messagesPerSecond, 2 * limits.messagesPerSecond, now)
    this.#bytes = new Bucket(limits.bytesPerSecond, 4 * limits.bytesPerSecond, now)
    this.#inflated = new Bucket(limits.inflatedBytesPerSecond, 4 * limits.inflatedBytesPerSecond, now)
    this.#overRateMs = limits.overRateMs
  }

  take(bytes: number, now: number): void {
    if ([this.#messages, this.#bytes, this.#inflated].every((bucket) => bucket.isRested(now)))
      this.#overSince = undefined
    this.#messages.take(1, now)
    this.#bytes.take(bytes, now)
    if (this.waitMs(now) > 0) this.#overSince ??= now
  }

  /** What a message becomes here, which may be far more than it weighed. */
  inflate(bytes: number, now: number): void {
    this.#inflated.take(bytes, now)
    if (this.waitMs(now) > 0) this.#overSince ??= now
  }

  waitMs(now: number): number {
    return Math.max(this.#messages.debtMs(now), this.#bytes.debtMs(now), this.#inflated.debtMs(now))
  }

  isFarOver(now: number): boolean {
    return this.#overSince !== undefined && now - this.#overSince > this.#overRateMs
  }
}
