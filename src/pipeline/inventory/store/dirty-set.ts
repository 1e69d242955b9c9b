import { type Clock, systemClock } from '#model'

/** Changes are told when nothing came for so long, ms. */
const QUIET_MS = 50
/** However much comes, they are told after so long, ms. */
const MAX_WAIT_MS = 1000

/**
 * What changed, told together after a quiet moment, and at least once a second while there is no such moment. Bounded by what there is:
 * a set, not a queue.
 */
export class DirtySet implements AsyncDisposable {
  readonly #tell: (dirty: ReadonlySet<string>) => void
  readonly #clock: Clock
  readonly #stop = new AbortController()
  #dirty = new Set<string>()
  #lastAt = 0
  #run: Promise<void> | undefined

  /** @param tell must neither wait nor throw */
  constructor(tell: (dirty: ReadonlySet<string>) => void, clock: Clock = systemClock) {
    this.#tell = tell
    this.#clock = clock
  }

  add(what: string): void {
    if (this.#stop.signal.aborted) return
    this.#dirty.add(what)
    this.#lastAt = this.#clock.now()
    this.#run ??= this.#wait(this.#lastAt)
  }

  /** Tells nothing more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#run
  }

  async #wait(firstAt: number): Promise<void> {
    for (;;) {
      const now = this.#clock.now()
      const leftMs = Math.min(this.#lastAt + QUIET_MS, firstAt + MAX_WAIT_MS) - now
      // A clock that was set back must not make anybody wait longer than the bound.
      if (leftMs <= 0 || leftMs > MAX_WAIT_MS) break
      await this.#clock.sleep(leftMs, this.#stop.signal)
      if (this.#stop.signal.aborted) return
    }
    const dirty = this.#dirty
    this.#dirty = new Set()
    this.#run = undefined
    this.#tell(dirty)
  }
}
