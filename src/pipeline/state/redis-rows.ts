import {
  type Aggregated,
  type ClusterState,
  documentText,
  type Freshness,
  isDeclaredSource,
  type RowsState,
  type SourceId,
  type Table,
} from '#model'
import type { Command } from '#redis'

/*
 * The documented keys of what a MetricSource saw: `cluster:<c>:custom:<s>:resources`, `:aggregations` and `:meta`. Written where
 * it was collected anew; rows that stayed the same are told again after a minute. A collection that failed lets them run out.
 */
/** What Redis was given of a source: when its rows, by the hub's clock, and for how long; ms. */
export type WrittenRows = ReadonlyMap<SourceId, { readonly rowsAt: number; readonly ttlMs: number }>

const ROWS_EVERY_MS = 60_000
/** Three times the time between two collections, but what once took days does not stay for weeks. */
const LONGEST_MS = 86_400_000

type Read = RowsState & { readonly freshness: Freshness }

/**
 * @param before what Redis has; absent: nothing, or nobody knows
 * @param known what was written of `before` by this process
 */
export function rowsCommands(
  before: ClusterState | undefined,
  after: ClusterState,
  { now, lifetimeMs, known }: { readonly now: number; readonly lifetimeMs: number; readonly known?: WrittenRows },
): { readonly commands: Command[]; readonly written: WrittenRows } {
  if (known && before?.tables === after.tables) return { commands: [], written: known }
  const commands: Command[] = []
  const written = new Map(known)
  for (const [source, state] of after.tables) {
    if (!isDeclaredSource(source)) continue
    const old = before?.tables.get(source)
    const last = known?.get(source)
    if (!isRead(state) || old === state || old?.freshness?.observedAt === state.freshness.observedAt) continue
    const ttlMs = Math.max(lifetimeOf(state, old, lifetimeMs), old ? 0 : (last?.ttlMs ?? 0))
    if (now - state.freshness.receivedAt > ttlMs) continue
    const isDue = !old || !last || now - last.rowsAt >= ROWS_EVERY_MS
    const tellsRows = isDue || old.rows !== state.rows
    commands.push(...sourceCommands(after.name, state, { ttlMs, tellsRows }))
    written.set(source, { rowsAt: tellsRows ? now : last.rowsAt, ttlMs })
  }
  for (const source of [...(before?.tables.keys() ?? []), ...written.keys()]) {
    if (after.tables.has(source)) continue
    if (before?.tables.has(source)) commands.push(['DEL', ...Object.values(keysOf(after.name, source))])
    written.delete(source)
  }
  return { commands, written }
}

const isRead = (state: RowsState): state is Read => state.outcome === 'complete' && state.freshness !== null

function lifetimeOf({ freshness }: Read, old: RowsState | undefined, lifetimeMs: number): number {
  const betweenMs = old?.freshness ? freshness.observedAt - old.freshness.observedAt : 0
  return Math.max(lifetimeMs, Math.min(LONGEST_MS, 3 * betweenMs))
}

function keysOf(cluster: string, source: SourceId) {
  const key = `cluster:${cluster}:custom:${source}`
  return { resources: `${key}:resources`, aggregations: `${key}:aggregations`, meta: `${key}:meta` }
}

function sourceCommands(
  cluster: string,
  state: Read,
  { ttlMs, tellsRows }: { readonly ttlMs: number; readonly tellsRows: boolean },
): Command[] {
  const { source, durationMs, truncated, freshness, rows } = state
  const keys = keysOf(cluster, source)
  const seconds = Math.ceil(ttlMs / 1000)
  const at = new Date(freshness.observedAt).toISOString()
  const meta = {
    sourceId: source,
    clusterName: cluster,
    lastCollectionTime: at,
    durationMs,
    resourceCount: rows.size,
    truncated,
    errorCount: state.errorCount,
    ...(state.errors[0] && { lastError: state.errors[0].message }),
  }
  const hasAggregations = Object.keys(state.aggregations).length > 0
  const values = sorted(state.aggregations)
  return [
    tellsRows
      ? ['SET', keys.resources, resourcesText(cluster, state, at), 'EX', seconds]
      : ['EXPIRE', keys.resources, seconds],
    hasAggregations
      ? [
          'SET',
          keys.aggregations,
          documentText({ computedAt: at, sourceId: source, durationMs, values }),
          'EX',
          seconds,
        ]
      : ['DEL', keys.aggregations],
    ['SET', keys.meta, documentText(meta), 'EX', seconds],
  ]
}

function sorted(aggregations: RowsState['aggregations']): Readonly<Record<string, Aggregated>> {
  const byName = Object.entries(aggregations).sort(byFirst)
  return Object.fromEntries(
    byName.map(([name, value]) => [
      name,
      typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value).sort(byFirst)) : value,
    ]),
  )
}

const byFirst = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : a > b ? 1 : 0)

function resourcesText(cluster: string, { source, durationMs, truncated, rows }: Read, at: string): string {
  const head = {
    collectedAt: at,
    sourceId: source,
    clusterName: cluster,
    resourceCount: rows.size,
    truncated,
    durationMs,
  }
  return `${documentText(head).slice(0, -1)},"resources":[${rowTexts(rows).join(',')}]}`
}

/** Each row as documented. Put together from texts: a hundred thousand objects would be made only to be told. */
function rowTexts(rows: Table): string[] {
  const columns = rows.fields
    .map((field) => ({ field, name: documentText(field), column: rows.column(field) }))
    .sort((a, b) => (a.field < b.field ? -1 : 1))
  const labelTexts = new Map<object, string>()
  const labelText = (one: Readonly<Record<string, string>>): string => {
    const known = labelTexts.get(one)
    if (known !== undefined) return known
    const entries = Object.entries(one).sort(byFirst)
    const text = entries.length === 0 ? '' : `,"_labels":${documentText(Object.fromEntries(entries))}`
    labelTexts.set(one, text)
    return text
  }
  return Array.from({ length: rows.size }, (_, row) => {
    const namespace = rows.namespaceAt(row)
    const id = documentText(rows.idAt(row))
    const space = namespace === '' ? '' : `,"_namespace":${documentText(namespace)}`
    const pairs = columns.map(({ name, column }) => `${name}:${documentText(column?.(row) ?? null)}`).join(',')
    return `{"_id":${id}${space},"_name":${documentText(rows.nameAt(row))}${labelText(rows.labelsAt(row))},"values":{${pairs}}}`
  })
}
