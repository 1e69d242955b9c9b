import { WireError } from './errors.ts'

/** Integers of a body lie between -LARGEST and LARGEST, so that their zigzag form is exact in a double. */
export const LARGEST = 2 ** 52 - 1

/** A growing run of bytes. */
export class Writer {
  bytes = new Uint8Array(1024)
  length = 0
  #view = new DataView(this.bytes.buffer)

  #reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.length + count))
    grown.set(this.bytes)
    this.bytes = grown
    this.#view = new DataView(grown.buffer)
  }

  u8(value: number): void {
    this.#reserve(1)
    this.bytes[this.length++] = value
  }

  u32(value: number): void {
    this.#reserve(4)
    this.#view.setUint32(this.length, value, true)
    this.length += 4
  }

  f64(value: number): void {
    this.#reserve(8)
    this.#view.setFloat64(this.length, value, true)
    this.length += 8
  }

  /** A whole number from 0 to 2^53 - 1, seven bits to the byte, the lowest first. */
  varint(value: number): void {
    this.#reserve(8)
    let rest = value
    while (rest >= 0x80) {
      this.bytes[this.length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    this.bytes[this.length++] = rest
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length)
    this.bytes.set(bytes, this.length)
    this.length += bytes.length
  }

  zeros(count: number): void {
    this.#reserve(count)
    this.length += count
  }

  bits(values: readonly boolean[]): void {
    const start = this.length
    this.zeros(Math.ceil(values.length / 8))
    for (let i = 0; i < values.length; i++) if (values[i]) this.bytes[start + (i >> 3)]! |= 1 << (i & 7)
  }

  /** What `write` writes, with its length in front. */
  sized(write: () => void): void {
    const start = this.length
    this.#reserve(1)
    this.length++
    write()
    const size = this.length - start - 1
    const extra = varintSize(size) - 1
    if (extra > 0) {
      this.#reserve(extra)
      this.bytes.copyWithin(start + 1 + extra, start + 1, this.length)
    }
    this.length = start
    this.varint(size)
    this.length += size
  }

  done(): Uint8Array {
    return this.bytes.slice(0, this.length)
  }
}

export function varintSize(value: number): number {
  let size = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++
  return size
}

/** Small magnitudes become small numbers: 0, -1, 1, -2 … are 0, 1, 2, 3 … */
export const zigzag = (value: number) => (value >= 0 ? value * 2 : -value * 2 - 1)

/** Reads what a Writer wrote; throws WireError at the end of the bytes and never reads beyond it. */
export class Reader {
  readonly bytes: Uint8Array
  readonly #view: DataView
  at = 0
  end: number

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.end = bytes.length
  }

  get left(): number {
    return this.end - this.at
  }

  /** @returns where the next `count` bytes begin, which are now read */
  take(count: number): number {
    const start = this.at
    if (count > this.end - start) throw new WireError('the body ends too early')
    this.at = start + count
    return start
  }

  u8(): number {
    if (this.at >= this.end) throw new WireError('the body ends too early')
    return this.bytes[this.at++]!
  }

  u32(): number {
    return this.#view.getUint32(this.take(4), true)
  }

  f64s(count: number): number[] {
    let at = this.take(count * 8)
    const values: number[] = new Array(count)
    for (let i = 0; i < count; i++, at += 8) {
      const value = this.#view.getFloat64(at, true)
      if (!Number.isFinite(value)) throw new WireError('a number is not finite')
      values[i] = value
    }
    return values
  }

  varint(): number {
    const first = this.u8()
    return first < 0x80 ? first : this.#longVarint(first & 0x7f)
  }

  #longVarint(low: number): number {
    const second = this.u8()
    if (second < 0x80) return low | (second << 7)
    let value = low + (second & 0x7f) * 0x80
    for (let scale = 2 ** 14; scale <= 2 ** 49; scale *= 0x80) {
      const byte = this.u8()
      value += (byte & 0x7f) * scale
      if (byte >= 0x80) continue
      if (value > Number.MAX_SAFE_INTEGER) break
      return value
    }
    throw new WireError('a whole number is too long')
  }

  /** The integer whose zigzag form is next. */
  integer(): number {
    const value = this.varint()
    if (value <= 0x7fffffff) return value & 1 ? -((value + 1) / 2) : value >> 1
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  bits(count: number): boolean[] {
    const start = this.take(Math.ceil(count / 8))
    const values: boolean[] = new Array(count)
    for (let i = 0; i < count; i++) values[i] = (this.bytes[start + (i >> 3)]! & (1 << (i & 7))) !== 0
    return values
  }
}
