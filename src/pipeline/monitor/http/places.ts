import { type Clock, seconds } from '#model'

/** Large answers that are written at once: to one caller, and to all. */
const MOST = { ofCaller: 2, ofAll: 64 } as const
/** Those that wait for their place. */
const MOST_WAITING = { ofCaller: 8, ofAll: 64 } as const
const WAIT_MS = seconds(20)

interface Waiting {
  readonly userId: string
  readonly place: AbortController
}

/** Places for large answers: each holds a piece of its text for as long as its reader takes. */
export class Places {
  readonly #clock: Clock
  readonly #taken = new Map<string, number>()
  readonly #waiting = new Set<Waiting>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Waits for a place, in line.
   * @param signal ends the wait
   * @returns false: there is none for now; else it must be given back
   */
  async take(userId: string, signal: AbortSignal): Promise<boolean> {
    if (this.#hasRoom(userId)) {
      this.#count(userId, 1)
      return true
    }
    const own = [...this.#waiting].filter((one) => one.userId === userId)
    if (own.length >= MOST_WAITING.ofCaller || this.#waiting.size >= MOST_WAITING.ofAll) return false
    const waiting: Waiting = { userId, place: new AbortController() }
    this.#waiting.add(waiting)
    await this.#clock.sleep(WAIT_MS, AbortSignal.any([waiting.place.signal, signal]))
    this.#waiting.delete(waiting)
    return waiting.place.signal.aborted
  }

  giveBack(userId: string): void {
    this.#count(userId, -1)
    for (const waiting of this.#waiting) {
      if (!this.#hasRoom(waiting.userId)) continue
      this.#waiting.delete(waiting)
      this.#count(waiting.userId, 1)
      waiting.place.abort()
    }
  }

  #hasRoom(userId: string): boolean {
    const all = [...this.#taken.values()].reduce((sum, count) => sum + count, 0)
    return all < MOST.ofAll && (this.#taken.get(userId) ?? 0) < MOST.ofCaller
  }

  #count(userId: string, by: 1 | -1): void {
    const count = (this.#taken.get(userId) ?? 0) + by
    if (count > 0) this.#taken.set(userId, count)
    else this.#taken.delete(userId)
  }
}
