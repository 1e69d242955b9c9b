import { type Clock, minutes } from '#model'

/** Clusters that hang must not keep the others from their rows for longer. */
const LIMIT_MS = minutes(1)

/** The first look at each connection that was there at the start: what may wait begins when they are over. */
export class FirstLooks {
  readonly #clock: Clock
  #left = new Set<string>()
  #over = new AbortController()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @returns when each of these was looked at once, or a minute is over, or `end` is called */
  begin(names: Iterable<string>): Promise<void> {
    this.end()
    this.#left = new Set(names)
    this.#over = new AbortController()
    if (this.#left.size === 0) this.end()
    return this.#clock.sleep(LIMIT_MS, this.#over.signal)
  }

  /** This one was looked at, whatever came of it. */
  ended(name: string): void {
    if (this.#left.delete(name) && this.#left.size === 0) this.end()
  }

  end(): void {
    this.#over.abort('no longer needed')
  }
}
