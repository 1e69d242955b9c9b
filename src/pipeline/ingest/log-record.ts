import type { StateRecord } from '#state'

// The first byte says how the rest is written, so that a later version can read the log of this one.
const JSON_V1 = 0x31

/** A record as the hub's log keeps it. */
export function encodeLogRecord(record: StateRecord): Buffer {
  return Buffer.from(`1${JSON.stringify(record)}`)
}

/** undefined: written by a version we do not know, or not by us. */
export function decodeLogRecord(payload: Buffer): StateRecord | undefined {
  if (payload[0] !== JSON_V1) return undefined
  try {
    const value = JSON.parse(payload.toString('utf8', 1)) as StateRecord | null
    return value && ['batch', 'connection', 'removed', 'agent', 'lost'].includes(value.kind) ? value : undefined
  } catch {
    return undefined // its checksum was right, so it was written so: the caller counts it
  }
}
