import { ProtobufError } from './errors.ts'

/** Reads protobuf between two positions; whatever lies beyond the end is an error, never read. */
export class Reader {
  readonly bytes: Buffer
  #at: number
  readonly #end: number

  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.bytes = bytes
    this.#at = start
    this.#end = end
  }

  get done(): boolean {
    return this.#at >= this.#end
  }

  /** @returns a signed 64-bit integer as a number: exact up to 2^53. */
  varint(): number {
    let low = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte()
      low |= (byte & 0x7f) << shift
      if (byte < 0x80) return low
    }
    let value = BigInt(low)
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return Number(BigInt.asIntN(64, value))
    }
    throw new ProtobufError('a number in the message is longer than 10 bytes')
  }

  #byte(): number {
    if (this.#at >= this.#end) throw new ProtobufError('the message ends too early')
    return this.bytes[this.#at++] ?? 0
  }

  /** What has a length, to be read on its own. */
  nested(): Reader {
    const length = this.varint()
    const start = this.#at
    if (length < 0 || length > this.#end - start) throw new ProtobufError('the message ends too early')
    this.#at += length
    return new Reader(this.bytes, start, this.#at)
  }

  /** The rest as bytes; shares memory. */
  rest(): Buffer {
    const rest = this.bytes.subarray(this.#at, this.#end)
    this.#at = this.#end
    return rest
  }

  text(): string {
    const text = this.bytes.toString('utf8', this.#at, this.#end)
    this.#at = this.#end
    return text
  }

  double(): number {
    if (this.#end - this.#at < 8) throw new ProtobufError('the message ends too early')
    this.#at += 8
    return this.bytes.readDoubleLE(this.#at - 8)
  }

  /** Passes over a value we do not know. */
  skip(wire: number): void {
    if (wire === 0) this.varint()
    else if (wire === 2) this.nested()
    else if (wire === 1 || wire === 5) {
      this.#at += wire === 1 ? 8 : 4
      if (this.#at > this.#end) throw new ProtobufError('the message ends too early')
    } else throw new ProtobufError(`the message has a value of the unknown wire type ${wire}`)
  }
}
