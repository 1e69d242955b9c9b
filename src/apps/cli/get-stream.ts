import {
  applyRows,
  type Client,
  type ClusterView,
  type EventView,
  noRows,
  type RowsStreamQuery,
  type StreamedMessage,
  type StreamQuery,
} from '#http'
import type { Row } from './get-columns.ts'
import { heldRows, type KindRow } from './get-kinds.ts'
import { rowsAmong, rowsOf, type Wish } from './get-rows.ts'

/** What a stream tells of a list, message by message. */
export interface Followed<T> {
  readonly query: StreamQuery
  /** @returns whether the list is another since; `ended` where the stream cannot carry it, such as more rows than it takes */
  take(message: StreamedMessage): boolean | 'ended'
  /** The list as of the last `synced`. @throws what `get` throws */
  rows(): Promise<readonly T[]>
  /** between two lists, ms: where the stream tells that something moved, and not what */
  readonly leastMs: number
}

/** Rows of a kind. */
export function followKind(asked: RowsStreamQuery, names: readonly string[]): Followed<KindRow> {
  const held = noRows()
  return {
    ...{ query: { clusters: false, rows: [asked] }, leastMs: 0 },
    take(message) {
      if (message.kind === 'rowsEnd') return 'ended'
      if (message.kind === 'rows' || message.kind === 'rowsChange') applyRows(held, message)
      else return false
      return held.isWhole
    },
    rows: async () => heldRows(held, names),
  }
}

/** Everything else that `get` prints. @param types those there are, where types are asked for */
export function followNoun(client: Client, wish: Wish, types: readonly string[]): Followed<Row> {
  switch (wish.noun) {
    case 'clusters':
    case 'agents':
      return followClusters({ ...wish, noun: wish.noun })
    case 'events':
      return followEvents(client, wish)
    case 'types':
      return followTypes(client, wish, types)
  }
}

function followClusters(wish: Wish & { readonly noun: 'clusters' | 'agents' }): Followed<Row> {
  const clusters = new Map<string, ClusterView>()
  return {
    ...{ query: {}, leastMs: 0 },
    take(message) {
      if (message.kind === 'snapshot') {
        clusters.clear()
        for (const cluster of message.clusters) clusters.set(cluster.name, cluster)
        return true
      }
      if (message.kind !== 'change') return false
      for (const change of message.changes) {
        if (change.type !== 'cluster') continue
        if (change.op === 'put') clusters.set(change.view.name, change.view)
        else clusters.delete(change.cluster)
      }
      return true
    },
    rows: async () => rowsAmong(clusters.values(), wish),
  }
}

/** Those that were shown and are remembered, so that none is shown twice. */
const MOST_EVENTS = 10_000

/** A snapshot does not carry what happened before it: that is asked for. */
function followEvents(client: Client, wish: Wish): Followed<Row> {
  let known: readonly EventView[] = []
  let isAnew = true
  const isMeant = ({ cluster, type }: EventView): boolean =>
    (wish.clusters.length === 0 || wish.clusters.includes(cluster)) &&
    (wish.names.length === 0 || wish.names.includes(type))
  return {
    ...{ query: {}, leastMs: 0 },
    take(message) {
      if (message.kind === 'snapshot') {
        isAnew = true
        return true
      }
      if (message.kind !== 'change') return false
      const events = message.changes.flatMap((change) => (change.op === 'event' ? change.view : [])).filter(isMeant)
      known = [...known, ...events].slice(-MOST_EVENTS)
      return events.length > 0
    },
    async rows() {
      if (isAnew) {
        const { rows } = await rowsOf(client, { ...wish, names: [] }, Date.now())
        known = (rows as readonly EventView[]).filter(isMeant) // of this noun
        isAnew = false
      }
      return known
    },
  }
}

/** A stream takes so many queries. */
const MOST_TYPES = 16

/** That something of a type moved is told with its first row; the list is read again then. */
function followTypes(client: Client, wish: Wish, types: readonly string[]): Followed<Row> {
  return {
    query: { rows: types.slice(0, MOST_TYPES).map((type) => ({ type, limit: 1 })) },
    leastMs: 1000,
    take: ({ kind }) => kind === 'snapshot' || kind === 'change' || kind === 'rowsChange',
    rows: async () => (await rowsOf(client, wish, Date.now())).rows,
  }
}
