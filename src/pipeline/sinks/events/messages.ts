import { KOLLECT_API_VERSION } from '#kinds'
import { checksumOf, type PartNumber } from '../documents/envelope.ts'
import { envelopeParts } from '../documents/parts.ts'
import { type Delivery, type Position, SinkError, type Writing } from '../sink.ts'
import { eventHeaders } from './headers.ts'

/** One message of a snapshot. */
export interface EventMessage {
  readonly part: PartNumber
  readonly headers: Readonly<Record<string, string>>
  /** JSON */
  readonly body: string
}

/** Of what stands beside headers and content in any protocol: framing, keys, identifiers. */
const FRAME_BYTES = 1024
/** Less holds no row that is worth it. */
const LEAST_BYTES = 4096

export interface EventSource {
  readonly delivery: Delivery
  /** name of this process */
  readonly writer: string
  /** bytes of one message with all that stands around it, as the server takes them */
  readonly maxBytes: number
}

/**
 * The messages of a snapshot, none larger than the server takes; an empty one is a message, too: the tombstone of an emptied inventory.
 * @throws SinkError terminal, for a row that no message can hold
 */
export function* eventMessages({ delivery, writer, maxBytes }: EventSource): Generator<EventMessage> {
  const { cluster, namespace } = delivery.writing
  const about = {
    schemaVersion: KOLLECT_API_VERSION,
    timestamp: new Date(delivery.takenAt).toISOString(),
    cluster,
    namespace,
  }
  const head = `${JSON.stringify(about).slice(0, -1)},"payload":`
  const widest = eventHeaders(delivery, { index: Number.MAX_SAFE_INTEGER, total: Number.MAX_SAFE_INTEGER }, writer)
  const around = Buffer.byteLength(head) + Buffer.byteLength(JSON.stringify(widest)) + FRAME_BYTES
  const room = Math.min(delivery.maxPartBytes, maxBytes - around)
  if (room < Math.min(LEAST_BYTES, delivery.maxPartBytes))
    throw new SinkError(
      'terminal',
      `one message may have only ${maxBytes} bytes there, of which ${around} are taken before the first row: allow messages of at least 64 KiB`,
    )
  for (const { index, total, text } of envelopeParts(delivery, room)) {
    const part = { index, total }
    yield { part, headers: eventHeaders(delivery, part, writer), body: `${head}${text.trimEnd()}}` }
  }
}

/** Bytes that a server stores of messages, rather more than less. */
export function storedBytes(messages: Iterable<EventMessage>): number {
  let sum = 0
  for (const { headers, body } of messages) sum += Buffer.byteLength(JSON.stringify(headers) + body) + FRAME_BYTES
  return sum
}

/** What is written for an inventory that is no more: that it has no rows. */
export const tombstone = (writing: Writing, position: Position, takenAt: number): Delivery => ({
  ...{ writing, position, takenAt },
  generation: 0,
  complete: true,
  checksum: checksumOf([]),
  itemCount: 0,
  rows: () => [],
  maxPartBytes: Number.MAX_SAFE_INTEGER,
})
