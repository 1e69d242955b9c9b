import { createHash } from 'node:crypto'
import { KOLLECT_API_VERSION } from '#kinds'
import type { Delivery, Position } from '../sink.ts'

/** What an envelope says of its items. */
export interface EnvelopeHead {
  readonly cluster: string
  /** whether what is missing from the items is gone */
  readonly complete: boolean
  /** when the snapshot was taken, RFC 3339 */
  readonly exportedAt: string
  /** of the spec of the inventory; 0: it has none, and is left out */
  readonly generation?: number
  /** absent where nothing follows, as in a file of `collect` */
  readonly position?: Position
  /** which of several, from 1; absent: it is the only one */
  readonly part?: PartNumber
  /** why there may be less than there should be */
  readonly failure?: string
}

export interface PartNumber {
  readonly index: number
  readonly total: number
}

/** What stands in every document of a delivery. */
export const headOf = ({ writing, complete, takenAt, generation, position }: Delivery): EnvelopeHead => ({
  cluster: writing.cluster,
  complete,
  exportedAt: new Date(takenAt).toISOString(),
  generation,
  position,
})

/** One name for all parts of a snapshot; it changes with every snapshot of a writer. */
export const snapshotId = ({ epoch, sequence }: Position): string => `${epoch}-${sequence}`

/** SHA-256 of the canonical JSON array of items, lower-case hex. */
export function checksumOf(items: Iterable<string>): string {
  const hash = createHash('sha256').update('[')
  let isFirst = true
  for (const item of items) {
    hash.update(isFirst ? item : `,${item}`)
    isFirst = false
  }
  return hash.update(']').digest('hex')
}

/**
 * The document that readers of Kollect know, with what tells one snapshot from another: who is newer (`epoch`, then `sequence`, both
 * decimal texts), which parts belong together (`snapshotId`), and whether what is missing is gone (`complete`).
 * @param items canonical JSON of rows, in canonical order
 */
export const envelope = (head: EnvelopeHead, items: readonly string[]): string =>
  `${envelopeHead(head, items.length, checksumOf(items)).slice(0, -1)},"items":[${items.join(',')}]}`

/** The envelope without its items, as JSON. */
export function envelopeHead(head: EnvelopeHead, itemCount: number, checksum: string): string {
  const { cluster, complete, exportedAt, generation = 0, position, part, failure } = head
  return JSON.stringify({
    schemaVersion: KOLLECT_API_VERSION,
    checksum,
    ...(generation !== 0 && { generation }),
    ...(part && { partIndex: part.index, partTotal: part.total }),
    itemCount,
    exportedAt,
    ...(cluster !== '' && { cluster }),
    ...(position && {
      epoch: String(position.epoch),
      sequence: String(position.sequence),
      snapshotId: snapshotId(position),
    }),
    complete,
    ...(failure !== undefined && { failure }),
  })
}
