import type { Batch, Part, RowsPart } from '#model'

/** What was read beside or between rounds, as a batch whose sequence is 0 still. */
export function stepOf(
  { cluster, source, collectedAt }: Pick<Batch, 'cluster' | 'source' | 'collectedAt'>,
  tables: readonly RowsPart[],
  parts: readonly Part[] = [],
): Batch {
  const durationMs = Math.max(0, ...tables.map((part) => part.durationMs))
  const step = { cluster, source, collectedAt, sequence: 0, durationMs, parts, partial: true }
  return tables.length > 0 ? { ...step, tables } : step
}

/** Rows of one batch; a kind with more has one of its own. */
const ROWS_TOGETHER = 50_000

/**
 * What is handed in of a round: the round, then the rows it read, as steps of their own. So rows without measure keep nobody from
 * the nodes, and no batch grows beyond what it may hold by several kinds coming together.
 */
export function batchesOf({ tables = [], ...round }: Batch): readonly Batch[] {
  return [round, ...setsOf(tables).map((some) => ({ ...stepOf(round, some), durationMs: round.durationMs }))]
}

/** Rows that may go together. */
export function setsOf(tables: readonly RowsPart[]): readonly (readonly RowsPart[])[] {
  const sets: RowsPart[][] = []
  let rows = 0
  for (const table of tables) {
    const size = table.outcome === 'complete' ? table.rows.size : 0
    if (sets.length === 0 || rows + size > ROWS_TOGETHER) {
      sets.push([])
      rows = 0
    }
    sets.at(-1)?.push(table)
    rows += size
  }
  return sets
}
