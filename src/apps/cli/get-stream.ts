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
import { heldRows, type KindRow, unreadNotes } from './get-kinds.ts'
import { rowsAmong, rowsOf, type Wish } from './get-rows.ts'

/** What a stream tells of a list, message by message. */
export interface Followed<T> {
  readonly query: StreamQuery
  /**
   * @returns whether the list is another since; `ended` where the stream cannot carry it, such as more rows than it takes; `anew`
   * where `query` is another by now
   */
  take(message: StreamedMessage): boolean | 'ended' | 'anew'
  /** The list as of the last `synced`. @throws what `get` throws */
  rows(): Promise<readonly T[]>
  /** why what is held is not of now, by cluster ('': of the fleet) */
  unread?(): ReadonlyMap<string, string>
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
    unread: () => unreadNotes(asked.type, held),
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

/** A stream tells events of so many clusters. */
const MOST_CLUSTERS = 32

/** A snapshot does not carry what happened before it: that is asked for. */
function followEvents(client: Client, wish: Wish): Followed<Row> {
  const clusters = new Set<string>()
  let known: readonly EventView[] = []
  let isAnew = true
  const isMeant = ({ type }: EventView): boolean => wish.names.length === 0 || wish.names.includes(type)
  /** @returns whether the stream does not tell of all of them yet */
  const add = (names: readonly string[]): boolean => {
    const before = clusters.size
    for (const name of names) if (wish.clusters.length === 0 || wish.clusters.includes(name)) clusters.add(name)
    return clusters.size > before
  }
  return {
    get query() {
      // Of rows that come along the type that has the fewest.
      return { cluster: [...clusters], type: ['clusterOperator' as const] }
    },
    leastMs: 0,
    take(message) {
      if (message.kind === 'snapshot') {
        isAnew = true
        const isMore = add(message.clusters.map(({ name }) => name))
        return clusters.size > MOST_CLUSTERS ? 'ended' : isMore ? 'anew' : true
      }
      if (message.kind !== 'change') return false
      const { changes } = message
      const put = changes.flatMap((one) => (one.type === 'cluster' && one.op === 'put' ? one.view.name : []))
      if (add(put)) return clusters.size > MOST_CLUSTERS ? 'ended' : 'anew'
      const events = changes.flatMap((one) => (one.op === 'event' ? one.view : [])).filter(isMeant)
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
