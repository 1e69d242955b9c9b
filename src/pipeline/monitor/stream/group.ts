import { createHash } from 'node:crypto'
import type { AccessView } from '#access'
import type { ClusterState } from '#model'
import type { Steps } from '#runtime'
import type { Kind } from '../pictures.ts'
import type { Feed, Form } from './feed.ts'
import { Body, Frame } from './frame.ts'

/** What a stream is about. */
export interface Topic {
  /** names it: the same words mean the same clusters and kinds */
  readonly name: string
  /** undefined: the stream ends, as the cluster is no longer there for the caller */
  readonly clusters: (view: AccessView) => readonly (ClusterState | undefined)[] | undefined
  readonly kinds: readonly (Kind | 'summary')[]
  readonly form: Form
}

/** Makes what a group is told. */
export interface GroupParts {
  /** names this process; begins every id */
  readonly epoch: string
  feed(cluster: ClusterState | undefined, kind: Kind, view: AccessView): Feed
  summary(clusters: readonly ClusterState[], view: AccessView): Steps<Body>
  status(cluster: ClusterState, kinds: Topic['kinds']): Body
}

/** One cluster as it is followed by differences. */
export interface Followed {
  readonly cluster: ClusterState
  readonly feeds: readonly Feed[]
  /** undefined: the cluster is not there for the caller, who is told of nothing in it */
  readonly status: Body | undefined
}

/** How far a stream of differences is, and what it holds there. */
export interface Position {
  readonly tick: number
  readonly followed: readonly Followed[]
}

/** The newest snapshots, and what of them is new to a stream. */
interface News {
  readonly all: readonly Frame[]
  readonly news: readonly Frame[]
}

/** What leads to a position. */
interface Led {
  readonly position: Position
  readonly frames: readonly Frame[]
}

/** All streams that are about the same with the same rights. What they are told is made once in a tick, however many they are. */
export class StreamGroup {
  readonly topic: Topic
  readonly fingerprint: string
  /** begins the ids of differences: those of another view or topic are no position here */
  readonly epoch: string
  readonly #parts: GroupParts
  #tick = 0
  #view: AccessView | undefined
  #now = 0
  #clusters: readonly (ClusterState | undefined)[] | undefined
  #snapshots: readonly Frame[] = []
  #snapshotsAt = 0
  #news = new Map<readonly Frame[], readonly Frame[]>()
  #position: Position = { tick: 0, followed: [] }
  #steps = new Map<Position | undefined, readonly Frame[]>()

  constructor(topic: Topic, fingerprint: string, parts: GroupParts) {
    this.topic = topic
    this.fingerprint = fingerprint
    this.#parts = parts
    const hash = createHash('sha256').update(JSON.stringify([fingerprint, topic.name, topic.kinds]))
    this.epoch = `${parts.epoch}${hash.digest('hex').slice(0, 12)}`
  }

  /** the tick that it was made for last */
  get tick(): number {
    return this.#tick
  }

