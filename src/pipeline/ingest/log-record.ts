import { decodeSamples, encodeSamples, samplesOf } from '#history'
import type { Batch, Part, SampleSet, SnapshotType } from '#model'
import type { StateRecord } from '#state'
import { batchFromOriginal, decodeBody, decodeRequest, encodeBody, WireError } from '#wire'
import { type Audience, audienceOf, HISTORY, STATE, type StoredAudience, storedAudience } from './audience.ts'
import { rowsPartOf, type StoredRows, storedRows } from './stored-rows.ts'

/** One record of the hub's log: what happened, for whom, and the samples for history. */
export interface LogEntry {
  readonly record: StateRecord
  /** undefined: everyone */
  readonly audience?: Audience | undefined
  readonly samples?: SampleSet
  /** the message that all parts of the batch were read from, kept in their place */
  readonly message?: Uint8Array
}

// The first byte says how the rest is written, so that a later version can read the log of this one.
const JSON_V1 = 0x31
const BINARY_V2 = 0x32
const START = 9
/** In front of a message of an original that is kept in place of the parts; no JSON begins so. */
const MESSAGE = 0
/** In front of parts in the columns of the wire: as JSON so many would not fit into a record. */
const BODY = 1
/** Snapshots of a batch whose parts are kept so. */
const MANY_ITEMS = 10_000

const kinds: readonly StateRecord['kind'][] = [
  'batch',
  'connection',
  'removed',
  'agent',
  'lost',
  'unread',
  'source-removed',
]

/** A changed part that names nothing, which is what most parts of a quiet cluster are. */
type Quiet = readonly [type: SnapshotType, collector: string, durationMs: number]
type StoredPart = Part | Quiet
/** A list where there is nothing else, as former versions wrote it. */
type StoredParts =
  | readonly StoredPart[]
  | { readonly parts: readonly StoredPart[]; readonly custom: readonly StoredRows[] }

/**
 * An entry as the hub's log keeps it, little endian:
 *
 *   '2' │ size of head u32 │ size of parts u32 │ head, JSON │ parts, JSON │ samples
 *
 * The head is the record without the parts of its batch, so that history need not read them. A batch that is
 * for history alone, or for nobody, is kept without parts; instead of JSON, parts of an original may be 0 and the message they were read from,
 * and many snapshots are 1 and a body of the wire.
 */
export function encodeLogEntry(entry: LogEntry): Buffer {
  const { record, audience, samples } = entry
  const stored = storedAudience(audience)
  const [head, parts] =
    record.kind === 'batch' ? storedBatch(record, entry) : [JSON.stringify({ ...record, ...stored }), '']
  const headSize = Buffer.byteLength(head)
  const partsSize = typeof parts === 'string' ? Buffer.byteLength(parts) : parts.bytes.length + 1
  const block = samples ? encodeSamples(samples) : undefined
  const bytes = Buffer.allocUnsafe(START + headSize + partsSize + (block?.length ?? 0))
  bytes[0] = BINARY_V2
  bytes.writeUInt32LE(headSize, 1)
  bytes.writeUInt32LE(partsSize, 5)
  bytes.write(head, START)
  if (typeof parts === 'string') bytes.write(parts, START + headSize)
  else {
    bytes[START + headSize] = parts.mark
    bytes.set(parts.bytes, START + headSize + 1)
  }
  if (block) bytes.set(block, START + headSize + partsSize)
  return bytes
}

/**
 * @param want `record`: without samples; `samples`: without parts, where the record was written with samples; `head`: without
 * both
 * @returns undefined: written by a version we do not know, or not by us
 */
export function decodeLogEntry(payload: Buffer, want: 'record' | 'samples' | 'head' = 'record'): LogEntry | undefined {
  try {
    if (payload[0] === JSON_V1) return checked(JSON.parse(payload.toString('utf8', 1)) as StoredRecord | null)
    const places = placesOf(payload)
    if (!places) return undefined
    const { partsAt, samplesAt } = places
    const entry = checked(JSON.parse(payload.toString('utf8', START, partsAt)) as StoredRecord | null)
    if (entry?.record.kind !== 'batch') return entry
    const { record, audience } = entry
    const of = audience && { audience }
    if (want === 'record') {
      if (payload[partsAt] === MESSAGE && samplesAt > partsAt) {
        const parts = partsOf(payload.subarray(partsAt + 1, samplesAt), record.batch)
        return parts && { record: { ...record, batch: { ...record.batch, parts } }, ...of }
      }
      if (payload[partsAt] === BODY && samplesAt > partsAt) {
        const { batch } = decodeBody(payload.subarray(partsAt + 1, samplesAt), record.batch)
        const { parts, tables } = batch
        return { record: { ...record, batch: { ...record.batch, parts, ...(tables && { tables }) } }, ...of }
      }
      const text = payload.toString('utf8', partsAt, samplesAt)
      return { record: { ...record, batch: { ...record.batch, ...readParts(text) } }, ...of }
    }
    const samples =
      want === 'samples' && samplesAt < payload.length ? decodeSamples(payload.subarray(samplesAt)) : undefined
    return { record: { ...record, batch: { ...record.batch, parts: [] } }, ...of, ...(samples && { samples }) }
  } catch {
    return undefined // its checksum was right, so it was written so: the caller counts it
  }
}

