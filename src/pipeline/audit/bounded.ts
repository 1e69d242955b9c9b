const WINDOW_MS = 60_000

/** Entries in a minute. */
export interface Bounds {
  /** of one address or name */
  readonly ofOne: number
  readonly inAll: number
  /** addresses or names that are told apart; those beyond write nothing */
  readonly known: number
}

export const STRANGERS: Bounds = { ofOne: 60, inAll: 600, known: 4_096 }
export const MEMBERS: Bounds = { ofOne: 60, inAll: 6_000, known: 16_384 }

/**
 * Bounds what those can write into the trail whom nobody watches: people who are not signed in, by address, and members, by name. What is
 * beyond is counted, and told once a minute.
 */
export class Bounded {
  readonly #bounds: Bounds
  readonly #tell: (count: number) => void
  readonly #known = new Map<string, number>()
  #admitted = 0
  #beyond = 0
  #timer: NodeJS.Timeout | undefined

  constructor(bounds: Bounds, tell: (count: number) => void) {
    this.#bounds = bounds
    this.#tell = tell
  }

  /** @param who an address or a name */
  admit(who: string): boolean {
    this.#timer ??= setTimeout(() => this.close(), WINDOW_MS).unref()
    const { ofOne, inAll, known: most } = this.#bounds
    const known = this.#known.get(who) ?? (this.#known.size < most ? 0 : ofOne)
    if (known >= ofOne || this.#admitted >= inAll) {
      this.#beyond += 1
      return false
    }
    this.#known.set(who, known + 1)
    this.#admitted += 1
    return true
  }

  /** Ends the minute that runs. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#known.clear()
    this.#admitted = 0
    const beyond = this.#beyond
    this.#beyond = 0
    if (beyond > 0) this.#tell(beyond)
  }
}
