import type { Batch, BatchView } from '#model'
import { WireError } from './errors.ts'
import { viewOf } from './view.ts'

/** What the frame says of a body. */
export type BodyHead = Pick<Batch, 'cluster' | 'origin' | 'sequence' | 'collectedAt' | 'base' | 'backfill'>

export function encodeBody(batch: Batch, base?: BatchView): Uint8Array {
  void base
  const { durationMs, parts, failure } = batch
  return new TextEncoder().encode(JSON.stringify({ durationMs, parts, failure }))
}

export function decodeBody(
  bytes: Uint8Array,
  head: BodyHead,
  base?: BatchView,
): { readonly batch: Batch; readonly view: BatchView } {
  try {
    const body = JSON.parse(new TextDecoder().decode(bytes))
    const batch: Batch = { ...head, ...body, source: 'push' }
    return { batch, view: viewOf(batch, base) }
  } catch (cause) {
    throw new WireError('the body is no batch', { cause })
  }
}
