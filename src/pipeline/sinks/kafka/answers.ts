/*
 * What brokers answer, looked at before the library has it: it reads in a listener of the socket, makes of each broker that an answer
 * names some ten kilobytes of objects, and hashes a password as often as it is told to.
 *
 *   request:  size int32, API int16, its version int16, number int32, …
 *   answer:   size int32, number int32, …; of the API 3 (metadata), from version 3 on behind an int32: how many brokers, int32;
 *             of the API 36 (SASL) somewhere the message of the mechanism, of SCRAM r=…,s=…,i=(how often)
 */

/** Of an answer, bytes: acknowledgements, and what is known of one topic. */
const MAX_ANSWER_BYTES = 2 ** 20
/** More than any cluster has. */
const MAX_BROKERS = 1000
/** Servers ask for some thousands; each costs a microsecond of a thread that all share. */
const MAX_HASHES = 1_000_000
const METADATA = 3
const SASL = 36
const NUMBER_BYTES = 4
/** Of metadata as much as is looked at: size, number, time to wait, how many brokers. */
const HEAD_BYTES = 16
/** A message of SASL, with its size. */
const MAX_SASL_BYTES = 8192

interface Asked {
  readonly api: number
  readonly version: number
}

/** One connection to a broker: what was asked on it, and what comes. */
export class Answers {
  /** by their numbers */
  readonly #asked = new Map<number, Asked>()
  readonly #head = Buffer.alloc(MAX_SASL_BYTES)
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
      const end = Math.min(piece.length, at + (this.#size ?? NUMBER_BYTES) - this.#seen)
      if (this.#seen < this.#head.length) piece.copy(this.#head, this.#seen, at, end)
      const before = this.#seen
      this.#seen += end - at
      at = end
      if (this.#size === undefined) {
        if (this.#seen < NUMBER_BYTES) continue
        const size = this.#head.readInt32BE(0)
        // An alert of TLS, of any version.
        if (size >>> 16 === 0x1503) return 'it speaks TLS: `tls: {}` in the sink'
        if (size < NUMBER_BYTES || size > MAX_ANSWER_BYTES) return `it begins an answer of ${size} bytes`
        this.#size = NUMBER_BYTES + size
        continue
      }
      const fault = this.#headFault(this.#size, before)
      if (fault !== undefined) return fault
      if (this.#seen < this.#size) continue
      this.#asked.delete(this.#head.readInt32BE(NUMBER_BYTES))
      this.#seen = 0
      this.#size = undefined
    }
    return undefined
  }

  /** @param before of it was seen, and found to be well */
  #headFault(size: number, before: number): string | undefined {
    if (this.#seen < 2 * NUMBER_BYTES) return undefined
    const asked = this.#asked.get(this.#head.readInt32BE(NUMBER_BYTES))
    if (!asked) return 'it answers what it was not asked'
    if (asked.api === SASL) {
      if (size > MAX_SASL_BYTES) return `it answers ${size} bytes to a password`
      return this.#seen < size ? undefined : hashesFault(this.#head.toString('utf8', 2 * NUMBER_BYTES, size))
    }
    const looked = Math.min(size, HEAD_BYTES)
    if (asked.api !== METADATA || this.#seen < looked || before >= looked) return undefined
    const at = asked.version < 3 ? 2 * NUMBER_BYTES : 3 * NUMBER_BYTES
    if (size < at + NUMBER_BYTES) return 'its answer is cut'
    const brokers = this.#head.readInt32BE(at)
    return brokers > MAX_BROKERS ? `it names ${brokers} brokers` : undefined
  }
}

/** Of several numbers the library takes the last, as `parseInt` reads it: none of them may be large. */
function hashesFault(message: string): string | undefined {
  for (const [, text = ''] of message.matchAll(/i=([^,]*)/g)) {
    const count = Number.parseInt(text, 10)
    if (count > MAX_HASHES) return `it wants the password hashed ${count} times`
  }
  return undefined
}
