import { type Batch, type BatchView, invariant, type Part, type RowsPart, type SnapshotType } from '#model'
import { Reader, Writer } from './bytes.ts'
import { readChanges, writeChanges } from './changes.ts'
import { Decoding, Encoding, readColumn, writeColumn } from './column.ts'
import { type ColumnLayout, readSlot } from './column-layout.ts'
import { snapshotLayout } from './column-layouts.ts'
import { WireError } from './errors.ts'
import { checkSources, readRowsPart, writeRowsPart } from './rows.ts'
import { numberCodec } from './scalars.ts'
import type { Capability } from './versions.ts'
import { type Item, type Items, viewOf } from './view.ts'

/** What the frame says of a body. */
export type BodyHead = Pick<Batch, 'cluster' | 'origin' | 'sequence' | 'collectedAt' | 'base' | 'backfill'>

/** Rises when an older reader could not even pass over what is new: columns and types are added without. */
const FORMAT = 1
const HAS_BASE = 1
const HAS_FAILURE = 2
/** Slots among the parts that are none; readers before them pass over both. */
const CUSTOM = 'custom'
const PARTIAL = 'partial'
const outcomes = ['complete', 'changed', 'absent', 'forbidden', 'unreachable'] as const

const duration = numberCodec(false, false)

/**
 * The body of a frame, not yet compressed. Cluster, origin, sequence and times travel in the frame.
 * @param batch of complete parts and of such that were not read
 * @param base the view after the batch that the frame names as its base: parts are then told as differences to it
 * @param rowSums whether the reader has the ability `row-sums`
 * @throws WireError where a number is NaN or infinite, or the batch has more than some 250 000 rows
 */
export function encodeBody(
  batch: Batch,
  base?: BatchView,
  { rowSums = false }: { readonly rowSums?: boolean } = {},
): Uint8Array {
  const rest = new Encoding(rowSums)
  const { durationMs, failure, parts, tables = [], partial } = batch
  checkSources(tables)
  writeColumn(duration, [durationMs], rest)
  if (failure) {
    rest.text(failure.code)
    rest.text(failure.message)
  }
  rest.to.varint(parts.length + tables.length + (partial ? 1 : 0))
  for (const part of parts) {
    rest.text(part.type)
    rest.to.sized(() => writePart(part, isOnlyComplete(part, parts) ? base : undefined, rest))
  }
  for (const part of tables) {
    rest.text(CUSTOM)
    rest.to.sized(() => writeRowsPart(part, base, rest))
  }
  if (partial) {
    rest.text(PARTIAL)
    rest.to.varint(0)
  }
  const body = new Writer()
  body.u8(FORMAT)
  body.u8((base ? HAS_BASE : 0) | (failure ? HAS_FAILURE : 0))
  rest.texts.write(body)
  body.raw(rest.to.done())
  body.zeros(rest.padding(body.length))
  return body.done()
}

const isOnlyComplete = (part: Part, parts: readonly Part[]) =>
  parts.every((other) => other === part || other.type !== part.type || other.outcome !== 'complete')

function writePart(part: Part, base: BatchView | undefined, into: Encoding): void {
  invariant(part.outcome !== 'changed', 'a batch to be sent has complete parts')
  const items: Items | undefined = part.outcome === 'complete' ? base?.[part.type] : undefined
  const outcome = items && part.outcome === 'complete' && hasDistinctNames(part.items) ? 'changed' : part.outcome
  into.to.u8(outcomes.indexOf(outcome))
  into.text(part.collector)
  writeColumn(duration, [part.durationMs], into)
  if (part.outcome !== 'complete') {
    into.text(part.code)
    into.text(part.message)
    return
  }
  const known = snapshotLayout(part.type)
  invariant(known, 'every type of snapshot has a layout')
  if (items && outcome === 'changed') {
    writeChanges(known.layout, part.items, items, into)
    return
  }
  into.to.varint(part.items.length)
  known.layout.write(part.items, into)
}

const hasDistinctNames = (items: readonly Item[]) => new Set(items.map(({ name }) => name)).size === items.length

/**
 * What encodeBody wrote, with parts of types we do not know left out. `view`: all items after the batch; items the body does
 * not tell are the very objects of the base.
 * @throws WireError, with `base_mismatch` where the body is a difference to something other than the base given
 */
