import {
  type ClusterState,
  isClusterName,
  type PartState,
  type SnapshotOf,
  type SnapshotType,
  snapshotTypes,
} from '#model'
import type { Logger } from '#runtime'
import type { ReadOptions, StoredRows } from './stored-rows.ts'

/*
 * How a cluster is kept in a store: one field for what moves with every round, one per type of snapshot. Fields of one
 * cluster are written together. JSON, because it is read in one native call and looked at by people.
 */
export const META = 'meta'
export const partField = (type: SnapshotType): string => `part:${type}`

/**
 * Fields that differ between two states, by name; all of them without a former state. undefined: it is to be deleted.
 * @param rows of the store that has `before`
 */
export function changedFields(
  before: ClusterState | undefined,
  after: ClusterState,
  rows: StoredRows,
): Map<string, string | undefined> {
  const fields = new Map<string, string | undefined>()
  if (before === after) return fields
  fields.set(META, encodeMeta(after))
  for (const type of snapshotTypes) {
    const part = after.parts[type]
    if (part && part.items !== before?.parts[type]?.items)
      fields.set(partField(type), JSON.stringify([...part.items.values()]))
  }
  for (const [field, text] of rows.changed(before?.tables, after.tables)) fields.set(field, text)
  return fields
}

// Outcome and freshness of every part go with meta: they move every round, the items often do not.
function encodeMeta({ parts, tables: _, ...rest }: ClusterState): string {
  const heads = Object.fromEntries(
    Object.entries(parts).map(([type, { outcome, code, message, attemptedAt, freshness }]) => [
      type,
      { outcome, code, message, attemptedAt, freshness },
    ]),
  )
  return JSON.stringify({ ...rest, parts: heads })
}

/**
 * The cluster from its fields. `before` lends the items of parts that are not among the fields.
 * @returns undefined where what is stored cannot be read; the next full round writes it anew. Rows of a source that cannot be read
 * are left out and named: its next collection writes them anew
 */
export function decodeCluster(
  fields: Readonly<Record<string, string>>,
  rows: StoredRows,
  { before, ...options }: ReadOptions & { readonly before?: ClusterState } = {},
): ClusterState | undefined {
  try {
    const meta = JSON.parse(fields[META] ?? 'null') as ClusterState | null
    if (!meta || !isClusterName(meta.name) || !Number.isSafeInteger(meta.version)) return undefined
    const parts: { -readonly [T in SnapshotType]?: PartState<SnapshotType> } = {}
    for (const type of snapshotTypes) {
      const head = meta.parts[type]
      if (head) parts[type] = { ...head, items: itemsOf(fields[partField(type)], before?.parts[type]?.items) }
    }
    // A former version wrote neither who numbered its batches nor an agent: there was only the hub.
    return {
      ...meta,
      tables: rows.read(fields, before?.tables, options),
      origin: meta.origin ?? '',
      agent: meta.agent ?? null,
      parts: parts as ClusterState['parts'],
    }
  } catch {
    return undefined // written by another version, or damaged
  }
}

type Items = ReadonlyMap<string, SnapshotOf<SnapshotType>>

function itemsOf(text: string | undefined, before: Items | undefined): Items {
  if (text === undefined && before) return before
  // A head without its items must not look like an empty read: what is stored is broken.
  if (text === undefined) throw new Error('items are missing')
  const items = JSON.parse(text) as SnapshotOf<SnapshotType>[]
  return new Map(items.map((item) => [item.name, item]))
}

/** Names what of the rows of a source cannot be read. */
export const damageLogger =
  (cluster: string, logger: Logger): NonNullable<ReadOptions['onDamage']> =>
  (source, field) =>
    logger.error({ cluster, source, field }, 'stored rows are damaged or missing: they wait for the next collection')
