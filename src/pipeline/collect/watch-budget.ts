/** Watches of one process: each has a connection of its own. What is beyond is polled, and says so. */
export class WatchBudget {
  readonly #most: number
  #taken = 0

  constructor(most = 4096) {
    this.#most = most
  }

  get taken(): number {
    return this.#taken
  }

  /** @returns false where there would be too many */
  take(count: number): boolean {
    if (this.#taken + count > this.#most) return false
    this.#taken += count
    return true
  }

  give(count: number): void {
    this.#taken -= count
  }

  /** Why one was refused, for people. */
  get why(): string {
    return `${this.#most} watches are open, which is as many as one process has`
  }
}
