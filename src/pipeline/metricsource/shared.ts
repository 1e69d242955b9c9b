/**
 * Keeps equal things once, as long as that saves something: where nearly everything turns out to be different, it stops looking.
 * Bounded; what does not fit is simply not shared.
 */
export class Shared<T> {
  readonly #known = new Map<string, T>()
  readonly #limit: number
  #found = 0
  #isUseless = false

  constructor(limit = 1024) {
    this.#limit = limit
  }

  /** the first thing that came with an equal key, or this one */
  of(key: string, thing: T): T {
    if (this.#isUseless) return thing
    const known = this.#known.get(key)
    if (known !== undefined) {
      this.#found++
      return known
    }
    if (this.#known.size < this.#limit) this.#known.set(key, thing)
    else if (this.#found < this.#limit) {
      this.#isUseless = true
      this.#known.clear()
    }
    return thing
  }

  get isUseless(): boolean {
    return this.#isUseless
  }
}
