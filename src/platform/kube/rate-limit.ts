import type { Clock } from '#model'

/** Lets `perSecond` callers through, and `burst` at once after a rest; the others wait in their order. */
export class RateLimit {
  readonly #perMs: number
  readonly #burst: number
  readonly #clock: Clock
  /** The moment at which the bucket would be full again; the further ahead, the emptier it is. */
  #fullAt = Number.NEGATIVE_INFINITY

  constructor(options: { perSecond: number; burst: number; clock: Clock }) {
    this.#perMs = options.perSecond / 1000
    this.#burst = Math.max(1, options.burst)
    this.#clock = options.clock
  }

  /** Resolves when the caller may go; throws the signal's reason. A place given up by abort is not given back. */
  async take(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    const now = this.#clock.now()
    this.#fullAt = Math.max(this.#fullAt, now) + 1 / this.#perMs
    const waitMs = this.#fullAt - now - this.#burst / this.#perMs
    if (waitMs <= 0) return
    await this.#clock.sleep(Math.ceil(waitMs), signal)
    signal?.throwIfAborted()
  }
}
