import { type Batch, type BatchView, type Part, type RowsPart, type SnapshotType, sameJson, type Table } from '#model'
import { viewOf } from '#wire'

/*
 * What moves between two rounds of a cluster that the hub reads itself is handed in as the whole it has become, of which most is
 * as it was. The log, and all that read it, get the difference: an agent's stream makes the same of its own.
 */

/** What the log holds of such a cluster, as of its newest batch. */
export interface Told {
  readonly sequence: number
  readonly view: BatchView
}

/** Whether it is one, of those that are told as differences. Of anything that may be no batch at all. */
export const isOwnStep = (batch: Batch): boolean =>
  isSet(batch) && batch.source === 'pull' && batch.partial === true && batch.origin === undefined && isNew(batch)

const isSet = (batch: Batch | null | undefined): batch is Batch => batch !== null && batch !== undefined
const isNew = ({ backfill, base }: Batch) => !backfill && base === undefined

/** @param told undefined: nothing it could differ from */
export function asDifference(batch: Batch, told: Told | undefined): Batch {
  if (!told) return batch
  const parts = batch.parts.map((part) => changedPart(part, told.view))
  const tables = batch.tables?.map((part) => changedRows(part, told.view))
  const isDifference = [...parts, ...(tables ?? [])].some(({ outcome }) => outcome === 'changed')
  return isDifference ? { ...batch, base: told.sequence, parts, ...(tables && { tables }) } : batch
}

/**
 * What is told once `batch` is in the log. Of rounds only what steps ever spoke of: nothing else is a difference.
 * @param batch as the log has it
 */
export function toldAfter(told: Told | undefined, batch: Batch): Told {
  const view = told?.view ?? {}
  const parts = batch.partial ? batch.parts : batch.parts.filter(({ type }) => view[type] !== undefined)
  return { sequence: batch.sequence, view: viewOf({ ...batch, parts }, view) }
}

function changedPart(part: Part, view: BatchView): Part {
  const known: ReadonlyMap<string, unknown> | undefined = view[part.type]
  if (part.outcome !== 'complete' || !known) return part
  const { items, ...rest } = part
  const names = new Set<string>()
  const put = (items as readonly { readonly name: string }[]).filter((item) => {
    names.add(item.name)
    return !sameJson(known.get(item.name), item)
  })
  if (names.size < items.length) return part
  const removed = [...known.keys()].filter((name) => !names.has(name))
  // Items of the very type they came with.
  return { ...rest, outcome: 'changed', put, removed } as unknown as Part<SnapshotType>
}

function changedRows(part: RowsPart, view: BatchView): RowsPart {
  const known = view.tables?.get(part.source)
  if (part.outcome !== 'complete' || !known || !hasFields(part.rows, known.fields)) return part
  const { rows, ...rest } = part
  return { ...rest, outcome: 'changed', ...(known.patchTo(rows) ?? rows.diff(known)) }
}

const hasFields = ({ fields }: Table, others: readonly string[]): boolean =>
  fields === others || (fields.length === others.length && fields.every((field, i) => field === others[i]))
