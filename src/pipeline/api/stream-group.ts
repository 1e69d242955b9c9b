import { createHash } from 'node:crypto'
import type { AccessView, Principal } from '#access'
import type { EventId } from '#events'
import type { RowType } from '#http'
import type { FleetEvent } from '#model'
import { changeTexts, Dirty, Held, hold, type Subscription } from './dirty.ts'
import { Frame } from './stream-frame.ts'
import type { FleetHistory, Past } from './stream-history.ts'
import type { StreamIds } from './stream-ids.ts'
import { maxStallMs } from './stream-limits.ts'
import type { RowsAsked } from './stream-query.ts'
import type { RowsFeed, RowsSnapshot } from './stream-rows.ts'
import type { StreamWriter } from './stream-writer.ts'
import { rowTypes, staleAt, type Views, type VisibleCluster } from './views.ts'

/** One snapshot serves all who come within this while nothing moved. */
const sameSnapshotMs = 250

/** How far one client is with the clusters, or with one query of rows. */
export interface Progress {
  /** in the history; undefined: it holds nothing, and begins anew */
  place: number | undefined
  /** of the feed, when it began */
  epoch: number
  /** what it is being told */
  snapshot: RowsSnapshot | undefined
  /** the next frame of it */
  next: number
  /** of rows besides it is still to be told what became of them */
  isAlsoDue: boolean
  /** what was told cannot be gone on from: the next beginning is the newest */
  isLost: boolean
  /** nothing more comes */
  isEnded: boolean
}

export const beginning = (place?: number, epoch = -1): Progress => ({
  place,
  epoch,
  snapshot: undefined,
  next: 0,
  isAlsoDue: true,
  isLost: false,
  isEnded: false,
})

/** One open stream. */
export interface Client {
  group: StreamGroup
  readonly principal: Principal
  readonly sessionId: string | undefined
  /** ms since the Unix epoch: when what the stream stands on ends */
  readonly endsAt: number
  /** when it is to come again, so that who asks is asked again */
  readonly closesAt: number
  readonly writer: StreamWriter
  /** when it has its heartbeats, of `heartbeatTurns` */
  readonly turn: number
  /** of the clusters; undefined: it did not ask for them */
  fleet: Progress | undefined
  /** by query */
  rows: Progress[]
  /** unsent bytes above which it is too slow */
  limit: number
  /** unsent bytes when it was looked at last, and since when they did not become less */
  waiting: number
  waitingSince: number
  /** what it was told last of the store */
  store: string
}

interface GroupParts {
  readonly history: FleetHistory
  readonly views: Views
  readonly ids: StreamIds
}

/** What is asked of a stream. */
export interface Asked {
  readonly clusters: ReadonlySet<string>
  readonly types: ReadonlySet<RowType>
  /** clusters themselves, and their events */
  readonly isFleet: boolean
  readonly rows: readonly RowsAsked[]
}

const fleetKey = ({ fingerprint }: AccessView, { clusters, types }: Asked): string =>
  JSON.stringify([fingerprint, [...clusters].sort(), [...types].sort()])

export const groupKey = (accessView: AccessView, asked: Asked): string =>
  JSON.stringify([fleetKey(accessView, asked), asked.isFleet, asked.rows.map(({ text }) => text)])

/** Part of ids: another question or another access view cannot be gone on from. */
const markOf = (key: string): string => createHash('sha256').update(key).digest('base64url').slice(0, 16)

/** Everyone who gets the same bytes: the same questions by the same access view. */
export class StreamGroup implements Subscription, Asked {
  readonly key: string
  readonly clients = new Set<Client>()
  /** those who hold all that was told */
  readonly ready = new Set<Client>()
  readonly clusters: ReadonlySet<string>
  readonly types: ReadonlySet<RowType>
  readonly isFleet: boolean
  readonly rows: readonly RowsAsked[]
  readonly feeds: readonly RowsFeed[]
  readonly held = new Held()
  /** since when it cannot be found out what they see: nothing is sent; undefined: it can */
  blindSince: number | undefined
  readonly #parts: GroupParts
  readonly #fleetMark: string
  readonly #rowsMarks: readonly string[]
  #accessView: AccessView
  /** as long as nothing moved */
  #snapshot: { readonly frame: Frame; readonly place: number; readonly at: number } | undefined

