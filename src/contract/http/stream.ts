import type { StoreView } from './store.ts'
import type { FleetRowView, SourceView } from './types.ts'
import type { ClusterView, PartView, RowType, RowView, StreamChange } from './views.ts'

/**
 * What /api/v1/stream sends. Server-sent events: `event:` is `kind`, `data:` the rest, `id:` an id to come back with. WebSocket
 * (/api/v1/stream/ws): one JSON object per message with `kind`, the rest, and `id` where there is one.
 *
 * Query: `cluster=<name>` (repeatable) adds rows of those clusters; `type=node` (repeatable) which rows; without them the stream
 * carries clusters only, and with `clusters=false` not even these. `rows=<type>?<query>` (repeatable) adds rows of any kind over the
 * fleet: the words of GET /api/v2/rows/<type>, URL-encoded as one value. Its number in the messages is its place in the address,
 * from 0. Beside `limit`, `also=<cluster>/<id>` (repeatable, at most 100) names rows outside of the first ones of which it is told what
 * they are now, and what becomes of them, as of rows that left.
 *
 * After `snapshot` come `change`s. Each query of rows begins with `rows` messages, the first with `from` 0, the last with `isLast`;
 * then come `rowsChange`s. `synced` ends what belongs to one moment: everything before it is one state of the fleet. Whoever comes
 * back with the last id, to whichever process of the hub, is told the difference to then; where that is not known, or another query
 * or another access view is asked for, the parts that cannot be continued begin anew.
 *
 * A reader that is too slow is told the newest state when it reads again, never a backlog. It is packed for who sends
 * `Accept-Encoding: gzip`, each event so that it can be read at once.
 */
export type StreamMessage =
  | {
      kind: 'snapshot'
      clusters: ClusterView[]
      rows: { type: RowType; cluster: string; items: RowView[]; part: PartView | null }[]
      now: number
    }
  | { kind: 'change'; changes: StreamChange[]; now: number }
  | RowsMessage
  /** everything up to here is the state of one moment */
  | { kind: 'synced'; now: number }
  /** what the caller may see changed: a snapshot follows and replaces everything held */
  | { kind: 'access'; reason: 'policies' | 'time'; now: number }
  /** the last message: the session ended, or the stream was too slow and is to begin again */
  | { kind: 'reset'; reason: string }
  /** the store behind the hub, and why it hears nothing new where it is available and there is a reason: what is shown may be old */
  | ({ kind: 'store' } & StoreView)
  /** every second: the hub's clock, for true ages. One in ten has an id. */
  | { kind: 'heartbeat'; now: number }

/** What a stream says of one of its queries of rows. Rows are as GET /api/v2/rows/<type> shows them, without `links`. */
export type RowsMessage =
  | {
      kind: 'rows'
      /** place of the query in the address, from 0 */
      query: number
      /** place of the first item; 0: what is held of this query is forgotten */
      from: number
      items: FleetRowView[]
      /** rows that pass the query, of which `limit` may show a part */
      total: number
      isLast: boolean
      now: number
      /** with the first: columns of the kind; null: no cluster shows it */
      source?: SourceView | null
      /** with the first: how fresh the rows of each cluster are, by name */
      clusters?: RowsAgeView[]
    }
  | { kind: 'rowsChange'; query: number; changes: RowsChange[]; total: number; now: number }
  /**
   * Nothing more comes of this query: it cannot be answered, or matches more rows than a stream carries without `limit`. Where the type
   * was not there, or not to be seen, and comes to be, it begins with `rows` after all.
   */
  | { kind: 'rowsEnd'; query: number; code: string; reason: string }

/** How the rows of one cluster were last read. */
export type RowsAgeView = Omit<PartView, 'count'> & {
  /** empty: of the fleet */
  cluster: string
  /** policies hide rows of it */
  filtered: boolean
  /** ms since the Unix epoch: from then on what is known is of the past; null: nothing is known */
  staleAt: number | null
  /** how what its rows use was last read; absent where the kind measures nothing, or not for the caller */
  measured?: Omit<PartView, 'count'>
}

