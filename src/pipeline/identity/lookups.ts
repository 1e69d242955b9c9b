import { LRUCache } from 'lru-cache'
import type { Clock } from '#model'
import { IdentityUnavailableError } from './errors.ts'

export interface LookupOptions<V> {
  readonly clock: Clock
  /** how long a value counts as fresh, ms */
  readonly ttlMs: (value: V) => number
  /** how long beyond that the last good value stands in while loading fails, ms; default 0 */
  readonly staleMs?: number
  /** entries kept; the least recently used goes first. Default 10 000 */
  readonly max?: number
  /** of one load, ms; default 5 s */
  readonly timeoutMs?: number
  /** called with each failure of a load, before anybody is told */
  readonly onFailure?: (error: unknown) => void
}

export type Load<V> = (signal: AbortSignal) => Promise<V>

interface Entry<V> {
  readonly value: V
  readonly at: number
  /** asked for anew before it is given again */
  expired?: boolean
}

const maxPending = 256
const pauseAfterFailureMs = 1000

/**
 * Values from elsewhere, asked for once however many want them at the same time. Failures are never kept as values: for a
 * bounded time the last good value stands in, after that asking fails. After a failure there is a pause, so that a service
 * in trouble is not asked by every request.
 */
export class Lookups<V> {
  readonly #options: LookupOptions<V>
  readonly #entries: LRUCache<string, Entry<V>>
  readonly #failures: LRUCache<string, { readonly at: number; readonly error: unknown }>
  readonly #pending = new Map<string, Promise<V>>()
  readonly #closing = new AbortController()

  constructor(options: LookupOptions<V>) {
    this.#options = options
    this.#entries = new LRUCache({ max: options.max ?? 10_000 })
    this.#failures = new LRUCache({ max: 1000 })
  }

  /** @throws IdentityUnavailableError where it cannot be had and nothing may stand in */
  async get(key: string, load: Load<V>): Promise<{ readonly value: V; readonly stale: boolean }> {
    const entry = this.#entries.get(key)
    if (entry && !entry.expired && this.#ageOf(entry) < this.#options.ttlMs(entry.value))
      return { value: entry.value, stale: false }
    try {
      return { value: await this.#load(key, load), stale: false }
    } catch (error) {
      const { ttlMs, staleMs = 0 } = this.#options
      // Forgotten meanwhile: then nothing stands in.
      if (entry && this.#entries.peek(key) === entry && this.#ageOf(entry) < ttlMs(entry.value) + staleMs)
        return { value: entry.value, stale: true }
      throw error instanceof IdentityUnavailableError
        ? error
        : new IdentityUnavailableError('who you are cannot be found out now: try again shortly', { cause: error })
    }
  }

  /** It is asked for anew, and stands in only where that fails. */
  expire(key: string): void {
    const entry = this.#entries.peek(key)
    if (entry) entry.expired = true
  }

  /** @returns whether there was something to forget. What is being loaded counts only for who waits for it already. */
  forget(key: string): boolean {
    this.#pending.delete(key)
    this.#failures.delete(key)
    return this.#entries.delete(key)
  }

  forgetWhere(matches: (value: V) => boolean): number {
    const keys = [...this.#entries.entries()].filter(([, { value }]) => matches(value)).map(([key]) => key)
    for (const key of keys) this.forget(key)
    return keys.length
  }

  close(): void {
    this.#closing.abort()
  }

  // A clock that was set back makes everything old.
  #ageOf({ at }: Entry<V>): number {
    const age = this.#options.clock.now() - at
    return age < 0 ? Number.POSITIVE_INFINITY : age
  }

  #load(key: string, load: Load<V>): Promise<V> {
    const running = this.#pending.get(key)
    if (running) return running
    const { clock, onFailure } = this.#options
    const failed = this.#failures.get(key)
    if (failed && Math.abs(clock.now() - failed.at) < pauseAfterFailureMs) return Promise.reject(failed.error)
    if (this.#pending.size >= maxPending)
      return Promise.reject(
        new IdentityUnavailableError('too many sign-ins are being checked at once: try again shortly'),
      )
    const current = () => this.#pending.get(key) === promise
    const promise: Promise<V> = this.#ask(load).then(
      (value) => {
        if (current()) this.#keep(key, { value, at: clock.now() })
        return value
      },
      (error: unknown) => {
        if (current()) {
          this.#pending.delete(key)
          this.#failures.set(key, { at: clock.now(), error })
        }
        onFailure?.(error)
        throw error
      },
    )
    this.#pending.set(key, promise)
    return promise
  }

  #keep(key: string, entry: Entry<V>): void {
    this.#pending.delete(key)
    this.#failures.delete(key)
    this.#entries.set(key, entry)
  }

  async #ask(load: Load<V>): Promise<V> {
    return await load(AbortSignal.any([this.#closing.signal, AbortSignal.timeout(this.#options.timeoutMs ?? 5000)]))
  }
}