  constructor(parts: GroupParts, accessView: AccessView, asked: Asked, feeds: readonly RowsFeed[]) {
    this.#parts = parts
    this.#accessView = accessView
    this.clusters = asked.clusters
    this.types = asked.types
    this.isFleet = asked.isFleet
    this.rows = asked.rows
    this.feeds = feeds
    this.key = groupKey(accessView, asked)
    this.#fleetMark = markOf(fleetKey(accessView, asked))
    this.#rowsMarks = feeds.map(({ rowsKey }) => markOf(rowsKey))
  }

  get accessView(): AccessView {
    return this.#accessView
  }

  set accessView(accessView: AccessView) {
    this.#accessView = accessView
    for (const feed of this.feeds) feed.accessView = accessView
  }

  readonly see = (name: string): VisibleCluster | undefined => {
    const cluster = this.#parts.history.cluster(name)
    return cluster && this.#parts.views.of(this.accessView, cluster)
  }

  get isBlind(): boolean {
    return this.blindSince !== undefined
  }

  /** How far one is who comes with this id, part by part. */
  resumed(id: string): Pick<Client, 'fleet' | 'rows'> {
    const { ids, history } = this.#parts
    const known = ids.open(id)
    const place = known && history.placeOf(known.place)
    const marks = new Set(known?.mark.split(' '))
    return {
      fleet: this.isFleet ? beginning(marks.has(this.#fleetMark) ? place : undefined) : undefined,
      rows: this.feeds.map((feed, at) => {
        const isHeld = marks.has(this.#rowsMarks[at] ?? '') && place !== undefined && feed.goesOnFrom(place)
        return beginning(isHeld ? place : undefined, feed.epoch)
      }),
    }
  }

  /** @param place undefined: there is none to come back to */
  idOf(place: EventId | undefined): string | undefined {
    if (place === undefined) return undefined
    // Of a query that has ended nothing is held.
    const rows = this.#rowsMarks.filter((_, at) => !this.feeds[at]?.ended)
    return this.#parts.ids.seal({ place, mark: [...(this.isFleet ? [this.#fleetMark] : []), ...rows].join(' ') })
  }

  /** Ends what belongs to one moment. */
  synced(now: number): Frame {
    return new Frame('synced', `{"now":${now}}`, this.idOf(this.#parts.history.id))
  }

  /**
   * The frame that tells what moved, for all who hold what the group holds.
   * @param place undefined: the frame is none to resume at
   * @returns undefined where nothing of it is seen
   */
  changes(dirty: Dirty, now: number, place: EventId | undefined): Frame | undefined {
    const texts = changeTexts(dirty, this, now)
    if (texts.length === 0) return undefined
    this.#snapshot = undefined
    return this.#changeFrame(texts, now, place)
  }

  /**
   * The same for one who holds another place.
   * @returns 'anew' where that cannot be told; undefined where nothing of it is seen
   */
  missed(past: ReadonlyMap<string, Past>, now: number): Frame | 'anew' | undefined {
    const { history, views } = this.#parts
    const held = new Held()
    const subscription = { clusters: this.clusters, types: this.types, see: this.see, held }
    const dirty = new Dirty()
    const had = (name: string) => past.get(name) ?? (past.has(name) ? undefined : history.cluster(name))
    // That a cluster went stale has no number; it is said again.
    const stale = history.clusters().filter((cluster) => staleAt(cluster) <= now)
    for (const { name } of stale) dirty.age(name)
    for (const name of past.keys()) dirty.clusters.add(name)
    for (const name of dirty.clusters) {
      const before = had(name)
      if (before === 'unknown') return 'anew'
      const seen = before && views.of(this.accessView, before)
      if (seen) hold(subscription, seen)
      dirty.events.push(...eventsSince(before?.events, history.cluster(name)?.events ?? []))
    }
    const texts = changeTexts(dirty, subscription, now)
    return texts.length === 0 ? undefined : this.#changeFrame(texts, now, history.id)
  }

  #changeFrame(texts: readonly string[], now: number, place: EventId | undefined): Frame {
    return new Frame('change', `{"changes":[${texts.join(',')}],"now":${now}}`, this.#fleetId(place))
  }

  /** With rows the id stands at the end of what belongs together. */
  #fleetId(place: EventId | undefined): string | undefined {
    return this.feeds.length > 0 ? undefined : this.idOf(place)
  }

  /** The group holds what is seen now: for one that nobody read yet. */
  fill(): void {
    this.held.clear()
    for (const cluster of this.#seen()) hold(this, cluster)
  }

  /** Everything that is seen now. */
  snapshot(now: number): Frame {
    const { id, place } = this.#parts.history
    const known = this.#snapshot
    if (known?.place === place && now - known.at < sameSnapshotMs) return known.frame
    const clusters = this.#seen()
    const rows = clusters
      .filter(({ state }) => this.clusters.has(state.name))
      .flatMap((cluster) => rowTypes.filter((type) => this.types.has(type)).map((type) => rowsText(cluster, type)))
    const texts = clusters.map((cluster) => cluster.json(now)).join(',')
    const json = `{"clusters":[${texts}],"rows":[${rows.join(',')}],"now":${now}}`
    const frame = new Frame('snapshot', json, this.#fleetId(id))
    this.#snapshot = { frame, place, at: now }
    return frame
  }

  #seen(): VisibleCluster[] {
    return this.#parts.history.clusters().flatMap(({ name }) => this.see(name) ?? [])
  }
}

/** What is in the newer list and not in the older one, oldest first; both begin with the newest. */
function eventsSince(before: readonly FleetEvent[] | undefined, after: readonly FleetEvent[]): FleetEvent[] {
  const known = new Set(before?.map(eventKey))
  return after.filter((event) => !known.has(eventKey(event))).reverse()
}

const eventKey = ({ type, at, data }: FleetEvent): string => JSON.stringify([type, at, data])

function rowsText(cluster: VisibleCluster, type: RowType): string {
  const items = [...cluster.rows(type).values()].map(({ json }) => json).join(',')
  const name = JSON.stringify(cluster.state.name)
  return `{"type":"${type}","cluster":${name},"items":[${items}],"part":${JSON.stringify(cluster.part(type))}}`
}

/** How far it is, part by part. */
export const partsOf = ({ fleet, rows }: Client): readonly Progress[] => (fleet ? [fleet, ...rows] : rows)

/** It holds nothing. */
export const begun = ({ isFleet, feeds }: StreamGroup): Pick<Client, 'fleet' | 'rows'> => ({
  fleet: isFleet ? beginning() : undefined,
  rows: feeds.map(() => beginning()),
})

/** All who are ready were told that this query has ended. */
export const everyone = ({ ready }: StreamGroup, query: number): boolean => {
  for (const { rows } of ready) if (!rows[query]?.isEnded) return false
  return true
}

/**
 * Whether the time of a client is over, or it takes nothing.
 * @param fewBytes may wait for it, however long
 * @returns undefined: it goes on
 */
export function verdictOn(
  client: Client,
  now: number,
  fewBytes: number,
): 'session_ended' | 'over' | 'stalled' | undefined {
  if (now >= client.endsAt) return 'session_ended'
  if (now >= client.closesAt) return 'over'
  const { waitingBytes } = client.writer
  if (waitingBytes === 0 || waitingBytes < client.waiting) client.waitingSince = now
  client.waiting = waitingBytes
  return waitingBytes > fewBytes && now - client.waitingSince > maxStallMs ? 'stalled' : undefined
}
