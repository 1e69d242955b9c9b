import { KOLLECT_API_VERSION } from '#kinds'
import type { PartNumber } from '../documents/envelope.ts'
import type { Delivery, Position, Writing } from '../sink.ts'

/** Headers of every message: by them consumers choose, order and put together without reading what it holds. */
export const eventHeader = {
  cluster: 'kollect.dev/cluster',
  namespace: 'kollect.dev/namespace',
  inventory: 'kollect.dev/inventory',
  /** of all rows of the snapshot, also where the message is one part of several */
  checksum: 'kollect.dev/checksum',
  schemaVersion: 'kollect.dev/schema-version',
  epoch: 'kollect.dev/epoch',
  sequence: 'kollect.dev/sequence',
  /** whether what is missing from the rows is gone */
  complete: 'kollect.dev/complete',
  /** from 1 */
  part: 'kollect.dev/part',
  parts: 'kollect.dev/parts',
  /** which process wrote it */
  writer: 'kollect.dev/writer',
} as const

/** What the headers of one message say. */
export interface EventFacts {
  readonly writing: Writing
  readonly position: Position
  readonly checksum: string
  readonly complete: boolean
  readonly part: PartNumber
  readonly writer: string
}

export function eventHeaders(
  { writing, position, checksum, complete }: Delivery,
  part: PartNumber,
  writer: string,
): Readonly<Record<string, string>> {
  return {
    [eventHeader.cluster]: writing.cluster,
    [eventHeader.namespace]: writing.namespace,
    [eventHeader.inventory]: writing.inventory,
    [eventHeader.checksum]: checksum,
    [eventHeader.schemaVersion]: KOLLECT_API_VERSION,
    [eventHeader.epoch]: String(position.epoch),
    [eventHeader.sequence]: String(position.sequence),
    [eventHeader.complete]: String(complete),
    [eventHeader.part]: String(part.index),
    [eventHeader.parts]: String(part.total),
    [eventHeader.writer]: writer,
  }
}

/** What a message is of; undefined where somebody else wrote it. @param header its value; '' for one that is not there */
export function eventFacts(header: (name: string) => string): EventFacts | undefined {
  const [epoch, sequence] = [header(eventHeader.epoch), header(eventHeader.sequence)]
  const [index, total] = [Number(header(eventHeader.part)), Number(header(eventHeader.parts))]
  const isCounted = Number.isSafeInteger(total) && Number.isSafeInteger(index) && index >= 1 && index <= total
  if (!/^\d{1,30}$/.test(epoch) || !/^\d{1,30}$/.test(sequence) || !isCounted) return undefined
  return {
    writing: {
      cluster: header(eventHeader.cluster),
      namespace: header(eventHeader.namespace),
      inventory: header(eventHeader.inventory),
    },
    position: { epoch: BigInt(epoch), sequence: BigInt(sequence) },
    checksum: header(eventHeader.checksum),
    complete: header(eventHeader.complete) === 'true',
    part: { index, total },
    writer: header(eventHeader.writer),
  }
}
