import {
  type Batch,
  type Change,
  type ClusterState,
  type CustomFacts,
  type CustomPart,
  type CustomState,
  type Freshness,
  Table,
} from '#model'

type Custom = ClusterState['custom']

/** What every MetricSource saw, after this batch. Rows that are equal stay the very same value. */
export function applyCustom(
  before: Custom,
  { cluster, custom = [] }: Batch,
  freshness: Freshness,
): { readonly custom: Custom; readonly changes: readonly Change[] } {
  if (custom.length === 0) return { custom: before, changes: [] }
  const after = new Map(before)
  const changes: Change[] = []
  for (const part of custom) {
    const old = before.get(part.source)
    const next = applyCustomPart(old, part, freshness)
    after.set(part.source, next)
    const rows = old ? next.rows !== old.rows : next.rows.size > 0
    changes.push({ kind: 'custom', cluster, source: part.source, rows, op: 'put', at: freshness.receivedAt })
  }
  return { custom: after, changes }
}

function applyCustomPart(old: CustomState | undefined, part: CustomPart, freshness: Freshness): CustomState {
  const { source, hash, durationMs } = part
  const attemptedAt = freshness.observedAt
  const before = old?.rows ?? Table.empty
  if (part.outcome !== 'complete' && part.outcome !== 'changed') {
    const { outcome, code, message } = part
    const seen = old ?? { ...NOTHING, hash, freshness: null }
    // The hash stays that of the rows: what they were collected by.
    return { ...seen, source, durationMs, outcome, code, message, attemptedAt, rows: before }
  }
  const given = part.outcome === 'complete' ? part.rows : before.patch(part.put, part.removed)
  // What did not change keeps its chunks, so that stores write the others only.
  const rows = given.basedOn(before)
  const { aggregations, truncated, errors, errorCount, reports } = part
  const facts: CustomFacts = { aggregations, truncated, errors, errorCount, reports }
  const read = { outcome: 'complete', code: '', message: '', attemptedAt, freshness } as const
  return { source, hash, durationMs, ...read, ...facts, rows }
}

const NOTHING: CustomFacts = { aggregations: {}, truncated: false, errors: [], errorCount: 0, reports: [] }

/** Whether every difference is one to rows that are here. */
export function isCustomBased({ custom = [] }: Batch, before: Custom | undefined): boolean {
  return custom.every(({ outcome, source }) => outcome !== 'changed' || before?.get(source)?.freshness)
}
