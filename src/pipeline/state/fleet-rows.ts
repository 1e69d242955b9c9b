import {
  type Batch,
  type Change,
  type ClusterState,
  type Freshness,
  incompleteTargets,
  keepsRows,
  type RowsFacts,
  type RowsPart,
  type RowsState,
  Table,
} from '#model'

type Tables = ClusterState['tables']

/** What every MetricSource saw, after this batch. Rows that are equal stay the very same value. */
export function applyRows(
  before: Tables,
  { cluster, tables = [] }: Batch,
  freshness: Freshness,
): { readonly tables: Tables; readonly changes: readonly Change[] } {
  if (tables.length === 0) return { tables: before, changes: [] }
  const after = new Map(before)
  const changes: Change[] = []
  for (const part of tables) {
    const old = before.get(part.source)
    const next = applyRowsPart(old, part, freshness)
    after.set(part.source, next)
    const rows = old ? next.rows !== old.rows : next.rows.size > 0
    changes.push({ kind: 'custom', cluster, source: part.source, rows, op: 'put', at: freshness.receivedAt })
  }
  return { tables: after, changes }
}

function applyRowsPart(old: RowsState | undefined, part: RowsPart, freshness: Freshness): RowsState {
  const { source, hash, durationMs } = part
  const attemptedAt = freshness.observedAt
  const before = old?.rows ?? Table.empty
  if (part.outcome !== 'complete' && part.outcome !== 'changed') {
    const { outcome, code, message } = part
    // The hash stays that of the rows: what they were collected by.
    const nothing: Known = { ...NOTHING, hash, freshness: null }
    const { failedHash: _, ...seen } = old?.freshness ? old : nothing
    const failed = hash === seen.hash ? {} : { failedHash: hash }
    return { ...seen, ...failed, source, durationMs, outcome, code, message, attemptedAt, rows: before }
  }
  const rows = rowsAfter(before, part)
  const { aggregations, truncated, errors, errorCount, reports } = part
  const facts: RowsFacts = { aggregations, truncated, errors, errorCount, reports }
  const read = { outcome: 'complete', code: '', message: '', attemptedAt, freshness } as const
  return { source, hash, durationMs, ...read, ...facts, rows }
}

function rowsAfter(before: Table, part: Extract<RowsPart, { readonly outcome: 'complete' | 'changed' }>): Table {
  if (part.outcome === 'changed') return before.patch(part.put, part.removed)
  // What did not change keeps its chunks, so that stores write the others only.
  return keepsRows(part) ? before.patch(part.rows, goneFrom(before, part)) : part.rows.basedOn(before)
}

/** Rows of before that an incomplete collection does not name, and that are of no target of which it lacks any. */
function goneFrom(before: Table, part: Extract<RowsPart, { readonly outcome: 'complete' }>): readonly string[] {
  const incomplete = part.truncated ? undefined : incompleteTargets(part)
  const targetAt = before.column('target')
  if (!incomplete || !targetAt) return []
  const isKept = (target: unknown) => typeof target !== 'string' || incomplete.has(target)
  const { removed } = part.rows.changes(before)
  return removed.filter((place) => !isKept(targetAt(place))).map((place) => before.idAt(place))
}

type Known = RowsFacts & Pick<RowsState, 'hash' | 'failedHash' | 'freshness'>

const NOTHING: RowsFacts = { aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }

/** Whether every difference is one to rows that are here. */
export function areRowsBased({ tables = [] }: Batch, before: Tables | undefined): boolean {
  return tables.every(({ outcome, source }) => outcome !== 'changed' || before?.get(source)?.freshness)
}
