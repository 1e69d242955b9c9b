/** Work goes on for no longer than this before others are heard, ms; a step of the work comes on top. */
const TURN_MS = 10

/**
 * Long work of many, in turn: however much of it there is, the process hears others after each turn. Each lot of work by itself
 * would give way to the next lot, and all together hold the process.
 */
export class Turns {
  readonly #waiting: ((until: number) => void)[] = []
  #isDue = false

  /** @param work is done when it is its turn, and gives way at the time that it is told, of `performance.now()` */
  take<T>(work: (until: number) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push((until) => {
        try {
          resolve(work(until))
        } catch (error) {
          reject(error)
        }
      })
      this.#ask()
    })
  }

  #ask(): void {
    if (this.#isDue || this.#waiting.length === 0) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      const until = performance.now() + TURN_MS
      do this.#waiting.shift()?.(until)
      while (this.#waiting.length > 0 && performance.now() < until)
      this.#ask()
    })
  }
}
