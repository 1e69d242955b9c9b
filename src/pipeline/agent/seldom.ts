import { minutes } from '#model'

/** A text that stays true is said again after so long at the latest. */
const AGAIN_MS = minutes(10)
const MAX_KEPT = 50

/** Keeps what is tried over and over from saying the same over and over: a text is news once, and again after ten minutes. */
export class Seldom {
  readonly #now: () => number
  readonly #againMs: number
  readonly #said = new Map<string, { readonly at: number; readonly againMs: number }>()

  /**
   * @param now of a clock that does not jump, ms
   * @param againMs after how long a text is news again at first, twice that the next time, and so on up to ten minutes
   */
  constructor(now: () => number, againMs = AGAIN_MS) {
    this.#now = now
    this.#againMs = againMs
  }

  isNews(text: string): boolean {
    const now = this.#now()
    const said = this.#said.get(text)
    if (said && now - said.at < said.againMs) return false
    this.#said.delete(text)
    this.#said.set(text, { at: now, againMs: said ? Math.min(AGAIN_MS, said.againMs * 2) : this.#againMs })
    const [oldest] = this.#said.keys()
    if (this.#said.size > MAX_KEPT && oldest !== undefined) this.#said.delete(oldest)
    return true
  }

  /** All is news again. */
  forget(): void {
    this.#said.clear()
  }
}
