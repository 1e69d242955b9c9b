import type { ServerResponse } from 'node:http'
import { type Clock, seconds } from '#model'
import type { Turns } from './turns.ts'

/** A reader that takes nothing for that long is cut off, ms. */
const STUCK_MS = seconds(30)
/** Pieces are put together to about so many letters, and written in so many bytes. */
const PIECE = 64 * 1024

export interface SlowWriterOptions {
  readonly clock: Clock
  readonly turns: Turns
  /** ends with the answer's connection */
  readonly signal: AbortSignal
}

/** What is written at once of a text that is made as it is written. */
export interface Piece {
  readonly text: string
  readonly isLast: boolean
}

/** Writes an answer in turns, no faster than its reader takes it: what waits is one piece, however long the answer. */
export class SlowWriter {
  readonly #response: ServerResponse
  readonly #options: SlowWriterOptions

  constructor(response: ServerResponse, options: SlowWriterOptions) {
    this.#response = response
    this.#options = options
  }

  /** @returns false: the reader is gone, or was cut off because it took nothing */
  async write(pieces: Iterable<string>): Promise<boolean> {
    const texts = pieces[Symbol.iterator]()
    try {
      for (;;) {
        const { text, isLast } = await this.gather(texts)
        if (!(await this.put(text))) return false
        if (isLast) return true
      }
    } finally {
      texts.return?.()
    }
  }

  /** The next piece. Of who is gone nothing more is made. */
  async gather(texts: Iterator<string>): Promise<Piece> {
    const { turns, signal } = this.#options
    let [text, isLast] = ['', false]
    while (text.length < PIECE && !isLast && !signal.aborted)
      await turns.take((until) => {
        do {
          const { done, value } = texts.next()
          isLast = done === true
          text += done ? '' : value
        } while (text.length < PIECE && !isLast && performance.now() < until)
      })
    return { text, isLast }
  }

  /** @returns as `write` */
  async put(text: string): Promise<boolean> {
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += PIECE)
      if (!(await this.#take(bytes.subarray(at, at + PIECE)))) return false
    return !this.#options.signal.aborted
  }

  async #take(bytes: Buffer): Promise<boolean> {
    const { clock, signal } = this.#options
    if (signal.aborted) return false
    if (this.#response.write(bytes)) return true
    const taken = new AbortController()
    const onDrain = () => taken.abort()
    // The response of a connection that offered another protocol is not told of the drain of its socket.
    const sources = [this.#response, this.#response.socket]
    for (const source of sources) source?.once('drain', onDrain)
    await clock.sleep(STUCK_MS, AbortSignal.any([taken.signal, signal]))
    for (const source of sources) source?.off('drain', onDrain)
    if (taken.signal.aborted) return !signal.aborted
    this.#response.destroy()
    return false
  }
}
