import { type Clock, seconds } from '#model'
import type { Logger } from '#runtime'

const EVERY_MS = seconds(1)
/** An agent waits about so long for an answer before it gives a connection up. */
const STOOD_STILL_MS = seconds(4)

export interface PresenceOptions {
  /** a step ahead counts as well: a machine that slept may have a steady clock that slept, too */
  readonly clock: Clock
  readonly steady: Clock
  readonly logger: Logger
}

/**
 * Since when this process has watched without a break. Before it was started, or while it stood still, it heard of nobody: that
 * is no absence of members.
 */
export class Presence {
  readonly #options: PresenceOptions
  #since: number
  #seen: { readonly steady: number; readonly wall: number }

  constructor(options: PresenceOptions) {
    this.#options = options
    this.#seen = this.#now()
    this.#since = this.#seen.steady
  }

  /** By the steady clock, ms. */
  get since(): number {
    this.#look()
    return this.#since
  }

  /** ms */
  forMs(): number {
    return this.#options.steady.now() - this.since
  }

  /** Looks again and again, until the signal ends it: what stood still is noticed by the time between two looks. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#look()
      await this.#options.steady.sleep(EVERY_MS, signal)
    }
  }

  #now() {
    const { clock, steady } = this.#options
    return { steady: steady.now(), wall: clock.now() }
  }

  #look(): void {
    const before = this.#seen
    const now = this.#now()
    this.#seen = now
    const stoodStillMs = Math.max(now.steady - before.steady, now.wall - before.wall) - EVERY_MS
    if (stoodStillMs < STOOD_STILL_MS) return
    this.#since = now.steady
    this.#options.logger.warn(
      { stoodStillMs: Math.round(stoodStillMs) },
      'the hub stood still, or its clock was set ahead: members have time to come back before they are said to be lost',
    )
  }
}
