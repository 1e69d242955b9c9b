/*
 * What a database sends, looked at before the library has it: of an error or a notice it reads fields until their end is written, and
 * where that is missing it never ends; and it makes much of short messages, if only there are enough of them.
 *
 *   message:           type, length int32 (itself included), …
 *   error E, notice N: fields (type, text, 0), 0
 *   columns T:         count int16, …
 *   ready Z:           the answer is over
 *
 * @see PostgreSQL, "Message Formats"
 */

const HEAD_BYTES = 5
/** Of an error or a notice, bytes: its words, and a piece of a statement. */
const MAX_WORDS_BYTES = 2 ** 20
/** Of our statements none has as many columns, nor as many rows; a trigger may say something of each row. */
const MAX_COLUMNS_BYTES = 16 * 1024
const MAX_DESCRIPTIONS = 1000
const MAX_MESSAGES = 1_000_000
const ERROR = 0x45
const NOTICE = 0x4e
const COLUMNS = 0x54
const READY = 0x5a

/** What comes on one connection to a database. */
export class Messages {
  readonly #head = Buffer.alloc(HEAD_BYTES)
  /** of the message that is coming, bytes */
  #seen = 0
  #size = 0
  /** in the answer that is coming */
  #descriptions = 0
  #messages = 0
  /** the body of an error or a notice, as far as it came */
  #words: Buffer[] | undefined

  /** @returns why nothing of it may be read; undefined: it may */
  fault(piece: Buffer): string | undefined {
    for (let at = 0; at < piece.length; ) {
      const isHead = this.#seen < HEAD_BYTES
      const end = Math.min(piece.length, at + (isHead ? HEAD_BYTES : this.#size) - this.#seen)
      if (isHead) piece.copy(this.#head, this.#seen, at, end)
      else this.#words?.push(piece.subarray(at, end))
      this.#seen += end - at
      at = end
      if (isHead && this.#seen === HEAD_BYTES) {
        const fault = this.#begin()
        if (fault !== undefined) return fault
      }
      if (this.#seen < HEAD_BYTES || this.#seen < this.#size) continue
      if (this.#words && !hasEnd(Buffer.concat(this.#words))) return 'its message has no end'
      this.#seen = 0
    }
    return undefined
  }

  #begin(): string | undefined {
    const [type] = this.#head
    const length = this.#head.readUInt32BE(1)
    if (length < HEAD_BYTES - 1) return `it begins a message of ${length} bytes`
    this.#size = 1 + length
    if (type === READY) this.#descriptions = this.#messages = 0
    else if (++this.#messages > MAX_MESSAGES || (type === COLUMNS && ++this.#descriptions > MAX_DESCRIPTIONS))
      return 'it sends more messages than an answer has'
    if (type === COLUMNS && length > MAX_COLUMNS_BYTES) return `it describes columns in ${length} bytes`
    this.#words = type === ERROR || type === NOTICE ? [] : undefined
    return this.#words && length > MAX_WORDS_BYTES ? `it begins an error of ${length} bytes` : undefined
  }
}

/** Whether all fields, and the list of them, are ended. */
function hasEnd(words: Buffer): boolean {
  for (let at = 0; at < words.length; ) {
    if (words[at] === 0) return true
    const end = words.indexOf(0, at + 1)
    if (end < 0) return false
    at = end + 1
  }
  return false
}
