import { LRUCache } from 'lru-cache'
import { type Clock, minutes } from '#model'

const freeTries = 5
const firstDelayMs = 1000
const longestDelayMs = minutes(5)
/** Without a further failure all is forgotten. */
const rememberedMs = minutes(30)
const maxKeys = 50_000

/** Failed tries per key: five are free, then each waits twice as long as the one before, at most five minutes. */
export class Throttle {
  readonly #clock: Clock
  readonly #failures = new LRUCache<string, { readonly count: number; readonly at: number }>({ max: maxKeys })

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How long to wait before the next try, ms; 0: now. */
  delayMs(key: string): number {
    const { count, at } = this.#known(key)
    if (count < freeTries) return 0
    const delay = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(count - freeTries, 20))
    // Set back by at most the delay itself, however far the clock jumps.
    return Math.min(delay, Math.max(0, at + delay - this.#clock.now()))
  }

  /** A try begins: it counts as failed until it succeeds, so that many at once are no way around. */
  begin(key: string): void {
    this.#failures.set(key, { count: this.#known(key).count + 1, at: this.#clock.now() })
  }

  succeeded(key: string): void {
    this.#failures.delete(key)
  }

  #known(key: string): { readonly count: number; readonly at: number } {
    const known = this.#failures.get(key)
    return known && this.#clock.now() - known.at < rememberedMs ? known : { count: 0, at: 0 }
  }
}
