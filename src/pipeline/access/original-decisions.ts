import { type Clock, FleetError, seconds } from '#model'
import { pipelined, type Redis, redisUnavailable, scanKeys } from '#redis'
import type { Logger } from '#runtime'
import { DECISION_CACHES, OLD_CACHES } from './redis-layout.ts'

/** An API that was deciding by the policies of before stores that after the first look. */
const AGAIN_MS = seconds(2)
/** A failed look is repeated after this time. */
const RETRY_MS = seconds(1)

export interface OriginalDecisionsOptions {
  /** connected; another's. @throws StoreUnavailableError */
  readonly redis: () => Promise<Redis>
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
  #clearing: Promise<void> = Promise.resolve()
  #later: Promise<void> | undefined

  constructor(options: OriginalDecisionsOptions) {
    this.#options = options
  }

  /**
   * A write that may change policies: what was decided before it is gone when this returns.
   * @param write calls `policiesMove` where they change. Where it failed nobody knows whether they did
   * @throws StoreUnavailableError
   */
  async around<T>(write: (policiesMove: () => void) => Promise<T>): Promise<T> {
    let isMoved = false
    let value: T
    try {
      value = await write(() => {
        isMoved = true
      })
    } finally {
      this.#isStale ||= isMoved
    }
    // Also where nothing moved: the last clearing may have failed.
    await this.#clear()
    return value
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await this.#later
  }

  /** One after the other, so that each ends with a look that began after its write; and once more a little later. */
  #clear(): Promise<void> {
    const cleared = this.#clearing.then(async () => {
      if (!this.#isStale) return
      this.#isStale = false // what moves from here on asks for a look of its own
      try {
        await this.#sweep()
      } catch (error) {
        this.#isStale = true
        throw error
      }
      this.#later ??= this.#sweepLater()
    })
    this.#clearing = cleared.catch(() => undefined) // the caller has it
    return cleared
  }

  /** A look through all keys, page by page, which holds nobody up. */
  async #sweep(): Promise<void> {
    const redis = await this.#options.redis()
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
