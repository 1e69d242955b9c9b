import type { Batch, BatchView, SnapshotType } from '#model'
import { rowsViewOf } from './rows.ts'

export type Item = { readonly name: string }
export type Items = ReadonlyMap<string, Item>

/**
 * All items of each type after the batch: what `changed` parts of the next are a difference to. A part that was not read
 * keeps the items of the base. Unchanged items are the very objects of the base.
 */
export function viewOf(batch: Batch, base?: BatchView): BatchView {
  const { tables, tableFacts, ...items } = { ...base, ...rowsViewOf(batch.tables, base) }
  // Maps of one type each under its name, which a union of types cannot say.
  const view: Partial<Record<SnapshotType, Items>> = { ...items }
  for (const part of batch.parts) {
    if (part.outcome === 'complete') view[part.type] = new Map(part.items.map((item) => [item.name, item]))
    if (part.outcome === 'changed') view[part.type] = changedItems(view[part.type], part.put, part.removed)
  }
  return { ...view, ...(tables && { tables }), ...(tableFacts && { tableFacts }) } as BatchView
}

/** The same map where nothing changed. */
export function changedItems(items: Items = new Map(), put: readonly Item[], removed: readonly string[]): Items {
  if (put.length === 0 && removed.length === 0) return items
  const next = new Map(items)
  for (const name of removed) next.delete(name)
  for (const item of put) next.set(item.name, item)
  const order = orders.get(items)
  if (order && removed.length === 0 && next.size === items.size) orders.set(next, order)
  return next
}

/** The names of a map in the one order both ends agree on, whatever the order of its entries. */
interface NameOrder {
  readonly names: readonly string[]
  /** FNV-1a over the names: tells a base of other names from the right one */
  readonly check: number
}

const orders = new WeakMap<Items, NameOrder>()

/** Made once per map; maps are not changed once they are in a view. */
export function nameOrder(items: Items): NameOrder {
  let order = orders.get(items)
  if (!order) {
    const names = [...items.keys()].sort()
    order = { names, check: checkOf(names) }
    orders.set(items, order)
  }
  return order
}

function checkOf(names: readonly string[]): number {
  let hash = 0x811c9dc5
  for (const name of names) {
    for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
    // No unit of UTF-16: the end of a name.
    hash = Math.imul(hash ^ 0x10000, 0x01000193)
  }
  return hash >>> 0
}
