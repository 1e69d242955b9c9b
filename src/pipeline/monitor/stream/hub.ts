import { randomBytes } from 'node:crypto'
import type { AccessView } from '#access'
import { type Clock, type ClusterState, seconds } from '#model'
import { inTurns, type Metrics, type Steps, type Turns } from '#runtime'
import type { StateReader } from '#state'
import { rfc3339 } from '../documents.ts'
import { jsonText } from '../json.ts'
import type { Kind, Pictures } from '../pictures.ts'
import type { Tenancy } from '../tenancy.ts'
import type { Caller } from '../tokens.ts'
import { Client, type Sink } from './client.ts'
import type { DeadBand } from './delta.ts'
import { Feed, type Window } from './feed.ts'
import { Body, Frame } from './frame.ts'
import { type Position, StreamGroup, type Topic } from './group.ts'

export interface Opening {
  readonly caller: Caller
  readonly topic: Topic
  /** 2: snapshots, differences, status and end; else whole snapshots */
  readonly protocol: 1 | 2
  /** of who comes back */
  readonly lastEventId?: string | undefined
}

export interface StreamHubOptions {
  readonly state: StateReader
  readonly tenancy: Tenancy
  readonly pictures: Pictures
  readonly refreshMs: number
  readonly band: DeadBand
  readonly maxStreams: number
  /** in which all is made: however many clusters and streams there are, others are heard meanwhile */
  readonly turns: Turns
  readonly clock: Clock
  readonly metrics: Metrics
}

/** One that was opened. */
export interface OpenStream {
  /** its first frames were sent, or it ended before; rejects where they could not be made */
  readonly begun: Promise<void>
  /** for a client that went away */
  readonly end: () => void
}

interface Stream {
  readonly caller: Caller
  readonly protocol: 1 | 2
  readonly client: Client
  group: StreamGroup
  /** whole snapshots that it was sent last */
  told: readonly Frame[]
  /** of protocol 2 */
  position: Position | undefined
  resumeFrom: number | undefined
}

const NOTHING: readonly Frame[] = []

/** What takes longer is sent in steps. */
const FEW_FRAMES = 4
/** Streams of which each takes some µs. */
const SERVED_AT_ONCE = 16
const BEAT_MS = seconds(15)
/** Of all streams that may be open, those of one user at most. */
const CALLER_SHARE = 0.25
/** A feed that nobody follows is kept for who comes back. */
const FEED_IDLE_MS = 600_000

/** Why a stream ends, and when to come back. */
export type EndReason = 'token expired' | 'access changed' | 'server going down' | 'too slow'

/** All open streams. `tick` tells everybody what is new to them; what two see alike is made once. */
export class StreamHub implements AsyncDisposable {
  readonly #options: StreamHubOptions
  readonly #epoch = randomBytes(4).toString('hex')
  readonly #streams = new Set<Stream>()
  /** open streams by user */
  readonly #perUser = new Map<string, number>()
  readonly #groups = new Map<string, StreamGroup>()
  readonly #feeds = new Map<string, Feed>()
  readonly #windows = new Map<string, Window>()
  readonly #summaries = new Map<string, { readonly body: Body; readonly at: number }>()
  readonly #counts: ReturnType<typeof countsOf>
  readonly #closing = new AbortController()
  #last: Promise<unknown> = Promise.resolve()
  #tick = 1
  #beatAt: number

  constructor(options: StreamHubOptions) {
    this.#options = options
    this.#counts = countsOf(options.metrics, () => this.#streams.size)
    this.#beatAt = options.clock.now()
  }

