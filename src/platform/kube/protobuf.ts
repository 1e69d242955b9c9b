import { KubeError } from './errors.ts'

/**
 * Reads what we need of Kubernetes' protobuf, and steps over the rest without looking into it.
 *
 * Field numbers are those of the generated.proto files in k8s.io/api and k8s.io/apimachinery. A message is read by a loop
 * over its fields with a switch on the tag (number * 8 + wire type); an unknown field costs two varints.
 */
export class ProtoReader {
  readonly buffer: Buffer
  pos: number
  /** of the message being read */
  end: number

  constructor(bytes: Uint8Array) {
    this.buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.pos = 0
    this.end = this.buffer.length
  }

  /** The next tag, or 0 at the end of the message. */
  tag(): number {
    if (this.pos < this.end) return this.uint32()
    if (this.pos > this.end) throw broken('a field is longer than its message')
    return 0
  }

  uint32(): number {
    // Beyond the end an index gives undefined, which is not below 0x80 and ends in the slow path.
    const first = this.buffer[this.pos] as number
    if (first < 0x80) {
      this.pos++
      return first
    }
    return this.#longVarint() >>> 0
  }

  int32(): number {
    return this.uint32() | 0
  }

  bool(): boolean {
    return this.#longVarint() !== 0
  }

  /** Exact up to 2^53 in both directions. */
  int64(): number {
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte()
      if (shift < 28) low |= (byte & 0x7f) << shift
      else if (shift === 28) {
        low |= (byte & 0x7f) << 28
        high |= (byte & 0x7f) >> 4
      } else high |= (byte & 0x7f) << (shift - 32)
      if (byte < 0x80) return (high | 0) * 0x1_0000_0000 + (low >>> 0)
    }
    throw broken('a number is too long')
  }

  /** Enters a message: returns the end of the outer one, to be given to `leave`. */
  enter(): number {
    const length = this.uint32()
    const outer = this.end
    if (length > outer - this.pos) throw broken('a message is cut off')
    this.end = this.pos + length
    return outer
  }

  leave(outer: number): void {
    this.pos = this.end
    this.end = outer
  }

  /** A view, not a copy. */
  bytes(): Buffer {
    const length = this.#length()
    const start = this.pos
    this.pos = start + length
    return this.buffer.subarray(start, this.pos)
  }

  string(): string {
    const length = this.#length()
    const start = this.pos
    const end = start + length
    this.pos = end
    let bits = 0
    for (let at = start; at < end; at++) bits |= this.buffer[at] as number
    return bits < 0x80 ? this.buffer.toString('latin1', start, end) : this.buffer.toString('utf8', start, end)
  }

  /** A string that many objects share, such as a namespace or a quantity: the same text is the same string. */
  shared(): string {
    const length = this.#length()
    if (length === 0) return ''
    if (length > MAX_SHARED_LENGTH) {
      this.pos -= varintSize(length)
      return this.string()
    }
    const { buffer } = this
    const start = this.pos
    const end = start + length
    this.pos = end
    let hash = length
    let bits = 0
    for (let at = start; at < end; at++) {
      const byte = buffer[at] as number
      bits |= byte
      hash = (Math.imul(hash, 31) + byte) | 0
    }
    if (bits >= 0x80) return buffer.toString('utf8', start, end)
    const slot = (hash ^ (hash >>> 13)) & (SHARED_SLOTS - 1)
    const known = sharedStrings[slot]
    if (known !== undefined && sameText(known, buffer, start, length)) return known
    const text = buffer.toString('latin1', start, end)
    sharedStrings[slot] = text
    return text
  }

  /** Steps over the value of a field with this tag. */
  skip(tag: number): void {
    switch (tag & 7) {
      case 0:
        while (this.#byte() >= 0x80);
        return
      case 1:
        this.pos += 8
        return
      case 2: {
        const length = this.#length()
        this.pos += length
        return
      }
      case 5:
        this.pos += 4
        return
      default:
        throw broken(`wire type ${tag & 7} is not used by Kubernetes`)
    }
  }

  #length(): number {
    const length = this.uint32()
    if (length > this.end - this.pos) throw broken('a field is cut off')
    return length
  }

  /** The low 32 bits of a varint of any length. */
  #longVarint(): number {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.#byte()
      if (shift < 32) value |= (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw broken('a number is too long')
  }

  #byte(): number {
    if (this.pos >= this.end) throw broken('a number is cut off')
    return this.buffer[this.pos++] as number
  }
}