/**
 * An entry with less of it: what is for nobody any more goes, all else stays byte for byte.
 * @param payload of the log, which decodeLogEntry can read
 * @param audience who still lacks it
 * @returns undefined where nothing is left
 */
export function narrowedLogEntry(payload: Buffer, audience: Audience): Buffer | undefined {
  const entry = decodeLogEntry(payload, 'head')
  if (!entry || audience.size === 0) return undefined
  const { record } = entry
  if (record.kind !== 'batch') return encodeLogEntry({ record, audience })
  const places = placesOf(payload)
  if (!places) {
    // Of the first version: history made its samples of the parts.
    const samples = needsSamples(audience) && !entry.audience ? samplesOf(record.batch) : undefined
    if (!samples && !needsParts(audience)) return undefined
    return encodeLogEntry({ record, audience, ...(samples && { samples }) })
  }
  const { parts, ...batch } = record.batch
  const kept = needsParts(audience) ? payload.subarray(places.partsAt, places.samplesAt) : Buffer.alloc(0)
  const samples = needsSamples(audience) ? payload.subarray(places.samplesAt) : Buffer.alloc(0)
  const head = Buffer.from(JSON.stringify({ ...record, ...storedAudience(audience), batch }))
  const start = Buffer.alloc(START)
  start[0] = BINARY_V2
  start.writeUInt32LE(head.length, 1)
  start.writeUInt32LE(kept.length, 5)
  return Buffer.concat([start, head, kept, samples])
}

/** History reads samples alone, state parts alone; of others nothing is known. */
const needsParts = (audience: Audience): boolean => [...audience].some((name) => name !== HISTORY)
const needsSamples = (audience: Audience): boolean => [...audience].some((name) => name !== STATE)

/** Where its parts and its samples begin; undefined: it is none of the second version. */
function placesOf(payload: Buffer): { readonly partsAt: number; readonly samplesAt: number } | undefined {
  if (payload[0] !== BINARY_V2 || payload.length < START) return undefined
  const partsAt = START + payload.readUInt32LE(1)
  const samplesAt = partsAt + payload.readUInt32LE(5)
  return samplesAt > payload.length ? undefined : { partsAt, samplesAt }
}

type StoredRecord = StateRecord & StoredAudience

function checked(stored: StoredRecord | null): LogEntry | undefined {
  if (!stored || !kinds.includes(stored.kind)) return undefined
  const { into, also, ...record } = stored
  const audience = audienceOf(stored)
  return { record: record as StateRecord, ...(audience && { audience }) }
}

function partsOf(
  message: Uint8Array,
  { cluster, sequence, collectedAt, origin = '' }: Batch,
): Batch['parts'] | undefined {
  const { payload } = decodeRequest(message)
  if (payload.case !== 'metrics') return undefined
  return batchFromOriginal(payload.value, { cluster, sequence, collectedAt, origin }).parts
}

function storedBatch(
  record: Extract<StateRecord, { kind: 'batch' }>,
  { audience, message }: LogEntry,
): [head: string, parts: string | { readonly mark: number; readonly bytes: Uint8Array }] {
  const { parts, tables = [], failure, ...batch } = record.batch
  const stored = storedAudience(audience)
  if (audience && !needsParts(audience)) return [JSON.stringify({ ...record, batch, ...stored }), '']
  const head = JSON.stringify({ ...record, batch: failure ? { ...batch, failure } : batch, ...stored })
  if (message) return [head, { mark: MESSAGE, bytes: message }]
  const body = bodyOf(record.batch)
  if (body) return [head, { mark: BODY, bytes: body }]
  const rows = parts.map(storedPart)
  if (tables.length > 0) return [head, JSON.stringify({ parts: rows, custom: tables.map(storedRows) })]
  return [head, rows.length === 0 ? '' : JSON.stringify(rows)]
}

/** undefined: they are few, or some are told as a difference, or the wire does not take them. */
function bodyOf(batch: Batch): Uint8Array | undefined {
  const { parts, tables = [] } = batch
  const items = parts.reduce((sum, part) => sum + (part.outcome === 'complete' ? part.items.length : 0), 0)
  if (items < MANY_ITEMS || [...parts, ...tables].some(({ outcome }) => outcome === 'changed')) return undefined
  try {
    return encodeBody(batch)
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

function readParts(text: string): Pick<Batch, 'parts' | 'tables'> {
  if (text === '') return { parts: [] }
  const stored = JSON.parse(text) as StoredParts
  if (isList(stored)) return { parts: stored.map(partOf) }
  return { parts: stored.parts.map(partOf), tables: stored.custom.map(rowsPartOf) }
}

function storedPart(part: Part): StoredPart {
  if (part.outcome !== 'changed' || part.put.length > 0 || part.removed.length > 0) return part
  return [part.type, part.collector, part.durationMs]
}

function partOf(part: StoredPart): Part {
  if (!isQuiet(part)) return part
  const [type, collector, durationMs] = part
  return { type, collector, durationMs, outcome: 'changed', put: [], removed: [] }
}

const isList = (stored: StoredParts): stored is readonly StoredPart[] => Array.isArray(stored)
const isQuiet = (part: StoredPart): part is Quiet => Array.isArray(part)