  /** Whether there is room for one more, and not all of it is this caller's. */
  hasRoom({ userId }: Caller): boolean {
    const { maxStreams } = this.#options
    if (this.#streams.size >= maxStreams) return false
    return (this.#perUser.get(userId) ?? 0) < Math.max(1, maxStreams * CALLER_SHARE)
  }

  /** Holds a place from now on; the first frames are sent as soon as they are made. */
  open({ caller, topic, protocol, lastEventId }: Opening, sink: Sink): OpenStream {
    const { clock, tenancy, state } = this.#options
    const view = tenancy.viewOf(caller, state.clusters())
    const group = this.#groupOf(topic, view)
    const resumeFrom = this.#tickOf(lastEventId, group)
    const client = new Client(sink, clock)
    const stream: Stream = { caller, protocol, client, group, told: NOTHING, position: undefined, resumeFrom }
    this.#streams.add(stream)
    const { userId } = caller
    this.#perUser.set(userId, (this.#perUser.get(userId) ?? 0) + 1)
    return { begun: this.#inOrder(this.#begin(stream)), end: () => this.#forget(stream) }
  }

  /** Tells everybody what is new to them. @returns the clusters that streams are about */
  async tick(): Promise<ReadonlySet<string>> {
    return (await this.#inOrder(this.#tellAll())) ?? new Set()
  }

  /** One after the other: two at once would make the same twice, and mix two moments. @returns undefined: all ended meanwhile */
  #inOrder<T>(steps: Steps<T>): Promise<T | undefined> {
    const { turns } = this.#options
    const done = this.#last.then(() => inTurns(steps, turns, this.#closing.signal)).finally(() => this.#counts.settle())
    this.#last = done.catch(() => undefined)
    return done
  }

  *#begin(stream: Stream): Steps<void> {
    if (!this.#streams.has(stream)) return
    const { tenancy, state } = this.#options
    if (this.#renew(stream, tenancy.viewOf(stream.caller, state.clusters()))) yield* this.#serve(stream)
  }

  *#tellAll(): Steps<ReadonlySet<string>> {
    const { clock, state, tenancy } = this.#options
    const now = clock.now()
    this.#tick++
    const clusters = state.clusters()
    // By user; undefined: any administrator.
    const views = new Map<string | undefined, AccessView>()
    const looked = new Set<string>()
    const seen = new Set<StreamGroup>()
    let served = 0
    for (const stream of this.#streams) {
      if (stream.caller.expiresAt <= now) {
        this.#end(stream, 'token expired')
        continue
      }
      const who = stream.caller.isAdmin ? undefined : stream.caller.userId
      const view = views.get(who) ?? tenancy.viewOf(stream.caller, clusters)
      views.set(who, view)
      const shown = this.#renew(stream, view)
      if (!shown) continue
      const { group } = stream
      if (!seen.has(group)) for (const cluster of shown) if (cluster) looked.add(cluster.name)
      seen.add(group)
      const frames = this.#atHand(stream)
      if (frames) for (const frame of frames) this.#send(stream, frame)
      else yield* this.#serve(stream)
      served += 1
      if (served % SERVED_AT_ONCE === 0) yield
    }
    if (Math.abs(now - this.#beatAt) >= BEAT_MS) yield* this.#beat(now)
    return looked
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stream of this.#streams) this.#end(stream, 'server going down')
    this.#closing.abort()
    await this.#last
  }

  /** @returns the clusters that it is about; undefined: it ended, as there are none any more */
  #renew(stream: Stream, view: AccessView): readonly (ClusterState | undefined)[] | undefined {
    if (stream.group.fingerprint !== view.fingerprint) this.#enter(stream, view)
    const clusters = stream.group.renew(view, this.#tick, this.#options.clock.now())
    if (!clusters) this.#end(stream, 'access changed')
    return clusters
  }

  /** The few frames that are new to it, where nothing has to be made: thousands are told the same. */
  #atHand(stream: Stream): readonly Frame[] | undefined {
    const { group, protocol, client, position, resumeFrom } = stream
    if (protocol === 1) {
      const known = group.knownNews(stream.told)
      if (!known || known.news.length > FEW_FRAMES) return undefined
      stream.told = known.all
      return known.news
    }
    if (client.isBehind || resumeFrom !== undefined) return undefined
    const known = group.knownSteps(position)
    if (!known || known.frames.length > FEW_FRAMES) return undefined
    stream.position = known.position
    return known.frames
  }

  *#serve(stream: Stream): Steps<void> {
    if (stream.protocol === 2) yield* this.#serveDifferences(stream)
    else yield* this.#serveSnapshots(stream)
  }

  *#serveSnapshots(stream: Stream): Steps<void> {
    const { all, news } = yield* stream.group.news(stream.told)
    stream.told = all
    yield* this.#sendAll(stream, news)
  }

  *#serveDifferences(stream: Stream): Steps<void> {
    if (stream.client.isBehind) {
      if (!stream.client.isReady) return
      stream.client.isBehind = false
      stream.position = undefined
      stream.resumeFrom = undefined
    }
    const { position, frames } = yield* stream.group.steps(stream.position, stream.resumeFrom)
    stream.position = position
    stream.resumeFrom = undefined
    yield* this.#sendAll(stream, frames)
  }

  *#sendAll(stream: Stream, frames: readonly Frame[]): Steps<void> {
    for (const frame of frames) {
      // It may have ended meanwhile.
      if (!this.#streams.has(stream)) return
      this.#send(stream, frame)
      yield
    }
  }

  /** Another view than before: what the client holds does not count. */
  #enter(stream: Stream, view: AccessView): void {
    stream.group = this.#groupOf(stream.group.topic, view)
    stream.position = undefined
    stream.resumeFrom = undefined
  }

