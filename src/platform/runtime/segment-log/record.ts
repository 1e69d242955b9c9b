import { crc32c } from './crc32c.ts'

/*
 *  segment:  magic 8 │ version u32 │ salt u32 │ first index f64 │ created at f64 │ crc u32 │ record │ record │ …
 *  record:   marker 4 │ length u32 │ index f64 │ crc of payload u32 │ crc of this header u32 │ payload
 *
 *  Little endian. The salt seeds every checksum of its segment: bytes inside a payload that look like a record never pass.
 */
const MAGIC = Buffer.from('CPSEGLOG', 'latin1')
const VERSION = 1
const MARKER = Buffer.from([0xc5, 0x9e, 0x1d, 0x0a])
export const SEGMENT_HEADER_BYTES = 36
export const RECORD_HEADER_BYTES = 24

export interface SegmentHeader {
  readonly salt: number
  readonly first: number
  readonly createdAt: number
}

export function encodeSegmentHeader({ salt, first, createdAt }: SegmentHeader): Buffer {
  const bytes = Buffer.alloc(SEGMENT_HEADER_BYTES)
  MAGIC.copy(bytes)
  bytes.writeUInt32LE(VERSION, 8)
  bytes.writeUInt32LE(salt, 12)
  bytes.writeDoubleLE(first, 16)
  bytes.writeDoubleLE(createdAt, 24)
  bytes.writeUInt32LE(crc32c(bytes, 0, 0, 32), 32)
  return bytes
}

/** undefined: these bytes are no header of ours, or damaged. */
export function decodeSegmentHeader(bytes: Buffer): SegmentHeader | undefined {
  if (bytes.length < SEGMENT_HEADER_BYTES || !bytes.subarray(0, 8).equals(MAGIC)) return undefined
  if (bytes.readUInt32LE(8) !== VERSION || bytes.readUInt32LE(32) !== crc32c(bytes, 0, 0, 32)) return undefined
  return { salt: bytes.readUInt32LE(12), first: bytes.readDoubleLE(16), createdAt: bytes.readDoubleLE(24) }
}

/** The header that goes before the payload. */
export function encodeRecordHeader(index: number, payload: Uint8Array, salt: number): Buffer {
  const bytes = Buffer.allocUnsafe(RECORD_HEADER_BYTES)
  MARKER.copy(bytes)
  bytes.writeUInt32LE(payload.length, 4)
  bytes.writeDoubleLE(index, 8)
  bytes.writeUInt32LE(crc32c(payload, salt), 16)
  bytes.writeUInt32LE(crc32c(bytes, salt, 0, 20), 20)
  return bytes
}

export type Scanned =
  | { readonly kind: 'record'; readonly index: number; readonly payload: Buffer; readonly end: number }
  /** bytes that hold no usable record, with good ones after them or a whole header before them */
  | { readonly kind: 'damaged'; readonly offset: number; readonly bytes: number; readonly index: number | undefined }
  /** the rest of the segment, where nothing usable follows: a write that was cut off */
  | { readonly kind: 'torn'; readonly offset: number; readonly bytes: number }

/** Every record of a segment in order, and what is not one. Linear in the size, whatever the bytes are. */
export function* scanSegment(segment: Buffer, salt: number): Generator<Scanned> {
  let offset = SEGMENT_HEADER_BYTES
  let last = -1
  while (offset < segment.length) {
    const header = readHeader(segment, offset, salt)
    if (!header || header.index <= last) {
      const next = findHeader(segment, offset + 1, salt, last)
      const bytes = (next ?? segment.length) - offset
      yield next === undefined ? { kind: 'torn', offset, bytes } : { kind: 'damaged', offset, bytes, index: undefined }
      if (next === undefined) return
      offset = next
      continue
    }
    const start = offset + RECORD_HEADER_BYTES
    const end = start + header.length
    if (end > segment.length) {
      // A good header whose payload does not fit: bytes went missing inside, or the file was cut here.
      const next = findHeader(segment, offset + 1, salt, header.index)
      const bytes = (next ?? segment.length) - offset
      yield next === undefined
        ? { kind: 'torn', offset, bytes }
        : { kind: 'damaged', offset, bytes, index: header.index }
      if (next === undefined) return
      offset = next
      continue
    }
    last = header.index
    if (crc32c(segment, salt, start, end) === header.crc) {
      yield { kind: 'record', index: header.index, payload: segment.subarray(start, end), end }
    } else {
      yield { kind: 'damaged', offset, bytes: end - offset, index: header.index }
    }
    offset = end
  }
}

function readHeader(segment: Buffer, offset: number, salt: number) {
  if (offset + RECORD_HEADER_BYTES > segment.length) return undefined
  if (MARKER.compare(segment, offset, offset + 4) !== 0) return undefined
  if (segment.readUInt32LE(offset + 20) !== crc32c(segment, salt, offset, offset + 20)) return undefined
  return {
    length: segment.readUInt32LE(offset + 4),
    index: segment.readDoubleLE(offset + 8),
    crc: segment.readUInt32LE(offset + 16),
  }
}

function findHeader(segment: Buffer, from: number, salt: number, after: number): number | undefined {
  for (let at = segment.indexOf(MARKER, from); at !== -1; at = segment.indexOf(MARKER, at + 1)) {
    const header = readHeader(segment, at, salt)
    if (header && header.index > after) return at
  }
  return undefined
}
