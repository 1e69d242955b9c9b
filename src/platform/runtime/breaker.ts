import { type Clock, steadyClock } from '#model'

/** When a breaker opens, and for how long. */
export interface BreakerOptions {
  /** failures in a row that open it; default 5 */
  readonly threshold?: number
  /** how long it stays open, ms; default 60 s */
  readonly recoveryMs?: number | undefined
  readonly clock?: Clock
}

/** `closed`: calls pass; `open`: they fail at once; `half-open`: one is let through to see. */
export type BreakerState = 'closed' | 'open' | 'half-open'

/** What a failed call says of the other side: `trouble` counts, `alive` is an answer as good as success, `unknown` says nothing. */
export type Verdict = 'trouble' | 'alive' | 'unknown'

/**
 * Spares whoever is in trouble, and us the waiting.
 *
 *   closed ──5 failures in a row──► open ──60 s──► half-open ──success──► closed
 *                                     ▲                │ one call at a time
 *                                     └────failure─────┘
 */
export class CircuitBreaker {
  readonly #threshold: number
  readonly #recoveryMs: number
  readonly #clock: Clock
  readonly #refusal: (trouble: unknown, waitMs: number) => Error
  #failures = 0
  /** the trouble when it was last met */
  #trouble: unknown
  #openedAt: number | undefined
  #probing = false

  /** @param refusal what a call is refused with: the trouble that was met last, and the time to wait in ms */
  constructor(options: BreakerOptions, refusal: (trouble: unknown, waitMs: number) => Error) {
    this.#threshold = options.threshold ?? 5
    this.#recoveryMs = options.recoveryMs ?? 60_000
    this.#clock = options.clock ?? steadyClock
    this.#refusal = refusal
  }

  get state(): BreakerState {
    if (this.#openedAt === undefined) return 'closed'
    return this.#waitMs() > 0 ? 'open' : 'half-open'
  }

  /** Runs the call, or refuses it. @throws what the call throws, or the refusal */
  protected async pass<T>(call: () => Promise<T>, judge: (error: unknown) => Verdict): Promise<T> {
    const probe = this.#enter()
    try {
      return await this.#judged(call, judge, probe)
    } finally {
      if (probe) this.#probing = false
    }
  }

  /** Runs the call whatever the state: one that goes well closes it. For calls that are seldom made, to hear when the trouble is over. */
  protected look<T>(call: () => Promise<T>, judge: (error: unknown) => Verdict): Promise<T> {
    return this.#judged(call, judge, false)
  }

  async #judged<T>(call: () => Promise<T>, judge: (error: unknown) => Verdict, probe: boolean): Promise<T> {
    try {
      const value = await call()
      this.#succeeded()
      return value
    } catch (error) {
      const verdict = judge(error)
      if (verdict === 'trouble') this.#failed(probe, error)
      else if (verdict === 'alive') this.#succeeded()
      throw error
    }
  }

  /** @returns whether this call is the probe of a half-open breaker. */
  #enter(): boolean {
    if (this.#openedAt === undefined) return false
    const waitMs = this.#waitMs()
    if (waitMs > 0 || this.#probing) throw this.#refusal(this.#trouble, Math.max(waitMs, 1000))
    this.#probing = true
    return true
  }

  #succeeded(): void {
    this.#failures = 0
    this.#openedAt = undefined
  }

  #failed(probe: boolean, error: unknown): void {
    this.#failures++
    this.#trouble = error
    // Calls that began before it opened and end now must not prolong the pause.
    if (probe || (this.#openedAt === undefined && this.#failures >= this.#threshold)) this.#openedAt = this.#clock.now()
  }

  #waitMs(): number {
    return this.#openedAt === undefined ? 0 : this.#openedAt + this.#recoveryMs - this.#clock.now()
  }
}
