/** Who is told of changes. A listener marks or schedules; it must not wait and not throw. */
export class Listeners {
  readonly #listeners = new Set<() => void>()

  /** @returns ends it */
  add(listener: () => void): () => void {
    const own = () => listener()
    this.#listeners.add(own)
    return () => {
      this.#listeners.delete(own)
    }
  }

  tell(): void {
    for (const listener of [...this.#listeners]) listener()
  }
}
