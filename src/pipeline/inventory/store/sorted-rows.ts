import type { RowKey } from '#sinks'
import { compareKeys, type PackedRow, sameContent } from './packed-row.ts'

/** Fewer rows than this are put in and taken out one by one; with more the list is made anew. */
const ANEW_FROM = 64

/**
 * Rows in canonical order, each key once. Whoever read the list may keep it: it is copied before the next change.
 */
export class SortedRows {
  #rows: PackedRow[] = []
  #isRead = false

  get size(): number {
    return this.#rows.length
  }

  /** All rows as of now, in order. */
  read(): readonly PackedRow[] {
    this.#isRead = true
    return this.#rows
  }

  /** @returns whether anything differs by it */
  put(rows: readonly PackedRow[]): boolean {
    const incoming = ordered(rows)
    const added: Added[] = []
    let changed = false
    for (const row of incoming) {
      const at = this.#firstNotBefore(row)
      const known = this.#rows[at]
      if (!known || compareKeys(known, row) !== 0) {
        added.push({ row, at })
      } else if (!sameContent(known, row)) {
        this.#own()[at] = row
        changed = true
      }
    }
    if (added.length >= ANEW_FROM) this.#take(withAdded(this.#rows, added))
    else for (const [place, { row, at }] of added.entries()) this.#own().splice(at + place, 0, row)
    return changed || added.length > 0
  }

  /** @returns the rows that were there and are gone */
  remove(keys: Iterable<RowKey>): readonly PackedRow[] {
    const gone = new Set<PackedRow>()
    for (const key of keys) {
      const known = this.#rows[this.#firstNotBefore(key)]
      if (known && compareKeys(known, key) === 0) gone.add(known)
    }
    if (gone.size >= ANEW_FROM) this.#take(this.#rows.filter((row) => !gone.has(row)))
    else for (const row of gone) this.#own().splice(this.#firstNotBefore(row), 1)
    return [...gone]
  }

  /** These rows are all there are; one that says the same stays the very same. @returns what is gone, and whether anything differs */
  replace(rows: readonly PackedRow[]): { readonly gone: readonly PackedRow[]; readonly changed: boolean } {
    const next: PackedRow[] = []
    const gone: PackedRow[] = []
    let changed = false
    let at = 0
    for (const row of ordered(rows)) {
      while (at < this.#rows.length && compareKeys(this.#rows[at] as PackedRow, row) < 0)
        gone.push(this.#rows[at++] as PackedRow)
      const known = this.#rows[at]
      const isThere = known !== undefined && compareKeys(known, row) === 0
      if (isThere) at++
      const stays = isThere && sameContent(known, row)
      if (!stays) changed = true
      next.push(stays ? known : row)
    }
    gone.push(...this.#rows.slice(at))
    if (changed || gone.length > 0) this.#take(next)
    return { gone, changed: changed || gone.length > 0 }
  }

  #take(rows: PackedRow[]): void {
    this.#rows = rows
    this.#isRead = false
  }

  #own(): PackedRow[] {
    if (this.#isRead) this.#take([...this.#rows])
    return this.#rows
  }

  #firstNotBefore(key: RowKey): number {
    let [low, high] = [0, this.#rows.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (compareKeys(this.#rows[middle] as PackedRow, key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** In order, and of those with one key the last. */
function ordered(rows: readonly PackedRow[]): readonly PackedRow[] {
  if (rows.length < 2) return rows
  const sorted = rows.toSorted(compareKeys) // stable: the last of equals stays the last
  return sorted.filter((row, at) => {
    const next = sorted[at + 1]
    return !next || compareKeys(row, next) !== 0
  })
}

interface Added {
  readonly row: PackedRow
  /** before which of the rows there are */
  readonly at: number
}

/** The rows with others between them, whose places rise. */
function withAdded(rows: readonly PackedRow[], added: readonly Added[]): PackedRow[] {
  const all: PackedRow[] = []
  let from = 0
  for (const { row, at } of added) {
    while (from < at) all.push(rows[from++] as PackedRow)
    all.push(row)
  }
  while (from < rows.length) all.push(rows[from++] as PackedRow)
  return all
}
