import type { AccessView } from '#access'
import type { Attention } from '#attention'
import type { Clock } from '#model'
import type { ClusterSets } from './cluster-sets.ts'
import { type Asked, type Client, groupKey, StreamGroup } from './stream-group.ts'
import type { FleetHistory } from './stream-history.ts'
import type { StreamIds } from './stream-ids.ts'
import type { RowsAsked } from './stream-query.ts'
import { feedKey, RowsFeed } from './stream-rows.ts'
import type { Views } from './views.ts'
import type { VisibleTypes } from './visible-types.ts'

interface GroupsParts {
  readonly history: FleetHistory
  readonly ids: StreamIds
  readonly views: Views
  readonly types: VisibleTypes
  readonly sets: ClusterSets
  readonly clock: Clock
  /** told of clusters whose usage streams show, as long as they do */
  readonly attention?: Pick<Attention, 'look'>
}

/** Who is told the same bytes, and the queries of rows that several may share: there as long as somebody asks. */
export class StreamGroups implements Iterable<StreamGroup> {
  readonly #parts: GroupsParts
  readonly #groups = new Map<string, StreamGroup>()
  readonly #feeds = new Map<string, RowsFeed>()

  constructor(parts: GroupsParts) {
    this.#parts = parts
  }

  [Symbol.iterator](): Iterator<StreamGroup> {
    return this.#groups.values()
  }

  get feeds(): Iterable<RowsFeed> {
    return this.#feeds.values()
  }

  clients(): Client[] {
    return [...this.#groups.values()].flatMap(({ clients }) => [...clients])
  }

  leave(group: StreamGroup, client: Client): void {
    group.clients.delete(client)
    group.ready.delete(client)
    if (group.clients.size > 0 || this.#groups.get(group.key) !== group) return
    this.#groups.delete(group.key)
    for (const feed of group.feeds) {
      feed.users -= 1
      if (feed.users === 0) this.#feeds.delete(feed.key)
    }
  }

  /** Whoever shows the usage of a cluster looks at it again. */
  look(feeds: Iterable<RowsFeed> = this.#feeds.values()): void {
    const { attention } = this.#parts
    for (const feed of attention ? feeds : []) for (const cluster of feed.looked()) attention?.look(cluster)
  }

  of(accessView: AccessView, asked: Asked): StreamGroup {
    const known = this.#groups.get(groupKey(accessView, asked))
    if (known) {
      known.accessView = accessView
      return known
    }
    const feeds = asked.rows.map((rows) => this.#feedOf(accessView, rows))
    const made = new StreamGroup(this.#parts, accessView, asked, feeds)
    this.#groups.set(made.key, made)
    return made
  }

  #feedOf(accessView: AccessView, asked: RowsAsked): RowsFeed {
    const key = feedKey(accessView, asked)
    let feed = this.#feeds.get(key)
    if (!feed) {
      const { types, sets, history, clock } = this.#parts
      feed = new RowsFeed({ types, sets, history, now: () => clock.now() }, accessView, asked)
      this.#feeds.set(key, feed)
      this.look([feed])
    }
    feed.users += 1
    return feed
  }
}
