const VARINT = 0
const FIXED64 = 1
const SIZED = 2
/** A field of proto3 with a number below 16, whose key takes one byte. */
const keyOf = (field: number, wireType: number): number => (field << 3) | wireType

/** Fields of proto3 messages, one after the other. What has the default of its type is left out, as proto3 does. */
export class ProtoWriter {
  #bytes: Buffer
  length = 0

  constructor(expectedBytes = 64 * 1024) {
    this.#bytes = Buffer.allocUnsafe(expectedBytes)
  }

  text(field: number, text: string): void {
    if (text === '') return
    // A character takes three bytes at most, a length five.
    this.#reserve(6 + text.length * 3)
    this.#bytes[this.length++] = keyOf(field, SIZED)
    const size = this.#bytes.write(text, this.length + 1, 'utf8')
    this.#putSize(this.length, size)
  }

  /** @param value whole, from 0 to 2^53 - 1 */
  integer(field: number, value: number): void {
    if (value === 0) return
    this.#reserve(9)
    this.#bytes[this.length++] = keyOf(field, VARINT)
    this.#varint(value)
  }

  boolean(field: number, value: boolean): void {
    this.integer(field, Number(value))
  }

  double(field: number, value: number): void {
    if (value === 0) return
    this.#reserve(9)
    this.#bytes[this.length++] = keyOf(field, FIXED64)
    this.length = this.#bytes.writeDoubleLE(value, this.length)
  }

  /** A message in the message, also where it has no field that is written. */
  message(field: number, write: () => void): void {
    this.#reserve(2)
    this.#bytes[this.length++] = keyOf(field, SIZED)
    const start = this.length++
    write()
    this.#putSize(start, this.length - start - 1)
  }

  /** A copy of the bytes from one place to another, where only whole fields are between them. */
  slice(from: number, to: number): Uint8Array {
    return Uint8Array.prototype.slice.call(this.#bytes, from, to)
  }

  /** Puts the size of what stands behind the byte at `start`, which was left for it. */
  #putSize(start: number, size: number): void {
    let extra = 0
    for (let rest = size; rest >= 0x80; rest = Math.floor(rest / 0x80)) extra++
    this.length = start + 1 + size
    if (extra > 0) {
      this.#reserve(extra)
      this.#bytes.copyWithin(start + 1 + extra, start + 1, this.length)
    }
    this.length = start
    this.#varint(size)
    this.length += size
  }

  #varint(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.#bytes[this.length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.#bytes[this.length++] = rest
  }

  #reserve(count: number): void {
    if (this.length + count <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.length + count))
    this.#bytes.copy(grown, 0, 0, this.length)
    this.#bytes = grown
  }
}
