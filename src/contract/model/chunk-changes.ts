import { type Chunk, compareRow, sizeOf } from './chunk.ts'
import { type Column, MAX_CHUNK_ROWS, markDifferences, type RowPairs } from './column.ts'

/*
 * Which rows of two chunks differ, column by column: of a column that both share nothing is looked at, and of dictionaries of which one
 * has grown from the other mostly codes.
 */

const EVERY_ROW = Int32Array.from({ length: MAX_CHUNK_ROWS }, (_, row) => row)

/** All rows of two chunks with the very same keys. */
export const pairsOfAll = (chunk: Chunk): RowPairs => ({ count: sizeOf(chunk), before: EVERY_ROW, after: EVERY_ROW })

/**
 * Places in the pairs where the rows differ.
 * @param most beyond as many not all need be there
 */
export function differingPairs(
  before: Chunk,
  after: Chunk,
  pairs: RowPairs,
  most = Number.POSITIVE_INFINITY,
): number[] {
  const differs = new Uint8Array(pairs.count)
  const inPlace = pairs.before === pairs.after
  for (let at = -1; at < after.columns.length; at++) {
    const [one, other] = at < 0 ? [before.labels, after.labels] : [before.columns[at], after.columns[at]]
    // Both have a column for each field.
    if (one === other && (inPlace || one?.isOne)) continue
    markDifferences(one as Column, other as Column, pairs, differs)
    if (most < pairs.count && sumOf(differs) > most) break
  }
  const places: number[] = []
  for (let i = 0; i < differs.length; i++) if (differs[i] === 1) places.push(i)
  return places
}

function sumOf(bits: Uint8Array): number {
  let sum = 0
  for (let i = 0; i < bits.length; i++) sum += bits[i] as number
  return sum
}

/**
 * What makes `after` of `before`, chunks of the same fields: rows of `after` that are new or differ, rows of `before` that are gone.
 * @param most beyond as many not all need be there
 */
export function chunkChanges(
  before: Chunk,
  after: Chunk,
  most?: number,
): { readonly put: readonly number[]; readonly removed: readonly number[] } {
  if (before.keys === after.keys) return { put: differingPairs(before, after, pairsOfAll(after), most), removed: [] }
  const [put, removed]: [number[], number[]] = [[], []]
  const both = new PairsOfKeys(before, after)
  let [a, b] = [0, 0]
  while (a < sizeOf(before) || b < sizeOf(after)) {
    const order = a === sizeOf(before) ? 1 : b === sizeOf(after) ? -1 : compareRows(before, a, after, b)
    if (order < 0) removed.push(a++)
    else if (order > 0) put.push(b++)
    else both.add(a++, b++)
  }
  for (const at of differingPairs(before, after, both, most)) put.push(both.after[at] as number)
  return { put: put.sort((one, other) => one - other), removed }
}

/** Pairs as they are found. */
export class PairsOfKeys implements RowPairs {
  count = 0
  readonly before: Int32Array
  readonly after: Int32Array

  constructor(before: Chunk, after: Chunk) {
    const most = Math.min(sizeOf(before), sizeOf(after))
    this.before = new Int32Array(most)
    this.after = new Int32Array(most)
  }

  add(before: number, after: number): void {
    this.before[this.count] = before
    this.after[this.count++] = after
  }
}

/** How the key of a row of one chunk compares with that of a row of another. */
export function compareRows(a: Chunk, rowA: number, b: Chunk, rowB: number): number {
  return compareRow(a.keys, rowA, b.keys.namespaces.at(rowB), b.keys.names.at(rowB) as string)
}
