import type { ClusterView, EventView, PartView, RowType, RowView, StreamChange, StreamMessage } from '../contract.ts'

/** Rows of one type of one cluster, by name. */
export interface Rows {
  readonly items: ReadonlyMap<string, RowView>
  /** how the hub's last read of them ended; null: never read so far */
  readonly part: PartView | null
  /** undefined: they are all here; else how many there are in all, and what came of those so far */
  readonly arriving?: { readonly total: number; readonly items: ReadonlyMap<string, RowView> }
}

export interface StoreState {
  readonly state: 'available' | 'loading' | 'unavailable'
  readonly since: number | null
  readonly reason: string
}

/** What this tab knows of the fleet. Immutable: what did not change keeps its identity. */
export interface Fleet {
  /** false until the first snapshot: nothing is known, which is not "there is nothing" */
  readonly loaded: boolean
  readonly clusters: ReadonlyMap<string, ClusterView>
  readonly rows: ReadonlyMap<string, Rows>
  /** newest first, at most `maxEvents` */
  readonly events: readonly EventView[]
  readonly store: StoreState
  /** counts how often what may be seen became another: what was told before an epoch may not be shown in it */
  readonly epoch: number
  /** the next snapshot begins an epoch */
  readonly isOutdated: boolean
}

export const maxEvents = 300

export const emptyFleet: Fleet = {
  loaded: false,
  clusters: new Map(),
  rows: new Map(),
  events: [],
  store: { state: 'available', since: null, reason: '' },
  epoch: 0,
  isOutdated: false,
}

export const rowsKey = (cluster: string, type: RowType): string => `${cluster}/${type}`

/**
 * The next picture. A snapshot replaces everything but the events, which it does not carry: those of clusters that are no
 * longer there go with them, and after `access` all of them do.
 */
export function applyMessage(fleet: Fleet, message: StreamMessage): Fleet {
  switch (message.kind) {
    case 'snapshot': {
      const clusters = byName(message.clusters)
      return {
        ...fleet,
        loaded: true,
        clusters,
        events: fleet.isOutdated ? [] : fleet.events.filter(({ cluster }) => clusters.has(cluster)),
        epoch: fleet.isOutdated ? fleet.epoch + 1 : fleet.epoch,
        isOutdated: false,
        rows: new Map(
          message.rows.map(({ type, cluster, items, part, total = items.length }) => [
            rowsKey(cluster, type),
            beginning(
              byName(items),
              part,
              total,
              fleet.isOutdated ? undefined : fleet.rows.get(rowsKey(cluster, type)),
            ),
          ]),
        ),
      }
    }
    case 'rows':
      return withRows(fleet, message)
    case 'change':
      return applyChanges(fleet, message.changes)
    case 'store':
      return { ...fleet, store: { state: message.state, since: message.since, reason: message.reason } }
    case 'access':
      return { ...fleet, isOutdated: true }
    case 'heartbeat':
    case 'reset':
      return fleet
    default:
      return unknownMessage(fleet, message)
  }
}

/**
 * Rows of a snapshot that has more to come. Those that were shown whole stay until the new ones are whole; but none that may
 * no longer be shown.
 */
function beginning(
  items: ReadonlyMap<string, RowView>,
  part: PartView | null,
  total: number,
  before: Rows | undefined,
): Rows {
  if (items.size >= total) return { items, part }
  const shown = before && !before.arriving ? before.items : items
  return { items: shown, part, arriving: { total, items } }
}

function withRows(fleet: Fleet, { type, cluster, items, last }: Extract<StreamMessage, { kind: 'rows' }>): Fleet {
  const key = rowsKey(cluster, type)
  const before = fleet.rows.get(key)
  if (!before?.arriving) return fleet
  const come = new Map(before.arriving.items)
  for (const item of items) come.set(item.name, item)
  const isFirstTime = before.items === before.arriving.items
  const rows: Rows = last
    ? { items: come, part: before.part }
    : {
        items: isFirstTime ? come : before.items,
        part: before.part,
        arriving: { total: before.arriving.total, items: come },
      }
  return { ...fleet, rows: new Map(fleet.rows).set(key, rows) }
}

