/** Texts of so many characters are written byte by byte. */
const SHORT = 48

const FIRST = 16 * 1024
/** A buffer that one large list made larger than that is given back. */
const KEPT = 8 * 2 ** 20

/**
 * Writes protobuf from its end to its start: the length of what is nested is known when its head is written. The buffer
 * grows as needed and is used again for the next message.
 */
export class BackwardWriter {
  #buffer = Buffer.allocUnsafe(FIRST)
  #at = this.#buffer.length

  /** How many bytes are written: a mark for `length`. */
  get written(): number {
    return this.#buffer.length - this.#at
  }

  /** What was written since the mark, as bytes of their own. */
  since(mark: number): Buffer {
    return Buffer.from(this.#buffer.subarray(this.#at, this.#buffer.length - mark))
  }

  /** Forgets what was written since the mark. */
  backTo(mark: number): void {
    if (mark === 0 && this.#buffer.length > KEPT) this.#buffer = Buffer.allocUnsafe(FIRST)
    this.#at = this.#buffer.length - mark
  }

  #room(bytes: number): void {
    if (this.#at >= bytes) return
    const { written } = this
    const larger = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, written + bytes))
    this.#buffer.copy(larger, larger.length - written, this.#at)
    this.#at = larger.length - written
    this.#buffer = larger
  }

  /** Integers; negative ones take ten bytes, as protobuf has it. */
  varint(value: number): void {
    if (value >= 0 && value < 128) {
      this.#room(1)
      this.#buffer[--this.#at] = value
      return
    }
    if (value < 0 || value > 0x7fffffff) {
      this.#long(BigInt.asUintN(64, BigInt(value)))
      return
    }
    const length = value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5
    this.#room(length)
    this.#at -= length
    let rest = value
    for (let at = 0; at < length - 1; at++) {
      this.#buffer[this.#at + at] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    this.#buffer[this.#at + length - 1] = rest
  }

  #long(value: bigint): void {
    const bytes: number[] = []
    for (let rest = value; ; rest >>= 7n) {
      if (rest < 128n) {
        bytes.push(Number(rest))
        break
      }
      bytes.push(Number(rest & 0x7fn) | 0x80)
    }
    this.raw(Buffer.from(bytes))
  }

  raw(bytes: Uint8Array): void {
    this.#room(bytes.length)
    this.#at -= bytes.length
    this.#buffer.set(bytes, this.#at)
  }

  /** A text without its head. */
  text(text: string): void {
    if (text.length <= SHORT && this.#ascii(text)) return
    const length = Buffer.byteLength(text)
    this.#room(length)
    this.#at -= length
    this.#buffer.write(text, this.#at)
  }

  /** Byte by byte: for the short names that most texts are, a call into the runtime costs more. @returns false: it is not */
  #ascii(text: string): boolean {
    this.#room(text.length)
    const from = this.#at - text.length
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (code >= 0x80) return false
      this.#buffer[from + at] = code
    }
    this.#at = from
    return true
  }

  double(value: number): void {
    this.#room(8)
    this.#at -= 8
    this.#buffer.writeDoubleLE(value, this.#at)
  }

  tag(field: number, wire: 0 | 1 | 2): void {
    this.varint(field * 8 + wire)
  }

  /** Head of what was written since the mark. */
  head(field: number, mark: number): void {
    this.varint(this.written - mark)
    this.tag(field, 2)
  }
}
