/** Watches of one process, where no setting says otherwise: those of 340 clusters. */
export const MAX_WATCHES = 4096

/** Watches of one process: each has a connection of its own. What is beyond is polled, and says so. */
export class WatchBudget {
  readonly #most: number
  #taken = 0
  #isHeld = false

  constructor(most = MAX_WATCHES) {
    this.#most = most
  }

  get taken(): number {
    return this.#taken
  }

  /** None is opened until `release`: at a start the first rounds of all clusters come before what keeps one of them current. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
  }

  /** @returns false where there would be too many, or it is too early */
  take(count: number): boolean {
    if (this.#isHeld || this.#taken + count > this.#most) return false
    this.#taken += count
    return true
  }

  give(count: number): void {
    this.#taken -= count
  }

  /** Why one was refused, for people; undefined: it is only too early. */
  get why(): string | undefined {
    if (this.#isHeld) return undefined
    return `${this.#most} watches are open, which is as many as MAX_WATCHES lets one process have`
  }
}