/** One difference of a query of rows. A row is known by `cluster` and `id`. */
export type RowsChange =
  /**
   * new, or another than before. `at`, only with `limit`: its place in the order, once everything of this message that is removed or
   * put was taken out; puts come with rising places.
   */
  | { op: 'put'; row: FleetRowView; at?: number }
  /**
   * gone, no longer matching, or no longer among the first `limit`. Only with `limit`: `gone`, it is nowhere among the rows of the query,
   * in front of these or behind them; `row`, what it is now where it left because it changed. A row that left is told again when it
   * changes or goes elsewhere, as long as it is one of the latest hundred. So is a row in `also`, whether it left or not: it is told
   * once behind the beginning, or the coming back, and with each change; one that may not be seen is `gone`, as one that is not there.
   */
  | { op: 'remove'; cluster: string; id: string; gone?: true; row?: FleetRowView }
  /** all rows of this cluster are forgotten, and its age with them; others may follow */
  | { op: 'clear'; cluster: string }
  /** every row of this cluster was read again: rows without a change are as old as this */
  | { op: 'age'; age: RowsAgeView }

/** What a query of rows holds. Change it by `applyRows` alone. */
export interface HeldRows {
  /** by cluster and id, in the order of the query where it has a `limit`; else in no order */
  rows: Map<string, FleetRowView>
  ages: Map<string, RowsAgeView>
  source: SourceView | null
  /** with `limit`: by cluster and id, the latest that left and are nowhere among the rows of the query, and when that was told, ms */
  gone: Map<string, { readonly cluster: string; readonly id: string; readonly at: number }>
  /** with `limit`: by cluster and id, the latest that left and stand elsewhere among the rows of the query, as last told, and when, ms */
  left: Map<string, { readonly row: FleetRowView; readonly at: number }>
  total: number
  /** the snapshot arrived whole */
  isWhole: boolean
  /** why nothing more comes; null: it does */
  ended: { readonly code: string; readonly reason: string } | null
}

export const noRows = (): HeldRows => ({
  rows: new Map(),
  ages: new Map(),
  source: null,
  gone: new Map(),
  left: new Map(),
  total: 0,
  isWhole: false,
  ended: null,
})

/** Names a row within a query. */
export const rowKey = (cluster: string, id: string): string => `${cluster}/${id}`

/** Takes one message about this query into what is held. */
export function applyRows(held: HeldRows, message: RowsMessage): void {
  if (message.kind === 'rowsEnd') {
    Object.assign(held, noRows(), { ended: { code: message.code, reason: message.reason } })
    return
  }
  if (message.kind === 'rows') {
    if (message.from === 0) Object.assign(held, noRows(), { source: message.source ?? null })
    for (const age of message.clusters ?? []) held.ages.set(age.cluster, age)
    for (const row of message.items) held.rows.set(rowKey(row.cluster, row.id), row)
    held.total = message.total
    held.isWhole = message.isLast
    return
  }
  applyChanges(held, message.changes, message.now)
  held.total = message.total
}

/** More of those that are gone, or left, nobody asks for: what they left is read again meanwhile. */
const mostGone = 1000

function applyChanges(held: HeldRows, changes: readonly RowsChange[], now: number): void {
  const { rows, ages, gone, left } = held
  const placed: { readonly row: FleetRowView; readonly at: number }[] = []
  for (const change of changes) {
    if (change.op === 'put') {
      gone.delete(rowKey(change.row.cluster, change.row.id))
      left.delete(rowKey(change.row.cluster, change.row.id))
    }
    if (change.op === 'remove') {
      const { cluster, id } = change
      const key = rowKey(cluster, id)
      const row = change.row ?? rows.get(key) ?? left.get(key)?.row
      for (const each of [rows, gone, left]) each.delete(key)
      if (change.gone) gone.set(key, { cluster, id, at: now })
      else if (row) left.set(key, { row, at: now })
    } else if (change.op === 'age') ages.set(change.age.cluster, change.age)
    else if (change.op === 'clear') {
      ages.delete(change.cluster)
      for (const [key, { cluster }] of rows) if (cluster === change.cluster) rows.delete(key)
      for (const [key, { row }] of left) if (row.cluster === change.cluster) left.delete(key)
    } else if (change.at === undefined) rows.set(rowKey(change.row.cluster, change.row.id), change.row)
    else {
      rows.delete(rowKey(change.row.cluster, change.row.id))
      placed.push({ row: change.row, at: change.at })
    }
  }
  for (const each of [gone, left]) {
    for (const key of each.keys()) {
      if (each.size <= mostGone) break
      each.delete(key)
    }
  }
  if (placed.length === 0) return
  const order = [...rows.values()]
  for (const { row, at } of placed) order.splice(at, 0, row)
  rows.clear()
  for (const row of order) rows.set(rowKey(row.cluster, row.id), row)
}
