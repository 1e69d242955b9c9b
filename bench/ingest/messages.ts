import { deflateRawSync } from 'node:zlib'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import type { Batch, BatchView } from '#model'
import { encodeBody, encodeRequest, originalFromBatch, viewOf } from '#wire'
import { batchOf, clusterName } from '../baseline/fleet.ts'

/** How a client of the bench speaks. */
export type Mode = 'original' | 'complete' | 'moving' | 'quiet'

/** The next message of a stream. `sequence` rises from 1. */
export type Messages = (index: number, sequence: number) => Uint8Array

const VARIANTS = 4

/**
 * Messages whose costly parts are made before the clock runs: usage of every node moves from one to the next, except in
 * `quiet`, where nothing does.
 */
export function messagesOf(mode: Mode, nodes: number): Messages {
  // Sequence 1 would hold the facts of the cluster as well: every later one is what a cycle sends.
  const batches = Array.from({ length: VARIANTS }, (_, variant) => batchOf(0, nodes, 2 + variant, Date.now()))
  if (mode === 'original') return originals(batches)
  const deflated = (batch: Batch, base?: BatchView) => {
    const body = encodeBody(batch, base)
    return { bodyBytes: body.length, body: deflateRawSync(body) }
  }
  const whole = batches.map((batch) => deflated(batch))
  const changes = batches.map((batch, variant) => {
    const before = mode === 'quiet' ? batch : batches[(variant + VARIANTS - 1) % VARIANTS]
    return deflated(batch, viewOf(before ?? batch))
  })
  return (_index, sequence) => {
    const isWhole = mode === 'complete' || sequence === 1
    const variant = mode === 'quiet' ? 0 : sequence % VARIANTS
    const body = (isWhole ? whole : changes)[variant]
    return encodeRequest({
      payload: {
        case: 'frame',
        value: {
          ...body,
          sequence,
          base: isWhole ? 0 : sequence - 1,
          collectedAtMs: Date.now(),
          ageMs: 0,
          compression: 1,
        },
      },
    })
  }
}

/** An id and a time are put behind a batch that is encoded already: of a field told twice the last counts. */
function originals(batches: readonly Batch[]): Messages {
  const known = new Map<string, Uint8Array>()
  const of = (index: number, variant: number): Uint8Array => {
    const key = `${index}/${variant}`
    const found = known.get(key)
    if (found) return found
    const batch = batches[variant]
    if (!batch) throw new Error('there is one per variant')
    const metrics = originalFromBatch({ ...batch, cluster: clusterName(index) })
    const body = payloadOf(encodeRequest({ payload: { case: 'metrics', value: metrics } }))
    known.set(key, body)
    return body
  }
  return (index, sequence) => {
    const head = { batchId: `${index}-${sequence}`, collectedAt: timestampFromMs(Date.now()) }
    const tail = payloadOf(encodeRequest({ payload: { case: 'metrics', value: head } }))
    const body = of(index, sequence % VARIANTS)
    const length = body.length + tail.length
    return Buffer.concat([Buffer.from([METRICS]), varint(length), body, tail])
  }
}

// Field 1 with a length, as protobuf writes it.
const METRICS = 0x0a

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  bytes.push(rest)
  return Buffer.from(bytes)
}

function payloadOf(message: Uint8Array): Uint8Array {
  let at = 1
  while ((message[at] ?? 0) > 0x7f) at++
  return message.subarray(at + 1)
}