export function decodeBody(
  bytes: Uint8Array,
  head: BodyHead,
  base?: BatchView,
): { readonly batch: Batch; readonly view: BatchView } {
  const from = new Reader(bytes)
  const format = from.u8()
  if (format !== FORMAT) throw new WireError(`the format ${format} of the body is unknown`)
  const flags = from.u8()
  if (flags > (HAS_BASE | HAS_FAILURE)) throw new WireError('the body says things of itself that are unknown')
  if (flags & HAS_BASE && !base)
    throw new WireError('the body is a difference, and there is no base', { code: 'base_mismatch' })
  const out = new Decoding(from)
  const durationMs = readDuration(out)
  const failure = flags & HAS_FAILURE ? { code: out.text(), message: out.text() } : undefined
  const parts: Part[] = []
  const tables: RowsPart[] = []
  // Set by a callback, which the compiler does not see.
  let partial = false as boolean
  const known = flags & HAS_BASE ? base : undefined
  for (let left = from.varint(); left > 0; left--) {
    readSlot(out, (type) => {
      const layout = snapshotLayout(type)
      if (layout) parts.push(readPart(layout.type, layout.layout, parts, known, out))
      else if (type === CUSTOM) tables.push(readRowsPart(known, out))
      else if (type === PARTIAL) partial = true
    })
  }
  checkSources(tables)
  const batch = {
    ...batchOf(head, durationMs, parts, failure),
    ...(tables.length > 0 && { tables }),
    ...(partial && { partial }),
  }
  return { batch, view: viewOf(batch, base) }
}

/** A hub that has these is sent every batch as it is. */
export const asItIs: readonly Capability[] = ['steps', 'unread-pods']

/** The batch as a hub can take it that has these abilities; the very same batch where that is all of it. */
export function batchFor(batch: Batch, capabilities: ReadonlySet<string>): Batch {
  const told = capabilities.has('steps') ? batch : withoutSteps(batch)
  return capabilities.has('unread-pods') ? told : withoutUnreadPods(told)
}

/** A hub that has no `steps` refuses parts between two rounds: the next round tells them. */
const withoutSteps = (batch: Batch): Batch =>
  batch.partial && batch.parts.length > 0 ? { ...batch, parts: [] } : batch

/**
 * A hub that has no `unread-pods` would refuse a node without pods: it is told what it was told before there were any, that the
 * round failed.
 */
function withoutUnreadPods(batch: Batch): Batch {
  const refusal = batch.parts.find((part) => part.type === 'podSummary' && part.outcome === 'forbidden')
  const hasUnread = batch.parts.some(
    (part) => part.type === 'node' && part.outcome === 'complete' && part.items.some(({ pods }) => pods === null),
  )
  if (!refusal || !('message' in refusal) || !hasUnread) return batch
  const { code, message } = refusal
  return {
    ...batch,
    parts: batch.parts.map((part) => (part.type === 'node' ? { ...refusal, type: 'node' } : part)),
    failure: batch.failure ?? { code, message: `failed to get node metrics: ${message}` },
  }
}

function batchOf(head: BodyHead, durationMs: number, parts: readonly Part[], failure: Batch['failure']): Batch {
  const { cluster, origin, sequence, collectedAt, base, backfill } = head
  return {
    cluster,
    ...(origin !== undefined && { origin }),
    sequence,
    ...(base !== undefined && { base }),
    ...(backfill && { backfill }),
    source: 'push',
    collectedAt,
    durationMs,
    parts,
    ...(failure && { failure }),
  }
}

function readPart(
  type: SnapshotType,
  layout: ColumnLayout,
  before: readonly Part[],
  base: BatchView | undefined,
  out: Decoding,
): Part {
  const outcome = outcomes[out.from.u8()]
  if (!outcome) throw new WireError('the outcome of a part is unknown')
  const head = { type, collector: out.text(), durationMs: readDuration(out) }
  const part = { ...head, ...contentOf() }
  // Its items came from the table of its type, which the union of parts says for each type, but not for all at once.
  return part as unknown as Part

  function contentOf() {
    if (outcome === 'complete') return { outcome, items: layout.read(out.from.varint(), out) }
    if (outcome !== 'changed') return { outcome, code: out.text(), message: out.text() }
    const items: Items | undefined = base?.[type]
    if (!items) throw new WireError(`the base has no items of type ${type}`, { code: 'base_mismatch' })
    if (before.some((other) => other.type === type && isRead(other)))
      throw new WireError('a difference is told after other items of its type')
    return { outcome, ...readChanges(layout, items, out) }
  }
}

const isRead = ({ outcome }: Part) => outcome === 'complete' || outcome === 'changed'

function readDuration(out: Decoding): number {
  // One value that is neither null nor absent.
  return readColumn(duration, false, 1, out)[0] as number
}
