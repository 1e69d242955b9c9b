import type { ServerResponse } from 'node:http'
import { type Clock, seconds } from '#model'

/** A reader that takes nothing for that long is cut off, ms. */
const STUCK_MS = seconds(30)
/** Pieces are put together to about so many letters. */
const PIECE = 64 * 1024

/** Writes an answer no faster than its reader takes it: what waits is one piece, however long the answer. */
export class SlowWriter {
  readonly #response: ServerResponse
  readonly #clock: Clock
  readonly #signal: AbortSignal

  /** @param signal ends with the answer's connection */
  constructor(response: ServerResponse, clock: Clock, signal: AbortSignal) {
    this.#response = response
    this.#clock = clock
    this.#signal = signal
  }

  /** @returns false: the reader is gone, or was cut off because it took nothing */
  async write(pieces: Iterable<string>): Promise<boolean> {
    let text = ''
    for (const piece of pieces) {
      text += piece
      if (text.length < PIECE) continue
      if (!(await this.#take(text))) return false
      text = ''
    }
    return this.#take(text)
  }

  async #take(text: string): Promise<boolean> {
    if (this.#signal.aborted) return false
    if (text === '' || this.#response.write(text)) return true
    const taken = new AbortController()
    const onDrain = () => taken.abort()
    this.#response.once('drain', onDrain)
    await this.#clock.sleep(STUCK_MS, AbortSignal.any([taken.signal, this.#signal]))
    this.#response.off('drain', onDrain)
    if (taken.signal.aborted) return !this.#signal.aborted
    this.#response.destroy()
    return false
  }
}