const MAX_SHARED_LENGTH = 80
/** A slot keeps the last string that fell on it, so the table stays small whatever the clusters hold. */
const SHARED_SLOTS = 8192
const sharedStrings: (string | undefined)[] = new Array(SHARED_SLOTS).fill(undefined)

function sameText(text: string, buffer: Buffer, start: number, length: number): boolean {
  if (text.length !== length) return false
  for (let at = 0; at < length; at++) if (text.charCodeAt(at) !== buffer[start + at]) return false
  return true
}

function varintSize(value: number): number {
  let size = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 128)) size++
  return size
}

/** What is thrown of bytes that are not what they should be. */
export function broken(why: string): KubeError {
  return new KubeError('protocol', `the answer is broken protobuf: ${why}`)
}

/** "k8s" and a zero byte before every protobuf body; then a runtime.Unknown around the object. */
export const MAGIC = [0x6b, 0x38, 0x73, 0x00]

/** Asks for protobuf, and takes JSON from servers that have none for this resource. */
export const ACCEPT_PROTOBUF = 'application/vnd.kubernetes.protobuf,application/json;q=0.9'

export function isProtobuf(headers: Readonly<Record<string, string | string[] | undefined>>): boolean {
  return String(headers['content-type'] ?? '').startsWith('application/vnd.kubernetes.protobuf')
}

/** Takes the object out of its envelope (magic bytes and runtime.Unknown). */
export function unwrap(body: Uint8Array): Buffer {
  if (MAGIC.some((byte, at) => body[at] !== byte)) throw broken('it does not begin with the mark of Kubernetes')
  const reader = new ProtoReader(body.subarray(MAGIC.length))
  let raw: Buffer = reader.buffer.subarray(0, 0)
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 18) raw = reader.bytes()
    else reader.skip(tag)
  }
  return raw
}

/** One page of a list. */
export interface DecodedList<T> {
  readonly items: T[]
  readonly resourceVersion: string
  readonly next: string
  readonly remaining?: number
}

/** metadata.resourceVersion of any object. */
export function readResourceVersion(raw: Uint8Array): string {
  const reader = new ProtoReader(raw)
  let version = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag !== 10) {
      reader.skip(tag)
      continue
    }
    const outer = reader.enter()
    for (let inner = reader.tag(); inner !== 0; inner = reader.tag()) {
      if (inner === 50) version = reader.string()
      else reader.skip(inner)
    }
    reader.leave(outer)
  }
  return version
}

/** A metav1.Status as its JSON form has it, as far as errors need it. */
export function readStatus(raw: Uint8Array): Record<string, unknown> {
  const reader = new ProtoReader(raw)
  const status: Record<string, unknown> = { kind: 'Status' }
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 26) status.message = reader.string()
    else if (tag === 34) status.reason = reader.string()
    else if (tag === 48) status.code = reader.int32()
    else if (tag === 42) {
      const outer = reader.enter()
      for (let inner = reader.tag(); inner !== 0; inner = reader.tag()) {
        if (inner === 40) status.details = { retryAfterSeconds: reader.int32() }
        else reader.skip(inner)
      }
      reader.leave(outer)
    } else reader.skip(tag)
  }
  return status
}

/** One frame of a watch: a metav1.WatchEvent, whose object is enveloped once more. */
export function readWatchFrame(frame: Uint8Array): { type: string; raw: Buffer } {
  const reader = new ProtoReader(frame)
  let type = ''
  let object: Buffer | undefined
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === 10) type = reader.shared()
    else if (tag === 18) {
      const outer = reader.enter()
      for (let inner = reader.tag(); inner !== 0; inner = reader.tag()) {
        if (inner === 10) object = reader.bytes()
        else reader.skip(inner)
      }
      reader.leave(outer)
    } else reader.skip(tag)
  }
  if (object === undefined) throw broken('a watch event has no object')
  return { type, raw: unwrap(object) }
}