  /** Where one is who comes back to the very same topic and view. */
  #tickOf(lastEventId: string | undefined, { epoch }: StreamGroup): number | undefined {
    const [before, tick] = lastEventId?.split('.') ?? []
    const isMine = before === epoch && /^\d{1,15}$/.test(tick ?? '')
    return isMine && Number(tick) <= this.#tick ? Number(tick) : undefined
  }

  #groupOf(topic: Topic, { fingerprint }: AccessView): StreamGroup {
    const key = JSON.stringify([topic.name, topic.kinds, topic.form, fingerprint])
    const known = this.#groups.get(key)
    if (known) return known
    const group = new StreamGroup(topic, fingerprint, {
      epoch: this.#epoch,
      feed: (cluster, kind, view) => this.#feed(cluster, kind, view),
      summary: (clusters, view) => this.#summary(topic, clusters, view),
      status: (cluster, kinds) => this.#statusOf(cluster, kinds),
    })
    this.#groups.set(key, group)
    return group
  }

  /** Made no more often than at the refresh: its ages move all the time. */
  *#summary(topic: Topic, clusters: readonly ClusterState[], view: AccessView): Steps<Body> {
    const key = `${topic.name} ${view.fingerprint}`
    const { clock, refreshMs, pictures } = this.#options
    const now = clock.now()
    const known = this.#summaries.get(key)
    if (known && Math.abs(now - known.at) < refreshMs) return known.body
    const body = new Body(yield* jsonText(pictures.summary(clusters, view)))
    this.#summaries.set(key, { body, at: now })
    return body
  }

  #statusOf(cluster: ClusterState, kinds: Topic['kinds']): Body {
    const { pictures } = this.#options
    const stale = kinds.some((kind) => kind !== 'summary' && pictures.isStale(cluster, kind))
    // Of what was read, not of the last try.
    const seenAt = cluster.parts.node?.freshness?.receivedAt
    return new Body(
      JSON.stringify({
        cluster: cluster.name,
        status: cluster.status.health,
        stale,
        lastSeen: seenAt === undefined ? null : rfc3339(seenAt),
      }),
      'status',
    )
  }

  #send(stream: Stream, frame: Frame): void {
    this.#counts.frame(frame.body.data.length)
    const { client } = stream
    const before = client.dropped
    client.send(frame)
    if (client.dropped > before) this.#counts.dropped(client.dropped - before)
  }

  #feed(cluster: ClusterState | undefined, kind: Kind, view: AccessView): Feed {
    const name = cluster?.name ?? ''
    const key = `${kind} ${name} ${view.fingerprint}`
    const known = this.#feeds.get(key)
    if (known) return known
    const { pictures, refreshMs, band } = this.#options
    const window = this.#windows.get(name) ?? { bytes: 0 }
    this.#windows.set(name, window)
    const feed = new Feed({ pictures, kind, refreshMs, band, window })
    this.#feeds.set(key, feed)
    return feed
  }

  *#beat(now: number): Steps<void> {
    this.#beatAt = now
    for (const stream of this.#streams) {
      if (!stream.client.beat()) this.#end(stream, 'too slow')
      yield
    }
    for (const [key, feed] of this.#feeds) {
      if (now - feed.usedAt <= FEED_IDLE_MS) continue
      feed.close()
      this.#feeds.delete(key)
    }
    for (const [key, group] of this.#groups) if (group.tick < this.#tick) this.#groups.delete(key)
    for (const [key, { at }] of this.#summaries) if (now - at > FEED_IDLE_MS) this.#summaries.delete(key)
  }

  #end(stream: Stream, reason: EndReason): void {
    if (!this.#streams.has(stream)) return
    this.#forget(stream)
    const retryMs = reason === 'token expired' ? null : 2000 + Math.round(Math.random() * 8000)
    const body = new Body(JSON.stringify({ reason, retryMs }), 'end')
    stream.client.end(stream.protocol === 2 ? new Frame(`${stream.group.epoch}.${this.#tick}`, body) : undefined)
  }

  #forget(stream: Stream): void {
    if (!this.#streams.delete(stream)) return
    const { userId } = stream.caller
    const left = (this.#perUser.get(userId) ?? 1) - 1
    if (left > 0) this.#perUser.set(userId, left)
    else this.#perUser.delete(userId)
  }
}

function countsOf(metrics: Metrics, open: () => number) {
  metrics.gauge('clusterpulse_monitor_streams', 'Open streams of the Cluster Monitor interface.', [], (gauge) =>
    gauge.set(open()),
  )
  const frames = metrics.counter(
    'clusterpulse_monitor_frames_total',
    'Frames sent to streams of the Cluster Monitor interface.',
  )
  const bytes = metrics.counter('clusterpulse_monitor_frame_bytes_total', 'Bytes of those frames.')
  const dropped = metrics.counter(
    'clusterpulse_monitor_frames_dropped_total',
    'Frames that slow clients were not sent because newer ones came.',
  )
  let [newFrames, newBytes] = [0, 0]
  return {
    // Of thousands in a row each would be as dear as half of what makes it.
    frame: (length: number) => {
      newFrames += 1
      newBytes += length
    },
    /** Counts what was sent since the last time. */
    settle: () => {
      frames.inc(newFrames)
      bytes.inc(newBytes)
      newFrames = 0
      newBytes = 0
    },
    dropped: (count: number) => dropped.inc(count),
  }
}
