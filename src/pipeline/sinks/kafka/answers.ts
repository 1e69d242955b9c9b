/*
 * What brokers answer, looked at before the library has it: it reads in a listener of the socket, where an error would end the process, and
 * makes of each broker that an answer names some ten kilobytes of objects.
 *
 *   request:  size int32, API int16, its version int16, number int32, …
 *   answer:   size int32, number int32, …; of the API 3 (metadata), from version 3 on behind an int32: how many brokers, int32
 */

/** Of an answer, bytes: acknowledgements, and what is known of one topic. */
const MAX_ANSWER_BYTES = 2 ** 20
/** More than any cluster has. */
const MAX_BROKERS = 1000
const METADATA = 3
const NUMBER_BYTES = 4
/** Of an answer as much as is looked at: its size, its number, the time to wait, how many brokers. */
const HEAD_BYTES = 16

interface Asked {
  readonly api: number
  readonly version: number
}

/** One connection to a broker: what was asked on it, and what comes. */
export class Answers {
  /** by their numbers */
  readonly #asked = new Map<number, Asked>()
  readonly #head = Buffer.alloc(HEAD_BYTES)
  #headLength = 0
  /** of the answer that is coming, size included; undefined while it is not known */
  #size: number | undefined
  #seen = 0

  /** The library writes whole requests. */
  ask(request: Buffer): void {
    if (request.length < 12) return
    this.#asked.set(request.readInt32BE(8), { api: request.readInt16BE(4), version: request.readInt16BE(6) })
  }

  /** @returns why nothing of it may be read; undefined: it may */
  fault(piece: Buffer): string | undefined {
    for (let at = 0; at < piece.length; ) {
      const left = (this.#size ?? NUMBER_BYTES) - this.#seen
      const end = Math.min(piece.length, at + left)
      this.#headLength += piece.copy(
        this.#head,
        this.#headLength,
        at,
        Math.min(end, at + HEAD_BYTES - this.#headLength),
      )
      this.#seen += end - at
      at = end
      if (this.#size === undefined) {
        if (this.#seen < NUMBER_BYTES) continue
        const size = this.#head.readInt32BE(0)
        if (size < NUMBER_BYTES || size > MAX_ANSWER_BYTES) return `it begins an answer of ${size} bytes`
        this.#size = NUMBER_BYTES + size
        continue
      }
      const fault = this.#seen >= Math.min(this.#size, HEAD_BYTES) ? this.#headFault(this.#size) : undefined
      if (fault !== undefined) return fault
      if (this.#seen < this.#size) continue
      this.#asked.delete(this.#head.readInt32BE(4))
      this.#headLength = 0
      this.#seen = 0
      this.#size = undefined
    }
    return undefined
  }

  #headFault(size: number): string | undefined {
    const asked = this.#asked.get(this.#head.readInt32BE(4))
    if (!asked) return 'it answers what it was not asked'
    if (asked.api !== METADATA) return undefined
    const at = asked.version < 3 ? 8 : 12
    if (size < at + NUMBER_BYTES) return 'its answer is cut'
    const brokers = this.#head.readInt32BE(at)
    return brokers > MAX_BROKERS ? `it names ${brokers} brokers` : undefined
  }
}
