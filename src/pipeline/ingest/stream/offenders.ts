import { LRUCache } from 'lru-cache'
import type { Clock } from '#model'
import { Bucket } from './rate.ts'
import type { Peer } from './types.ts'

/** Ends of streams that a sound agent hardly comes to; it is told to wait for a minute, and does. */
const OFFENCES = new Set(['bad_frames', 'rate'])
/** A little less than they were told to wait: clocks differ. */
const PAUSE_MS = 55_000
/** How a stream ends whose agent was told to wait. */
export const EARLY = 'early'
const BAD_WITHIN_MS = 60_000
const FREE_PER_ADDRESS = 3
const PER_SECOND = 3 / 60
/** An address is slow for so long at most after the last of it. */
const SLOW_MS = 60_000
const MAX_KEPT = 10_000

/**
 * Who sent what no agent sends, and comes back before it was asked to. Its credential is told the rest of its pause before anything is
 * made of the stream; an address with more of that than an agent here and there is slow: it shakes hands a few times a second. Of a
 * stream that came to another process the owner of its cluster knows it.
 */
export class Offenders {
  readonly #clock: Clock
  readonly #maxBadFrames: number
  /** when frames of a credential broke the protocol */
  readonly #badFrames = new LRUCache<string, readonly number[]>({ max: MAX_KEPT })
  readonly #pausedUntil = new LRUCache<string, number>({ max: MAX_KEPT })
  readonly #addresses = new LRUCache<string, Bucket>({ max: MAX_KEPT })

  constructor(clock: Clock, maxBadFrames: number) {
    this.#clock = clock
    this.#maxBadFrames = maxBadFrames
  }

  /** A frame was no batch. @returns whether that makes too many, on however many streams */
  badFrame(peer: Peer): boolean {
    const now = this.#clock.now()
    const before = this.#badFrames.get(nameOf(peer)) ?? []
    const recent = [...before.filter((at) => now - at < BAD_WITHIN_MS), now].slice(-this.#maxBadFrames)
    this.#badFrames.set(nameOf(peer), recent)
    return recent.length >= this.#maxBadFrames
  }

  /** A stream ended. */
  ended(code: string, peer: Peer | undefined, address: string): void {
    if (code !== EARLY && !OFFENCES.has(code)) return
    const now = this.#clock.now()
    if (peer && code !== EARLY) this.#pausedUntil.set(nameOf(peer), now + PAUSE_MS)
    const bucket = this.#addresses.get(address) ?? new Bucket(PER_SECOND, FREE_PER_ADDRESS, now)
    this.#addresses.set(address, bucket)
    if (bucket.debtMs(now) < SLOW_MS) bucket.take(1, now)
  }

  /** 0: it is welcome */
  pauseMs(peer: Peer): number {
    return Math.max(0, (this.#pausedUntil.get(nameOf(peer)) ?? 0) - this.#clock.now())
  }

  isSlow(address: string): boolean {
    return (this.#addresses.get(address)?.debtMs(this.#clock.now()) ?? 0) > 0
  }
}

const nameOf = ({ cluster, method, credential }: Peer) => `${cluster} ${method} ${credential}`