  /** Looks at the clusters once in a tick. @returns undefined: there is nothing more to tell these streams */
  renew(view: AccessView, tick: number, now: number): readonly (ClusterState | undefined)[] | undefined {
    if (this.#tick === tick) return this.#clusters
    this.#tick = tick
    this.#now = now
    this.#view = view
    this.#clusters = this.topic.clusters(view)
    return this.#clusters
  }

  /** The newest whole snapshots. @param told those that a stream was sent before */
  *news(told: readonly Frame[]): Steps<News> {
    if (this.#snapshotsAt !== this.#tick) yield* this.#renewSnapshots()
    return this.#newsSince(told)
  }

  /** The same; undefined: they have to be made first. */
  knownNews(told: readonly Frame[]): News | undefined {
    return this.#snapshotsAt === this.#tick ? this.#newsSince(told) : undefined
  }

  #newsSince(told: readonly Frame[]): News {
    const all = this.#snapshots
    let news = told === all ? [] : this.#news.get(told)
    if (!news) {
      const known = new Set(told)
      news = all.filter((frame) => !known.has(frame))
      this.#news.set(told, news)
    }
    return { all, news }
  }

  /**
   * What leads from a position on to this tick, as differences where that can be.
   * @param position undefined: the stream holds nothing
   * @param resumeFrom the tick of what a client that comes back holds already
   */
  *steps(position: Position | undefined, resumeFrom?: number): Steps<Led> {
    if (this.#position.tick !== this.#tick) yield* this.#renewPosition()
    const known = resumeFrom === undefined ? this.#steps.get(position) : undefined
    const frames = known ?? this.#framesOf(yield* this.#bodiesAfter(position, resumeFrom))
    if (resumeFrom === undefined) this.#steps.set(position, frames)
    return { position: this.#position, frames }
  }

  /** The same; undefined: it has to be made first. */
  knownSteps(position: Position | undefined): Led | undefined {
    const frames = this.#position.tick === this.#tick ? this.#steps.get(position) : undefined
    return frames && { position: this.#position, frames }
  }

  *#renewPosition(): Steps<void> {
    this.#steps.clear()
    const [view, parts, { kinds }] = [this.#view as AccessView, this.#parts, this.topic]
    const followed: Followed[] = []
    for (const cluster of this.#clusters ?? []) {
      yield
      if (!cluster) continue
      const feeds = kinds.flatMap((kind) => (kind === 'summary' ? [] : [parts.feed(cluster, kind, view)]))
      for (const feed of feeds) yield* feed.advance(cluster, view, this.#tick, this.#now)
      followed.push({ cluster, feeds, status: view.canSee(cluster) ? parts.status(cluster, kinds) : undefined })
    }
    this.#position = { tick: this.#tick, followed }
  }

  *#bodiesAfter(position: Position | undefined, resumeFrom: number | undefined): Steps<readonly Body[]> {
    const bodies: Body[] = []
    const held = new Map(position?.followed.map((one) => [one.cluster.name, one]))
    for (const { cluster, feeds, status } of this.#position.followed) {
      const before = held.get(cluster.name)
      held.delete(cluster.name)
      for (const feed of feeds) {
        const from = before?.feeds.includes(feed) ? position?.tick : resumeFrom
        if (from !== undefined && feed.covers(from)) bodies.push(...feed.after(from))
        else bodies.push(yield* feed.snapshot(cluster))
      }
      if (status && status.data !== before?.status?.data) bodies.push(status)
    }
    for (const name of held.keys()) bodies.push(removed(name))
    return bodies
  }

  /** What comes before the last has the id of where the client was: cut off between them, it is told all of it again. */
  #framesOf(bodies: readonly Body[]): readonly Frame[] {
    const idAt = (at: number) => `${this.epoch}.${at === bodies.length - 1 ? this.#tick : this.#tick - 1}`
    return bodies.map((body, at) => new Frame(idAt(at), body))
  }

  *#renewSnapshots(): Steps<void> {
    this.#snapshotsAt = this.#tick
    this.#news.clear()
    const before = new Map(this.#snapshots.map((frame) => [frame.slot, frame]))
    const frames: Frame[] = []
    const add = (slot: string, body: Body) => {
      const known = before.get(slot)
      frames.push(known?.body === body ? known : new Frame(`${this.#parts.epoch}.${this.#tick}`, body, slot))
    }
    const [view, clusters, { kinds, form }] = [this.#view as AccessView, this.#clusters ?? [], this.topic]
    for (const kind of kinds) {
      if (kind === 'summary') {
        const known = clusters.filter((cluster) => cluster !== undefined)
        add('summary', yield* this.#parts.summary(known, view))
        continue
      }
      for (const cluster of clusters) {
        yield
        const feed = this.#parts.feed(cluster, kind, view)
        add(`${kind} ${cluster?.name ?? ''}`, yield* feed.body(cluster, view, form, this.#now))
      }
    }
    const isSame =
      frames.length === this.#snapshots.length && frames.every((frame, at) => frame === this.#snapshots[at])
    if (!isSame) this.#snapshots = frames
  }
}

/** Everything the client holds of this cluster is void. */
const removed = (cluster: string): Body =>
  new Body(JSON.stringify({ cluster, status: 'removed', stale: true, lastSeen: null }), 'status')
