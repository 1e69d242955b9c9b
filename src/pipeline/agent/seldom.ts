import { minutes } from '#model'

/** A text that stays true is said again after so long. */
const AGAIN_MS = minutes(10)
const MAX_KEPT = 50

/** Keeps what is tried over and over from saying the same over and over: a text is news once, and again after ten minutes. */
export class Seldom {
  readonly #now: () => number
  readonly #saidAt = new Map<string, number>()

  /** @param now of a clock that does not jump, ms */
  constructor(now: () => number) {
    this.#now = now
  }

  isNews(text: string): boolean {
    const now = this.#now()
    const saidAt = this.#saidAt.get(text)
    if (saidAt !== undefined && now - saidAt < AGAIN_MS) return false
    this.#saidAt.delete(text)
    this.#saidAt.set(text, now)
    const [oldest] = this.#saidAt.keys()
    if (this.#saidAt.size > MAX_KEPT && oldest !== undefined) this.#saidAt.delete(oldest)
    return true
  }

  /** All is news again. */
  forget(): void {
    this.#saidAt.clear()
  }
}
