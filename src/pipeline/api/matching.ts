import { type Chunk, sizeOf, type Table } from '#model'
import type { Steps } from '#runtime'
import { ChunkMemo, isKept } from './chunk-memo.ts'
import { filterOf, type RowsFilter } from './row-filter.ts'
import { both, countOf, noRows, type RowSet } from './row-set.ts'
import type { VisibleType } from './visible-types.ts'

/*
 *  rows that may be seen → namespace, q, where
 *
 * Table by table: what came of one is kept as long as it is the very same. Where one row of a fleet changed, one table is looked at again,
 * and of it one chunk (row-filter.ts keeps what came of the others).
 */

/** Some rows of one chunk. */
export interface ChunkRows {
  readonly chunk: Chunk
  /** where in the table its first row is */
  readonly start: number
  readonly rows: RowSet
}

/** Rows of one table that may be seen and pass the filters, chunk by chunk as they lie; without chunks that have none. */
export interface MatchingRows {
  readonly parts: readonly ChunkRows[]
  readonly total: number
}

/** The same, of one type among those that are asked. */
export interface MatchingTable extends MatchingRows {
  readonly number: number
  readonly table: Table
  /** equal ones of one table: the same rows; empty where nothing is kept of it */
  readonly question: string
}

/** Some hundred questions over a hundred tables. */
const memo = new ChunkMemo(32 * 2 ** 20)
const bytesOfRows = ({ parts }: MatchingRows): number => 150 + 100 * parts.length

/**
 * All that the answer hangs on besides the table.
 * @param columns that are looked at besides those of the filter
 */
export function questionOf(
  { source, cluster, seenBy }: VisibleType,
  { namespace, labels, q, where }: RowsFilter,
  columns: readonly string[] = [],
): string {
  // What the cluster is called is in no table.
  const isOfCluster = [...columns, ...(where ?? [])].some((text) => text.includes('cluster'))
  return JSON.stringify([
    ...[source.id, source.hash, seenBy, isOfCluster ? cluster.name : null],
    ...[namespace, labels, q, where],
  ])
}

/** @throws RefusedError `invalid_parameter`. @returns tables without such rows, too */
export function* matching(
  types: readonly VisibleType[],
  query: RowsFilter,
): Steps<{ readonly tables: readonly MatchingTable[]; readonly total: number }> {
  const tables: MatchingTable[] = []
  let total = 0
  for (const [number, type] of types.entries()) {
    const { rows: table } = type
    const question = isKept(table) ? questionOf(type, query) : ''
    const found = question
      ? yield* memo.answers(question, bytesOfRows).steps(table, () => matchingRows(type, query))
      : yield* matchingRows(type, query)
    total += found.total
    tables.push({ ...found, number, table, question })
  }
  return { tables, total }
}

function* matchingRows(type: VisibleType, query: RowsFilter): Steps<MatchingRows> {
  const { rows: table } = type
  const test = filterOf(type, query)
  const parts: ChunkRows[] = []
  let total = 0
  for (let i = 0; i < table.chunks.length; i++) {
    const chunk = table.chunks[i] as Chunk // below their number
    const size = sizeOf(chunk)
    const seen = type.seenIn(i)
    const rows = seen === noRows || !test ? seen : both(seen, test(chunk), size)
    if (rows !== noRows) {
      total += countOf(rows, size)
      parts.push({ chunk, start: table.startOf(i), rows })
    }
    yield
  }
  return { parts, total }
}
