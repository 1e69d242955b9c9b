import type { Clock } from '#model'
import { RefusedError } from './problem.ts'
import type { RateLimit } from './types.ts'

/** Beyond this many callers the one that asked longest ago is forgotten, which gives it a full bucket at worst. */
const maxCallers = 10_000

/**
 * What a page of this fleet may ask in bursts: a card per cluster, each with two questions, four times over.
 * @param clusters how many there are now
 */
export function limitFor(clusters: number): RateLimit {
  return { perSecond: Math.max(200, clusters * 2), burst: Math.max(400, clusters * 8) }
}

interface Bucket {
  tokens: number
  at: number
}

/** How much one caller may ask: a bucket of tokens each, one token per request. */
export class RateLimiter {
  readonly #limit: () => RateLimit
  readonly #clock: Clock
  readonly #refusal: string
  readonly #buckets = new Map<string, Bucket>()

  /** @param limit asked anew for every request: it grows with the fleet */
  constructor(limit: RateLimit | (() => RateLimit), clock: Clock, refusal = 'more requests than one caller may send') {
    this.#refusal = refusal
    this.#limit = typeof limit === 'function' ? limit : () => limit
    this.#clock = clock
  }

  /** @throws RefusedError `too_many_requests` with the seconds after which there is a token again */
  take(caller: string): void {
    const { perSecond, burst } = this.#limit()
    const now = this.#clock.now()
    const known = this.#buckets.get(caller)
    // A clock that jumps back takes nothing away and gives nothing.
    const tokens = known ? Math.min(burst, known.tokens + (Math.max(0, now - known.at) / 1000) * perSecond) : burst
    this.#buckets.delete(caller)
    this.#buckets.set(caller, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now })
    const oldest = this.#buckets.keys().next()
    if (this.#buckets.size > maxCallers && !oldest.done) this.#buckets.delete(oldest.value)
    if (tokens >= 1) return
    const retryAfterSeconds = Math.max(1, Math.ceil((1 - tokens) / perSecond))
    throw new RefusedError('too_many_requests', this.#refusal, { retryAfterSeconds })
  }

  get size(): number {
    return this.#buckets.size
  }
}
