import type { ClusterView, EventView, StoreView, StreamChange, StreamMessage } from '../contract.ts'

/** What this tab knows of the fleet. Immutable: what did not change keeps its identity. */
export interface Fleet {
  /** false until the first snapshot: nothing is known, which is not "there is nothing" */
  readonly loaded: boolean
  readonly clusters: ReadonlyMap<string, ClusterView>
  /** newest first, at most `maxEvents` */
  readonly events: readonly EventView[]
  readonly store: StoreView
  /** counts how often what may be seen became another: what was told before an epoch may not be shown in it */
  readonly epoch: number
  /** the next snapshot begins an epoch */
  readonly isOutdated: boolean
}

export const maxEvents = 300

export const emptyFleet: Fleet = {
  loaded: false,
  clusters: new Map(),
  events: [],
  store: { state: 'available', since: null, reason: '' },
  epoch: 0,
  isOutdated: false,
}

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
      }
    }
    case 'change':
      return applyChanges(fleet, message.changes)
    case 'store':
      return { ...fleet, store: { state: message.state, since: message.since, reason: message.reason } }
    case 'access':
      return { ...fleet, isOutdated: true }
    case 'rows':
    case 'rowsChange':
    case 'rowsEnd':
    case 'synced':
    case 'heartbeat':
    case 'reset':
      return fleet
    default:
      return unknownMessage(fleet, message)
  }
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
    if (change.type !== 'cluster') return
    this.#clusters ??= new Map(this.#fleet.clusters)
    if (change.op === 'put') this.#clusters.set(change.view.name, change.view)
    else {
      this.#clusters.delete(change.cluster)
      this.#removed.add(change.cluster)
    }
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
      events,
    }
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
