import {
  type Change,
  type ClusterState,
  type PartState,
  type RowsState,
  type SnapshotOf,
  type SnapshotType,
  type SourceId,
  sameJson,
  snapshotTypes,
  type Table,
} from '#model'
import { newEvents } from './cluster-events.ts'
import { mergeItems } from './fleet.ts'

/**
 * The newer state of a cluster with the items of the older one where they are equal, and what is different.
 * @param keep which of two tables with equal rows to keep: the one that came, or the one that shares chunks with the older one
 */
export function difference(
  before: ClusterState | undefined,
  after: ClusterState,
  at: number,
  keep: (came: Table, shares: Table) => Table = (_, shares) => shares,
): { next: ClusterState; changes: Change[] } {
  const cluster = after.name
  const changes: Change[] = []
  const parts: { -readonly [T in SnapshotType]?: PartState<SnapshotType> } = {}
  for (const type of snapshotTypes) {
    const part = after.parts[type]
    if (!part) continue
    // Both maps stand under the same type's key.
    const old = (before?.parts[type]?.items ?? new Map()) as ReadonlyMap<string, SnapshotOf<SnapshotType>>
    const items = mergeItems(old, [...part.items.values()], (name, op) =>
      changes.push({ kind: 'snapshot', cluster, type, name, op, at }),
    )
    parts[type] = { ...part, items }
  }
  const tables = new Map<SourceId, RowsState>()
  for (const [source, now] of after.tables) {
    const old = before?.tables.get(source)
    const shares = old ? now.rows.basedOn(old.rows) : now.rows
    const same = shares === old?.rows
    const table = keep(now.rows, shares)
    const isOld = table === old?.rows && sameJson({ ...old, rows: null }, { ...now, rows: null })
    tables.set(source, isOld ? old : { ...now, rows: table })
    const rows = old ? !same : now.rows.size > 0
    if (!isOld) changes.push({ kind: 'custom', cluster, source, rows, op: 'put', at })
  }
  for (const source of before?.tables.keys() ?? [])
    if (!tables.has(source)) changes.push({ kind: 'custom', cluster, source, rows: true, op: 'remove', at })
  const next: ClusterState = { ...after, parts: parts as ClusterState['parts'], tables }
  changes.push({ kind: 'cluster', cluster, op: 'put', at })
  for (const event of newEvents(before, after)) changes.push({ kind: 'event', cluster, event, at })
  return { next, changes }
}
