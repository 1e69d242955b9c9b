import type { KubeError } from './errors.ts'
import type { BodySink } from './http.ts'
import { broken, type DecodedList, MAGIC, ProtoReader } from './protobuf.ts'

/** The object of the envelope (runtime.Unknown), and the list's own message and objects. */
const RAW = 18
const LIST_META = 10
const ITEM = 18
const FIRST_REST_BYTES = 16 * 1024

/**
 * Reads a list of protobuf (any `…List`: its ListMeta is field 1, the objects are field 2) while it comes: each object is read when
 * its last byte is there. Holds what is cut off of one object, never a page.
 */
export class ListDecoder<T> implements BodySink {
  readonly #readItem: (bytes: Uint8Array) => T
  readonly #items: T[] = []
  #meta: Omit<DecodedList<T>, 'items'> = { resourceVersion: '', next: '' }
  #phase: 'mark' | 'envelope' | 'list' = 'mark'
  #hasList = false
  /** of the list's message, bytes that were not read yet */
  #left = 0
  /** of a field that nobody wants */
  #skip = 0
  /** what is not read before more of it comes, and how much of it there is */
  #rest = Buffer.alloc(0)
  #restBytes = 0
  /** bytes without which nothing can be read */
  #wanted = 1
  #error: unknown

  constructor(readItem: (bytes: Uint8Array) => T) {
    this.#readItem = readItem
  }

  /** Never throws: what is wrong is thrown by `end`. */
  push(chunk: Buffer): void {
    if (this.#error !== undefined) return
    try {
      this.#push(chunk)
    } catch (error) {
      this.#error = error
    }
  }

  /** @throws KubeError `protocol` where it was no list, or not all of it came */
  end(): DecodedList<T> {
    if (this.#error !== undefined) throw this.#error
    if (this.#phase === 'mark') throw noMark()
    // An empty list is a message as well; that nothing is there is believed of one alone.
    if (!this.#hasList) throw broken('it holds no list')
    if (this.#phase === 'list' || this.#restBytes > 0 || this.#skip > 0) throw broken('the list is cut off')
    return { items: this.#items, ...this.#meta }
  }

  #push(chunk: Buffer): void {
    if (this.#restBytes === 0) {
      // The chunk lies in memory that is used again: what is not read is copied.
      this.#append(chunk.subarray(this.#read(chunk)))
      return
    }
    this.#append(chunk)
    if (this.#restBytes < this.#wanted) return
    const bytes = this.#rest.subarray(0, this.#restBytes)
    const end = this.#read(bytes)
    this.#rest.copyWithin(0, end, this.#restBytes)
    this.#restBytes -= end
  }

  #append(bytes: Buffer): void {
    if (bytes.length === 0) return
    const size = this.#restBytes + bytes.length
    if (size > this.#rest.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(FIRST_REST_BYTES, 2 ** Math.ceil(Math.log2(size))))
      this.#rest.copy(larger, 0, 0, this.#restBytes)
      this.#rest = larger
    }
    this.#rest.set(bytes, this.#restBytes)
    this.#restBytes = size
  }

  /** @returns up to where it was read */
  #read(bytes: Buffer): number {
    let at = 0
    this.#wanted = 1
    for (;;) {
      if (this.#skip > 0) {
        const skipped = Math.min(this.#skip, bytes.length - at)
        this.#skip -= skipped
        at += skipped
        if (this.#skip > 0) return at
      }
      if (this.#phase === 'list' && this.#left === 0) this.#phase = 'envelope'
      if (at === bytes.length) return at
      const next = this.#phase === 'mark' ? this.#readMark(bytes, at) : this.#readField(bytes, at)
      if (next === undefined) return at
      at = next
    }
  }

  #readMark(bytes: Buffer, at: number): number | undefined {
    if (bytes.length - at < MAGIC.length) return this.#waitFor(MAGIC.length)
    if (MAGIC.some((byte, i) => bytes[at + i] !== byte)) throw noMark()
    this.#phase = 'envelope'
    return at + MAGIC.length
  }

  /** @returns where the next one begins; undefined: it is not all there */
  #readField(bytes: Buffer, start: number): number | undefined {
    const tag = varintAt(bytes, start)
    if (tag === undefined) return this.#waitFor(bytes.length - start + 1)
    const head = start + tag.bytes
    const length = lengthOf(tag.value, bytes, head)
    if (length === undefined) return this.#waitFor(bytes.length - start + 1)
    const [from, to] = [head + length.bytes, head + length.bytes + length.value]
    if (this.#phase === 'envelope') {
      if (tag.value === RAW) {
        this.#phase = 'list'
        this.#hasList = true
        this.#left = length.value
      } else this.#skip = length.value
      return from
    }
    if (to - start > this.#left) throw broken('a field is longer than its message')
    if (tag.value !== ITEM && tag.value !== LIST_META) {
      this.#left -= to - start
      this.#skip = length.value
      return from
    }
    if (to > bytes.length) return this.#waitFor(to - start)
    this.#left -= to - start
    const value = bytes.subarray(from, to)
    if (tag.value === ITEM) this.#items.push(this.#readItem(value))
    else this.#meta = readListMeta(value)
    return to
  }

  #waitFor(bytes: number): undefined {
    this.#wanted = bytes
  }
}

interface Varint {
  readonly value: number
  readonly bytes: number
}

/** At most 32 bits. @returns undefined where its end is not there */
function varintAt(bytes: Buffer, at: number): Varint | undefined {
  let value = 0
  for (let i = 0; i < 5; i++) {
    const byte = bytes[at + i]
    if (byte === undefined) return undefined
    value += (byte & 0x7f) * 2 ** (7 * i)
    if (byte < 0x80) return { value, bytes: i + 1 }
  }
  throw broken('a number is too long')
}

/** Of the value of a field, after `bytes` that say so. @returns undefined where that is not there yet */
function lengthOf(tag: number, bytes: Buffer, at: number): Varint | undefined {
  switch (tag & 7) {
    case 0:
      for (let i = 0; i < 10; i++) {
        const byte = bytes[at + i]
        if (byte === undefined) return undefined
        if (byte < 0x80) return { value: i + 1, bytes: 0 }
      }
      throw broken('a number is too long')
    case 1:
      return { value: 8, bytes: 0 }
    case 2:
      return varintAt(bytes, at)
    case 5:
      return { value: 4, bytes: 0 }
    default:
      throw broken(`wire type ${tag & 7} is not used by Kubernetes`)
  }
}

function readListMeta(bytes: Uint8Array): Omit<DecodedList<never>, 'items'> {
  const reader = new ProtoReader(bytes)
  let resourceVersion = ''
  let next = ''
  let remaining: number | undefined
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 18) resourceVersion = reader.string()
    else if (tag === 26) next = reader.string()
    else if (tag === 32) remaining = reader.int64()
    else reader.skip(tag)
  }
  return { resourceVersion, next, ...(remaining === undefined ? {} : { remaining }) }
}

const noMark = (): KubeError => broken('it does not begin with the mark of Kubernetes')
