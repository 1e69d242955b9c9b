/**
 * The hub's clock as far as this tab can know it. Messages arrive late, never early, so the largest difference of the
 * last few is the truest: ages stay right to the second on a machine whose own clock is wrong.
 */
export class HubClock {
  readonly #localNow: () => number
  readonly #differences: number[] = []
  #offsetMs = 0

  constructor(localNow: () => number = Date.now) {
    this.#localNow = localNow
  }

  /** Takes the hub's time out of a message that has just arrived. */
  observe(hubNow: number): void {
    this.#differences.push(hubNow - this.#localNow())
    if (this.#differences.length > 8) this.#differences.shift()
    this.#offsetMs = Math.max(...this.#differences)
  }

  /** How long a message was on its way, ms, beyond the quickest of the last few; 0: nothing was measured yet. */
  lateBy(hubNow: number): number {
    return this.#differences.length === 0 ? 0 : this.now() - hubNow
  }

  /** Forgets what was measured: after a sleep of the machine its clock may have been set. */
  forget(): void {
    this.#differences.length = 0
  }

  now(): number {
    return this.#localNow() + this.#offsetMs
  }
}
