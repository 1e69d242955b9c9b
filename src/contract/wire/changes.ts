import { type Decoding, type Encoding, readColumn, writeColumn } from './column.ts'
import { type ColumnLayout, type Columns, type Leaf, leafEqual, readSlot } from './column-layout.ts'
import { WireError } from './errors.ts'
import { readPlaces, writePlaces } from './places.ts'
import { type Item, type Items, nameOrder } from './view.ts'

/*
 * The difference between the items of a base and now: names that are gone and rows that changed by their place among the
 * sorted names of the base, of changed rows the columns that differ, and new rows whole.
 */

const ALL_ROWS = 0
const SOME_ROWS = 1

export function writeChanges(layout: ColumnLayout, items: readonly Item[], base: Items, into: Encoding): void {
  const { to } = into
  const { names, check } = nameOrder(base)
  const now = new Map(items.map((item) => [item.name, item]))
  const removed: number[] = []
  const changed: number[] = []
  names.forEach((name, place) => {
    const item = now.get(name)
    if (!item) removed.push(place)
    // The names are those of the base.
    else if (!layout.equal(base.get(name)!, item)) changed.push(place)
  })
  to.varint(names.length)
  to.u32(check)
  writePlaces(removed, to)
  writePlaces(changed, to)
  const changedNames = changed.map((place) => names[place]!)
  writeChangedColumns(
    layout,
    changedNames.map((name) => base.get(name)!),
    changedNames.map((name) => now.get(name)!),
    into,
  )
  const added = items.filter(({ name }) => !base.has(name))
  to.varint(added.length)
  layout.write(added, into)
}

function writeChangedColumns(
  layout: ColumnLayout,
  before: readonly Item[],
  after: readonly Item[],
  into: Encoding,
): void {
  const { to } = into
  const columns = layout.leaves.map((leaf) => ({
    leaf,
    differs: after.map((row, i) => !leafEqual(leaf, before[i]!, row)),
  }))
  const differing = columns.filter(({ differs }) => differs.includes(true))
  to.varint(differing.length)
  for (const { leaf, differs } of differing) {
    into.text(leaf.name)
    to.sized(() => {
      const isAll = !differs.includes(false)
      to.u8(isAll ? ALL_ROWS : SOME_ROWS)
      if (!isAll) to.bits(differs)
      writeColumn(leaf.codec, after.filter((_, i) => differs[i]).map(leaf.get), into)
    })
  }
}

/** @throws WireError, with `base_mismatch` where the difference is to other names than those of the base */
export function readChanges(
  layout: ColumnLayout,
  base: Items,
  out: Decoding,
): { readonly put: readonly Item[]; readonly removed: readonly string[] } {
  const { from } = out
  const size = from.varint()
  const check = from.u32()
  const order = nameOrder(base)
  if (size !== base.size || check !== order.check)
    throw new WireError('the difference is to another base', { code: 'base_mismatch' })
  // Places are below the number of names.
  const removed = readPlaces(size, from).map((place) => order.names[place]!)
  const before = readPlaces(size, from).map((place) => base.get(order.names[place]!)!)
  const columns = readChangedColumns(layout, before, out)
  const changed = columns.some((column) => column) ? layout.patched(before, columns) : []
  const added = layout.read(from.varint(), out)
  // Rows of a table of snapshots: all of them have a name.
  return { put: [...changed, ...added] as Item[], removed }
}

function readChangedColumns(layout: ColumnLayout, before: readonly Item[], out: Decoding): Columns {
  const columns: Columns = new Array(layout.leaves.length).fill(undefined)
  for (let left = out.from.varint(); left > 0; left--) {
    readSlot(out, (name) => {
      const place = layout.placeOf(name)
      if (place === undefined || before.length === 0) return
      if (name === 'name') throw new WireError('a name cannot change')
      if (columns[place]) throw new WireError(`the column ${name} is there twice`)
      columns[place] = readChangedColumn(layout.leaves[place]!, before, out)
    })
  }
  return columns
}

function readChangedColumn({ codec, optional, get }: Leaf, before: readonly Item[], out: Decoding): readonly unknown[] {
  const rows = out.from.u8()
  if (rows === ALL_ROWS) return readColumn(codec, optional, before.length, out)
  if (rows !== SOME_ROWS) throw new WireError(`the choice ${rows} of rows is unknown`)
  const differs = out.from.bits(before.length)
  const values = readColumn(codec, optional, differs.filter((differ) => differ).length, out)
  let next = 0
  return before.map((row, i) => (differs[i] ? values[next++] : get(row)))
}
