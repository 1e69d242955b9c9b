import { LRUCache } from 'lru-cache'
import type { Clock } from '#model'
import { Bucket } from './rate.ts'

const FREE_FAILURES = 10
const FAILURES_PER_SECOND = 0.5
const MAX_HOLD_MS = 5_000
const MAX_HELD_PER_ADDRESS = 8
const MAX_ADDRESSES = 10_000

/**
 * Slows down whoever fails to prove who he is: after ten failures the answer comes later and later, and with eight of them
 * waiting nothing more from that address is looked at. Others behind the same address get through as long as it is not.
 * Of a stream that came to another process the owner of its cluster counts: guesses at one credential add up in one place,
 * through however many doors they come.
 */
export class Refusals {
  readonly #clock: Clock
  readonly #addresses = new LRUCache<string, { readonly bucket: Bucket; held: number }>({ max: MAX_ADDRESSES })

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Nothing from there is to be looked at now. */
  isClosedTo(address: string): boolean {
    return (this.#addresses.get(address)?.held ?? 0) >= MAX_HELD_PER_ADDRESS
  }

  /** Counts a failure and resolves when its answer may be given. */
  async hold(address: string, signal: AbortSignal): Promise<void> {
    const now = this.#clock.now()
    const entry = this.#addresses.get(address) ?? {
      bucket: new Bucket(FAILURES_PER_SECOND, FREE_FAILURES, now),
      held: 0,
    }
    this.#addresses.set(address, entry)
    if (entry.held >= MAX_HELD_PER_ADDRESS) return
    entry.bucket.take(1, now)
    const holdMs = Math.min(MAX_HOLD_MS, entry.bucket.debtMs(now))
    if (holdMs === 0) return
    entry.held++
    await this.#clock.sleep(holdMs, signal)
    entry.held--
  }
}
