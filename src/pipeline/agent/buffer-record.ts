import type { Loss } from '#model'

/** What the buffer keeps of one batch: its body as it will be sent. */
export interface BatchRecord {
  readonly kind: 'batch'
  readonly sequence: number
  /** by this machine's clock, ms since the Unix epoch */
  readonly collectedAt: number
  /** by the monotonic clock of that boot, ms */
  readonly stamp: number
  readonly bootId: string
  readonly compression: 'none' | 'deflate'
  /** of the body before compression */
  readonly bodyBytes: number
  readonly body: Uint8Array
  /** names what a batch between two rounds speaks of, as a number; 0 or absent for a round. Thinned apart from other lanes */
  readonly lane?: number
}

/** A declared loss: kept, sent and acknowledged as batches are. */
export interface LossRecord {
  readonly kind: 'loss'
  readonly sequence: number
  readonly loss: Omit<Loss, 'origin'>
}

export type BufferRecord = BatchRecord | LossRecord

// kind 3 is a batch with its lane (u32) before the boot id; readers of before it declare such a batch damaged.
// kind u8 │ version u8 │ compression u8 │ boot id length u8 │ body size u32 │ sequence f64 │ collected at f64 │ stamp f64 │ boot id │ body
const HEAD_BYTES = 32
const LANE_BYTES = 4
const VERSION = 1

export function encodeRecord(record: BufferRecord): Buffer {
  const isBatch = record.kind === 'batch'
  const boot = Buffer.from(isBatch ? record.bootId : '', 'latin1').subarray(0, 255)
  const body = isBatch ? record.body : Buffer.from(JSON.stringify(record.loss))
  const lane = isBatch ? (record.lane ?? 0) : 0
  const bootAt = HEAD_BYTES + (lane === 0 ? 0 : LANE_BYTES)
  const bytes = Buffer.alloc(bootAt + boot.length + body.length)
  bytes[0] = !isBatch ? 2 : lane === 0 ? 1 : 3
  if (lane !== 0) bytes.writeUInt32LE(lane, HEAD_BYTES)
  bytes[1] = VERSION
  bytes[2] = isBatch && record.compression === 'deflate' ? 1 : 0
  bytes[3] = boot.length
  bytes.writeUInt32LE(isBatch ? record.bodyBytes : body.length, 4)
  bytes.writeDoubleLE(record.sequence, 8)
  bytes.writeDoubleLE(isBatch ? record.collectedAt : record.loss.from, 16)
  bytes.writeDoubleLE(isBatch ? record.stamp : 0, 24)
  boot.copy(bytes, bootAt)
  bytes.set(body, bootAt + boot.length)
  return bytes
}

/** @returns undefined where the bytes are of a version we do not know. Their checksum was good: the log checks it. */
export function decodeRecord(bytes: Buffer): BufferRecord | undefined {
  if (bytes.length < HEAD_BYTES || bytes[1] !== VERSION) return undefined
  const bootAt = HEAD_BYTES + (bytes[0] === 3 ? LANE_BYTES : 0)
  const bodyAt = bootAt + (bytes[3] ?? 0)
  const sequence = bytes.readDoubleLE(8)
  if (bytes[0] === 2) {
    const loss = JSON.parse(bytes.toString('utf8', bodyAt)) as LossRecord['loss'] // as encodeRecord wrote it
    return { kind: 'loss', sequence, loss }
  }
  if (bytes[0] !== 1 && bytes[0] !== 3) return undefined
  return {
    kind: 'batch',
    sequence,
    collectedAt: bytes.readDoubleLE(16),
    stamp: bytes.readDoubleLE(24),
    bootId: bytes.toString('latin1', bootAt, bodyAt),
    compression: bytes[2] === 1 ? 'deflate' : 'none',
    bodyBytes: bytes.readUInt32LE(4),
    body: bytes.subarray(bodyAt),
    ...(bytes[0] === 3 && { lane: bytes.readUInt32LE(HEAD_BYTES) }),
  }
}