/** Nothing of what was known: for when it may no longer be shown. */
export const forget = (fleet: Fleet): Fleet => ({ ...emptyFleet, store: fleet.store, epoch: fleet.epoch + 1 })

// A newer hub may send what this page does not know; it is no reason to fail.
const unknownMessage = (fleet: Fleet, _message: never): Fleet => fleet

function applyChanges(fleet: Fleet, changes: readonly StreamChange[]): Fleet {
  const draft = new Draft(fleet)
  for (const change of changes) draft.apply(change)
  return draft.done()
}

/** Copies a map when it is first written to in a group of changes, and only then. */
class Draft {
  readonly #fleet: Fleet
  #clusters: Map<string, ClusterView> | undefined
  #rows: Map<string, Rows> | undefined
  readonly #items = new Map<string, Map<string, RowView>>()
  readonly #events: EventView[] = []
  readonly #removed = new Set<string>()

  constructor(fleet: Fleet) {
    this.#fleet = fleet
  }

  apply(change: StreamChange): void {
    if (change.op === 'event') {
      this.#events.push(change.view)
      return
    }
    if (change.type === 'cluster') {
      this.#clusters ??= new Map(this.#fleet.clusters)
      if (change.op === 'put') this.#clusters.set(change.view.name, change.view)
      else this.#removeCluster(change.cluster)
      return
    }
    const key = rowsKey(change.cluster, change.type)
    if (change.op === 'put') this.#itemsOf(key).set(change.view.name, change.view)
    else if (change.op === 'remove') this.#itemsOf(key).delete(change.name)
    else if (change.op === 'part') this.#rowMap().set(key, { ...this.#rowsOf(key), part: change.part })
  }

  done(): Fleet {
    const before =
      this.#removed.size === 0
        ? this.#fleet.events
        : this.#fleet.events.filter(({ cluster }) => !this.#removed.has(cluster) || this.#clusters?.has(cluster))
    const events = this.#events.length === 0 ? before : newestFirst(this.#events, before)
    return {
      ...this.#fleet,
      clusters: this.#clusters ?? this.#fleet.clusters,
      rows: this.#rows ?? this.#fleet.rows,
      events,
    }
  }

  #removeCluster(cluster: string): void {
    this.#clusters?.delete(cluster)
    this.#removed.add(cluster)
    for (const key of this.#rowMap().keys()) {
      if (!key.startsWith(`${cluster}/`)) continue
      this.#rowMap().delete(key)
      this.#items.delete(key)
    }
  }

  #rowMap(): Map<string, Rows> {
    this.#rows ??= new Map(this.#fleet.rows)
    return this.#rows
  }

  #rowsOf(key: string): Rows {
    return this.#rowMap().get(key) ?? { items: new Map(), part: null }
  }

  #itemsOf(key: string): Map<string, RowView> {
    let items = this.#items.get(key)
    if (!items) {
      const rows = this.#rowsOf(key)
      items = new Map(rows.items)
      this.#items.set(key, items)
      this.#rowMap().set(key, { ...rows, items })
    }
    return items
  }
}

/** Events repeat after a reconnect; the same one is kept once. */
export function newestFirst(some: readonly EventView[], others: readonly EventView[]): EventView[] {
  const seen = new Map<string, EventView>()
  for (const event of [...some, ...others]) {
    const key = `${event.cluster} ${event.type} ${event.at} ${JSON.stringify(event.data)}`
    if (!seen.has(key)) seen.set(key, event)
  }
  return [...seen.values()].sort((a, b) => b.at - a.at).slice(0, maxEvents)
}

const byName = <T extends { readonly name: string }>(items: readonly T[]): Map<string, T> =>
  new Map(items.map((item) => [item.name, item]))
