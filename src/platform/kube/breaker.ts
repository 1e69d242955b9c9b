import { type Clock, steadyClock } from '#model'
import { isClusterTrouble, isKubeError, KubeError, pausedAfter } from './errors.ts'

/** When a breaker opens, and for how long. */
export interface BreakerOptions {
  /** failures in a row that open it; default 5 */
  readonly threshold?: number
  /** how long it stays open, ms; default 60 s */
  readonly recoveryMs?: number
  readonly clock?: Clock
}

/** `closed`: calls pass; `open`: they fail at once; `half-open`: one is let through to see. */
export type BreakerState = 'closed' | 'open' | 'half-open'

/**
 * Spares a cluster that is in trouble, and us the waiting.
 *
 *   closed ──5 failures in a row──► open ──60 s──► half-open ──success──► closed
 *                                     ▲                │ one call at a time
 *                                     └────failure─────┘
 *
 * Only trouble of the cluster counts (unreachable, timeout, TLS, 5xx); an answer such as forbidden proves that it lives.
 * What it refuses with says what that trouble was: our pause is none of the cluster's faults.
 */
export class Breaker {
  readonly #threshold: number
  readonly #recoveryMs: number
  readonly #clock: Clock
  #failures = 0
  /** the cluster's trouble when it was last met */
  #trouble: KubeError | undefined
  #openedAt: number | undefined
  #probing = false

  constructor(options: BreakerOptions = {}) {
    this.#threshold = options.threshold ?? 5
    this.#recoveryMs = options.recoveryMs ?? 60_000
    this.#clock = options.clock ?? steadyClock
  }

  get state(): BreakerState {
    if (this.#openedAt === undefined) return 'closed'
    return this.#waitMs() > 0 ? 'open' : 'half-open'
  }

  /**
   * Runs the call, or refuses it.
   * @param isTrouble which failures count
   * @throws KubeError `breaker_open` where it refuses, with the last trouble's words and code, and the time to wait.
   */
  async run<T>(call: () => Promise<T>, isTrouble: (error: unknown) => boolean = isClusterTrouble): Promise<T> {
    const probe = this.#enter()
    try {
      const value = await call()
      this.#succeeded()
      return value
    } catch (error) {
      if (isTrouble(error)) this.#failed(probe, error)
      // Any other answer proves that it lives; a call that its caller or our own side ended says nothing.
      else if (!isClusterTrouble(error) && error instanceof KubeError && error.httpStatus !== undefined)
        this.#succeeded()
      throw error
    } finally {
      if (probe) this.#probing = false
    }
  }

  /** @returns whether this call is the probe of a half-open breaker. */
  #enter(): boolean {
    if (this.#openedAt === undefined) return false
    const waitMs = this.#waitMs()
    if (waitMs > 0 || this.#probing) throw pausedAfter(this.#trouble, Math.max(waitMs, 1000))
    this.#probing = true
    return true
  }

  #succeeded(): void {
    this.#failures = 0
    this.#openedAt = undefined
  }

  #failed(probe: boolean, error: unknown): void {
    this.#failures++
    if (isKubeError(error)) this.#trouble = error
    // Calls that began before it opened and end now must not prolong the pause.
    if (probe || (this.#openedAt === undefined && this.#failures >= this.#threshold)) this.#openedAt = this.#clock.now()
  }

  #waitMs(): number {
    return this.#openedAt === undefined ? 0 : this.#openedAt + this.#recoveryMs - this.#clock.now()
  }
}
