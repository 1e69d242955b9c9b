import type { Row } from '#extract'
import { invariant } from '#model'
import { type Delivery, SinkError } from '../sink.ts'
import { type EnvelopeHead, headOf } from './envelope.ts'
import { type DocumentFormat, json } from './format.ts'

/** One document of a snapshot. */
export interface DocumentPart {
  /** from 1 */
  readonly index: number
  readonly total: number
  readonly itemCount: number
  readonly text: string
}

/** Rows on their way into documents; they are asked for twice, and no more than one document of them is held. */
export interface DocumentSource {
  readonly head: EnvelopeHead
  rows(): Iterable<Row>
  /** bytes of one document, at most */
  readonly maxBytes: number
}

/** The envelopes of a delivery, none larger than `maxBytes`. @throws SinkError terminal, for a row that no document can hold */
export const envelopeParts = (delivery: Delivery, maxBytes = delivery.maxPartBytes): Generator<DocumentPart> =>
  packRows({ head: headOf(delivery), rows: () => delivery.rows(), maxBytes }, json).parts()

/** Rows that were packed into documents. */
export interface PackedRows {
  readonly total: number
  /** may be asked again */
  parts(): Generator<DocumentPart>
}

/**
 * Packs rows, in their order, into as few documents as this order allows. No rows are one document. Room for the numbers of parts is
 * kept free, so that a part never outgrows the ceiling by being counted.
 * @throws SinkError terminal, for a row that no document can hold
 */
export function packRows({ head, rows, maxBytes }: DocumentSource, format: DocumentFormat): PackedRows {
  const { counts, first } = countsOf({ head, rows, maxBytes }, format)
  const total = counts.length
  return {
    total,
    *parts() {
      if (total === 1) {
        yield { index: 1, total, itemCount: first.length, text: format.document(head, first) }
        return
      }
      const list = rows()[Symbol.iterator]()
      for (const [at, itemCount] of counts.entries()) {
        const part = { index: at + 1, total }
        yield { ...part, itemCount, text: format.document({ ...head, part }, texts(list, itemCount, format)) }
      }
    },
  }
}

function texts(rows: Iterator<Row>, count: number, format: DocumentFormat): string[] {
  return Array.from({ length: count }, () => {
    const { value, done } = rows.next()
    invariant(!done, 'the rows of a snapshot are the same each time they are asked for')
    return format.row(value)
  })
}

/** How many rows go into each part, and the texts of the first one: mostly there is no other. */
function countsOf({ head, rows, maxBytes }: DocumentSource, format: DocumentFormat) {
  const many = Number.MAX_SAFE_INTEGER
  const frame = format.frameBytes({ ...head, part: { index: many, total: many } })
  const counts: number[] = []
  const first: string[] = []
  let count = 0
  let bytes = frame
  for (const row of rows()) {
    const text = format.row(row)
    const size = Buffer.byteLength(text) + format.gapBytes
    if (frame + size > maxBytes) throw tooLarge(row, size, maxBytes)
    if (bytes + size > maxBytes) {
      counts.push(count)
      count = 0
      bytes = frame
    }
    if (counts.length === 0) first.push(text)
    count++
    bytes += size
  }
  return { counts: [...counts, count], first }
}

function tooLarge({ kind, namespace, name }: Row, size: number, maxBytes: number): SinkError {
  const object = `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`
  return new SinkError(
    'terminal',
    `the row of ${object} has ${size} bytes, more than one document may have (${maxBytes}): let the profile take less of it, or raise what bounds it: maxExportBytes up to MAX_EXPORT_BYTES of the agent, and what a server of messages takes`,
  )
}
