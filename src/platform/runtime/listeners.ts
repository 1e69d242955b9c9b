/** Subscribers of changes. A listener marks or schedules; it must not wait and not throw. */
export class Listeners<T extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...args: T) => void>()

  /** @returns ends the subscription */
  add(listener: (...args: T) => void): () => void {
    // Wrapped, so that the same function given twice is called twice and ends once each.
    const own = (...args: T) => listener(...args)
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  tell(...args: T): void {
    for (const listener of [...this.#listeners]) listener(...args)
  }
}
