const WINDOW_MS = 60_000
const PER_ADDRESS = 60
const PER_WINDOW = 600
const MAX_ADDRESSES = 4_096

/**
 * Bounds what people who are not signed in can write into the trail: so many entries a minute from one address, and from all.
 * What is beyond is counted, and told once a minute.
 */
export class Strangers {
  readonly #tell: (count: number) => void
  readonly #addresses = new Map<string, number>()
  #admitted = 0
  #beyond = 0
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (count: number) => void) {
    this.#tell = tell
  }

  admit(address: string): boolean {
    this.#timer ??= setTimeout(() => this.close(), WINDOW_MS).unref()
    const known = this.#addresses.get(address) ?? (this.#addresses.size < MAX_ADDRESSES ? 0 : PER_ADDRESS)
    if (known >= PER_ADDRESS || this.#admitted >= PER_WINDOW) {
      this.#beyond += 1
      return false
    }
    this.#addresses.set(address, known + 1)
    this.#admitted += 1
    return true
  }

  /** Ends the minute that runs. */
  close(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#addresses.clear()
    this.#admitted = 0
    const beyond = this.#beyond
    this.#beyond = 0
    if (beyond > 0) this.#tell(beyond)
  }
}
