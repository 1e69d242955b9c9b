import type { RowsAccessView } from '#access'
import type { RowKind } from '#metricsource'
import { type RowsState, Table } from '#model'
import type { Listed, ListedType, SnapshotKind } from '#resources'
import type { VisibleCluster } from './views.ts'

/*
 * Snapshots that every round brings, as rows. What is hidden was left out of the snapshots before: rows are made of the rest, when
 * somebody asks for them, and kept as long as that rest.
 */

interface Snapshots {
  readonly custom: RowsAccessView
  readonly state: RowsState | undefined
  readonly count: number
}

export function snapshotsOn(cluster: VisibleCluster, kind: SnapshotKind): Snapshots {
  const part = cluster.state.parts[kind.type]
  const listed = listedOf(cluster, kind.type)
  const custom = seenRows(cluster.whole)
  if (!part) return { custom, state: undefined, count: 0 }
  const { outcome, code, message, attemptedAt, freshness } = part
  const made = madeOf(kind, listed)
  const state = stateOfRows(kind, { outcome, code, message, attemptedAt, freshness }, made)
  return { custom, state, count: listed.length }
}

/** Of rows that are made of what may be seen: nothing is left to hide. */
export const seenRows = (whole: boolean): RowsAccessView => ({
  result: whole ? 'allow' : 'partial',
  reason: '',
  whole,
  metrics: true,
  shows: () => true,
  aggregation: () => true,
  basis: [],
})

/** Rows are made when they are asked for. */
export const stateOfRows = (
  { id, hash }: RowKind,
  read: Pick<RowsState, 'outcome' | 'code' | 'message' | 'attemptedAt' | 'freshness'>,
  made: Pick<RowsState, 'rows' | 'aggregations'>,
): RowsState => ({
  ...read,
  ...{ source: id, hash, durationMs: 0 },
  ...{ truncated: false, errors: [], errorCount: 0, reports: [] },
  get rows() {
    return made.rows
  },
  get aggregations() {
    return made.aggregations
  },
})

/** Namespaces with what is counted in them; the others as they are. */
function listedOf<T extends ListedType>(cluster: VisibleCluster, type: T): readonly Listed<T>[] {
  if (type !== 'namespace') return cluster.visible(type) as readonly Listed<T>[] // only namespaces are listed with counts
  const counted: unknown = cluster.memo('namespaces with counts', () =>
    [...cluster.rows('namespace').values()].map(({ snapshot, pods, deployments }) => ({
      ...snapshot,
      pods,
      deployments,
    })),
  )
  return counted as readonly Listed<T>[] // made for this type alone
}

type Made = Pick<RowsState, 'rows' | 'aggregations'>

const known = new WeakMap<readonly unknown[], Made>()

function madeOf(kind: SnapshotKind, listed: readonly Listed<ListedType>[]): Made {
  if (listed.length === 0) return { rows: Table.empty, aggregations: {} }
  const before = known.get(listed)
  if (before) return before
  // The snapshots are those of the kind's type.
  const of = kind as { tableOf(all: typeof listed): Table; count(all: typeof listed): Made['aggregations'] }
  let [rows, counts]: [Table?, Made['aggregations']?] = []
  const made: Made = {
    get rows() {
      rows ??= of.tableOf(listed)
      return rows
    },
    get aggregations() {
      counts ??= of.count(listed)
      return counts
    },
  }
  known.set(listed, made)
  return made
}
