import type { Batch, BatchView, SnapshotType } from '#model'

type Items = ReadonlyMap<string, { readonly name: string }>

/**
 * All items of each type after the batch: what `changed` parts of the next are a difference to. A part that was not read
 * keeps the items of the base. Unchanged items are the very objects of the base.
 */
export function viewOf(batch: Batch, base?: BatchView): BatchView {
  // Maps of one type each under its name, which a union of types cannot say.
  const view: Partial<Record<SnapshotType, Items>> = { ...base }
  for (const part of batch.parts) {
    if (part.outcome === 'complete') view[part.type] = new Map(part.items.map((item) => [item.name, item]))
    if (part.outcome === 'changed') view[part.type] = changedItems(view[part.type], part.put, part.removed)
  }
  return view as BatchView
}

/** The same map where nothing changed. */
export function changedItems(
  items: Items = new Map(),
  put: readonly { readonly name: string }[],
  removed: readonly string[],
): Items {
  if (put.length === 0 && removed.length === 0) return items
  const next = new Map(items)
  for (const name of removed) next.delete(name)
  for (const item of put) next.set(item.name, item)
  return next
}
