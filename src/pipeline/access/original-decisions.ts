import { type Clock, FleetError, seconds } from '#model'
import { pipelined, type Redis, redisUnavailable, scanKeys } from '#redis'
import type { Logger } from '#runtime'
import { DECISION_CACHES, OLD_CACHES } from './redis-layout.ts'

/** An API that was deciding by the policies of before stores that after the first look. */
const AGAIN_MS = seconds(2)
/** A failed look is repeated after this time. */
const RETRY_MS = seconds(1)

export interface OriginalDecisionsOptions {
  /** connected; another's */
  readonly redis: Redis
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Decisions that APIs of the original keep in Redis, where they still run beside us. They hold for minutes, whatever the policies
 * say by then, so each change of a policy takes them away: all of them, as a group in their names cannot be told from a person.
 */
export class OriginalDecisions {
  readonly #options: OriginalDecisionsOptions
  readonly #closing = new AbortController()
  #isStale = true
  #hasOld = true
  #later: Promise<void> | undefined

  constructor(options: OriginalDecisionsOptions) {
    this.#options = options
  }

  /** A policy is about to change: what is stored until then does not count. */
  policiesMove(): void {
    this.#isStale = true
  }

  /** Takes away what was stored before the last move, and looks once more a little later. @throws StoreUnavailableError */
  async clear(): Promise<void> {
    if (!this.#isStale) return
    await this.#sweep()
    this.#isStale = false
    this.#later ??= this.#sweepLater()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await this.#later
  }

  /** A look through all keys, page by page, which holds nobody up. */
  async #sweep(): Promise<void> {
    const { redis } = this.#options
    const prefixes = [...DECISION_CACHES, ...(this.#hasOld ? OLD_CACHES : [])]
    // One walk for those of the same beginning.
    for (const beginning of new Set(prefixes.map((prefix) => prefix.split(':', 1)[0]))) {
      for await (const page of scanKeys(redis, `${beginning}:*`)) {
        const keys = page.filter((key) => prefixes.some((prefix) => key.startsWith(prefix)))
        if (keys.length > 0) await pipelined(redis, [['UNLINK', ...keys]])
      }
    }
    this.#hasOld = false
  }

  async #sweepLater(): Promise<void> {
    const { clock, logger } = this.#options
    const { signal } = this.#closing
    for (let waitMs = AGAIN_MS; waitMs > 0; ) {
      await clock.sleep(waitMs, signal)
      if (signal.aborted) return
      // What moves from here on asks for a look of its own.
      this.#later = undefined
      try {
        await this.#sweep()
        waitMs = 0
      } catch (error) {
        if (signal.aborted) return
        logger.debug({ error: FleetError.from(redisUnavailable(error)).message }, 'kept decisions could not be deleted')
        waitMs = RETRY_MS
      }
    }
  }
}
