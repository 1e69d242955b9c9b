import { inflateRawSync } from 'node:zlib'
import {
  type Batch,
  type BatchView,
  FleetError,
  type Loss,
  type Part,
  type RowsPart,
  type SequenceRange,
  type SnapshotType,
} from '#model'
import { decodeBody, type Frame, type Loss as LossMessage, WireError } from '#wire'
import type { StreamLimits } from '../line/limits.ts'

/** What was sent breaks the contract of the wire: sending it again would end alike. The stream goes on. */
export class FrameRefusedError extends FleetError {
  override readonly name = 'FrameRefusedError'
  readonly code = 'invalid_frame'
  readonly retryable = false

  constructor(what: string, options?: ErrorOptions) {
    super(`the frame is refused: ${what}`, options)
  }
}

const NONE = 0
const DEFLATE = 1
/** So much may any body be, and beyond it so many times what it weighs: columns of equal values shrink by a hundred, bombs by a thousand. */
const FREE_INFLATED_BYTES = 2 ** 20
const MAX_RATIO = 256
const MAX_RANGES = 10_000
const MAX_INSTANT = 8.64e15

export const isSequence = (value: number) => Number.isSafeInteger(value) && value >= 1
const isInstant = (value: number) => Number.isFinite(value) && value >= 0 && value <= MAX_INSTANT

/**
 * The body as it was before compression. Never inflates further than the frame said, and that is bounded.
 * @throws FrameRefusedError
 */
export function bodyOf(frame: Frame, { maxBodyBytes }: Pick<StreamLimits, 'maxBodyBytes'>): Uint8Array {
  const { compression, body, bodyBytes } = frame
  if (bodyBytes > maxBodyBytes)
    throw new FrameRefusedError(`its body of ${bodyBytes} bytes is more than ${maxBodyBytes}`)
  if (compression === NONE) {
    if (body.length > maxBodyBytes) throw new FrameRefusedError(`its body is more than ${maxBodyBytes} bytes`)
    return body
  }
  if (compression !== DEFLATE) throw new FrameRefusedError(`its compression ${compression} is unknown`)
  if (bodyBytes > FREE_INFLATED_BYTES + MAX_RATIO * body.length)
    throw new FrameRefusedError(`its body of ${body.length} bytes would be ${bodyBytes} inflated, which is no batch`)
  if (bodyBytes === 0) throw new FrameRefusedError('it does not say the size of its body')
  let inflated: Uint8Array
  try {
    inflated = inflateRawSync(body, { maxOutputLength: bodyBytes })
  } catch (cause) {
    throw new FrameRefusedError('its body does not inflate to the size it says', { cause })
  }
  if (inflated.length !== bodyBytes) throw new FrameRefusedError('its body does not inflate to the size it says')
  return inflated
}

/** @throws FrameRefusedError; WireError where it is a difference to something else than the base */
export function decodeFrame(
  frame: Frame,
  head: { readonly cluster: Batch['cluster']; readonly origin: string; readonly collectedAt: number },
  base: BatchView | undefined,
  limits: Pick<StreamLimits, 'maxBodyBytes'>,
): { readonly batch: Batch; readonly view: BatchView } {
  const body = bodyOf(frame, limits)
  try {
    return decodeBody(
      body,
      {
        ...head,
        sequence: frame.sequence,
        ...(base && { base: frame.base }),
        ...(frame.backfill && { backfill: true }),
      },
      base,
    )
  } catch (cause) {
    if (cause instanceof WireError && cause.retryable) throw cause
    throw new FrameRefusedError(cause instanceof Error ? cause.message : 'its body is no batch', { cause })
  }
}

/** The same batch without a base: every part that was a difference is told whole. */
export function withoutBase(batch: Batch, view: BatchView): Batch {
  const { base: _, tables, ...rest } = batch
  return {
    ...rest,
    parts: batch.parts.map((part) => wholePart(part, view)),
    ...(tables && { tables: tables.map((part) => wholeRows(part, view)) }),
  }
}

function wholeRows(part: RowsPart, view: BatchView): RowsPart {
  if (part.outcome !== 'changed') return part
  const { put, removed: _, ...rest } = part
  return { ...rest, outcome: 'complete', rows: view.tables?.get(part.source) ?? put }
}

function wholePart(part: Part, view: BatchView): Part {
  if (part.outcome !== 'changed') return part
  const { type, collector, durationMs } = part
  const items = [...((view[type] as ReadonlyMap<string, unknown> | undefined)?.values() ?? [])]
  // The view holds snapshots of this very type under its name.
  return { type, collector, durationMs, outcome: 'complete', items } as Part<SnapshotType>
}

export const hasChanges = ({ parts, tables = [] }: Batch) =>
  parts.some(({ outcome }) => outcome === 'changed') || tables.some(({ outcome }) => outcome === 'changed')

const causes: ReadonlySet<string> = new Set<Loss['cause']>(['thinned', 'dropped', 'damaged'])

/** @throws FrameRefusedError */
export function lossOf(message: LossMessage, origin: string): Loss {
  const { sequence, lost, fromMs, toMs, cause, count, keptEveryMs } = message
  const refuse = (what: string) => {
    throw new FrameRefusedError(`a loss ${what}`)
  }
  if (!isSequence(sequence)) refuse('has no sequence')
  if (!isInstant(fromMs) || !isInstant(toMs) || fromMs > toMs) refuse('has no span of time')
  if (!causes.has(cause)) refuse('has an unknown cause')
  if (!Number.isSafeInteger(count) || count < 0) refuse('has no count')
  if (!Number.isFinite(keptEveryMs) || keptEveryMs < 0) refuse('has no step')
  if (lost.length > MAX_RANGES) refuse(`names more than ${MAX_RANGES} runs`)
  const ranges = lost.map(({ first, last }): SequenceRange => {
    if (!isSequence(first) || !isSequence(last) || first > last) refuse('names no run of sequences')
    return [first, last]
  })
  return { origin, sequence, lost: ranges, from: fromMs, to: toMs, cause: cause as Loss['cause'], count, keptEveryMs }
}
