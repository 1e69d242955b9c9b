import { createHash, randomBytes } from 'node:crypto'
import type { AccessView } from '#access'
import { type Clock, type ClusterState, seconds } from '#model'
import type { Metrics } from '#runtime'
import type { StateReader } from '#state'
import { rfc3339 } from '../documents.ts'
import type { Kind, Pictures } from '../pictures.ts'
import type { Tenancy } from '../tenancy.ts'
import type { Caller } from '../tokens.ts'
import { Client, type Sink } from './client.ts'
import type { DeadBand } from './delta.ts'
import { Feed, type Form, type Window } from './feed.ts'
import { Body, type Frame } from './frame.ts'

/** What a stream is about. */
export interface Topic {
  /** names it: the same words mean the same clusters and kinds */
  readonly name: string
  /** undefined: the stream ends, as the cluster is no longer there for the caller */
  readonly clusters: (view: AccessView) => readonly (ClusterState | undefined)[] | undefined
  readonly kinds: readonly (Kind | 'summary')[]
  readonly form: Form
}

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
  readonly clock: Clock
  readonly metrics: Metrics
}

interface Stream extends Opening {
  readonly client: Client
  fingerprint: string
  /** of protocol 2: where in each feed it is */
  readonly positions: Map<Feed, number>
  resumeFrom: number | undefined
  /** by slot, what it was sent last */
  readonly sent: Map<string, Body>
  readonly named: Set<string>
}

const BEAT_MS = seconds(15)
/** Of all streams that may be open, those of one user at most. */
const CALLER_SHARE = 0.25
/** A feed that nobody follows is kept for who comes back. */
const FEED_IDLE_MS = 600_000
const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Why a stream ends, and when to come back. */
export type EndReason = 'token expired' | 'access changed' | 'server going down' | 'too slow'

/** All open streams. `tick` tells everybody what is new to them; what two see alike is made once. */
export class StreamHub implements AsyncDisposable {
  readonly #options: StreamHubOptions
  readonly #epoch = randomBytes(4).toString('hex')
  readonly #streams = new Map<Stream, NodeJS.Timeout | undefined>()
  readonly #feeds = new Map<string, Feed>()
  readonly #windows = new Map<string, Window>()
  readonly #summaries = new Map<string, { readonly body: Body; readonly at: number }>()
  readonly #counts: ReturnType<typeof countsOf>
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
    let own = 0
    for (const { caller } of this.#streams.keys()) if (caller.userId === userId) own++
    return own < Math.max(1, maxStreams * CALLER_SHARE)
  }

  /** Sends the first frames at once. @returns what ends it, for a client that went away */
  open(opening: Opening, sink: Sink): () => void {
    const { clock } = this.#options
    const stream: Stream = {
      ...opening,
      client: new Client(sink, clock),
      fingerprint: '',
      positions: new Map(),
      resumeFrom: undefined,
      sent: new Map(),
      named: new Set(),
    }
    const { expiresAt } = opening.caller
    const restMs = expiresAt - clock.now()
    const timer =
      restMs < LONGEST_TIMER_MS ? setTimeout(() => this.#end(stream, 'token expired'), Math.max(0, restMs)) : undefined
    this.#streams.set(stream, timer)
    this.#serve(stream, this.#options.tenancy.viewOf(stream.caller, this.#options.state.clusters()))
    return () => this.#forget(stream)
  }

  /** Tells everybody what is new to them. @returns the clusters that streams are about */
  tick(): ReadonlySet<string> {
    const { clock, state, tenancy } = this.#options
    const now = clock.now()
    this.#tick++
    const clusters = state.clusters()
    const views = new Map<string, AccessView>()
    const looked = new Set<string>()
    for (const stream of this.#streams.keys()) {
      const who = stream.caller.isAdmin ? '' : `u${stream.caller.userId}`
      const view = views.get(who) ?? tenancy.viewOf(stream.caller, clusters)
      views.set(who, view)
      for (const cluster of this.#serve(stream, view)) if (cluster) looked.add(cluster.name)
    }
    if (Math.abs(now - this.#beatAt) >= BEAT_MS) this.#beat(now)
    return looked
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const stream of [...this.#streams.keys()]) this.#end(stream, 'server going down')
  }

  #serve(stream: Stream, view: AccessView): readonly (ClusterState | undefined)[] {
    const clusters = stream.topic.clusters(view)
    if (!clusters) {
      this.#end(stream, 'access changed')
      return []
    }
    if (stream.fingerprint !== view.fingerprint) this.#enter(stream, view)
    if (stream.protocol === 2) this.#serveDifferences(stream, clusters, view)
    else this.#serveSnapshots(stream, clusters, view)
    return clusters
  }

  #serveSnapshots(stream: Stream, clusters: readonly (ClusterState | undefined)[], view: AccessView): void {
    const { clock, pictures } = this.#options
    for (const kind of stream.topic.kinds) {
      if (kind === 'summary') {
        const known = clusters.filter((cluster) => cluster !== undefined)
        this.#put(stream, 'summary', this.#summary(stream, known, view, pictures))
      } else {
        for (const cluster of clusters) {
          const body = this.#feed(cluster, kind, view).body(cluster, view, stream.topic.form, clock.now())
          this.#put(stream, `${kind} ${cluster?.name ?? ''}`, body)
        }
      }
    }
  }

  /** Made no more often than at the refresh: its ages move all the time. */
  #summary(stream: Stream, clusters: readonly ClusterState[], view: AccessView, pictures: Pictures): Body {
    const key = `${stream.topic.name} ${view.fingerprint}`
    const now = this.#options.clock.now()
    const known = this.#summaries.get(key)
    if (known && Math.abs(now - known.at) < this.#options.refreshMs) return known.body
    const body = new Body(JSON.stringify(pictures.summary(clusters, view)))
    this.#summaries.set(key, { body, at: now })
    return body
  }
  #serveDifferences(stream: Stream, clusters: readonly (ClusterState | undefined)[], view: AccessView): void {
    const { clock } = this.#options
    if (stream.client.isBehind) {
      if (!stream.client.isReady) return
      stream.client.isBehind = false
      stream.positions.clear()
      stream.resumeFrom = undefined
    }
    const bodies: Body[] = []
    const here = new Set<string>()
    for (const cluster of clusters) {
      if (!cluster) continue
      here.add(cluster.name)
      for (const kind of stream.topic.kinds) {
        if (kind === 'summary') continue
        const feed = this.#feed(cluster, kind, view)
        feed.advance(cluster, view, this.#tick, clock.now())
        const from = stream.positions.get(feed) ?? stream.resumeFrom
        if (from !== undefined && feed.covers(from)) bodies.push(...feed.after(from))
        else bodies.push(feed.snapshot(cluster))
        stream.positions.set(feed, this.#tick)
      }
      if (!view.canSee(cluster)) continue
      const status = this.#statusOf(cluster, stream.topic.kinds)
      if (stream.sent.get(cluster.name)?.data !== status.data) bodies.push(status)
      stream.sent.set(cluster.name, status)
    }
    for (const name of stream.named) if (!here.has(name)) bodies.push(removed(name))
    stream.named.clear()
    for (const name of here) stream.named.add(name)
    stream.resumeFrom = undefined
    // What comes before the last has the id of where the client was: cut off between them, it is told all of it again.
    const epoch = this.#epochOf(stream)
    bodies.forEach((body, at) => {
      const isLast = at === bodies.length - 1
      this.#send(stream, { id: `${epoch}.${isLast ? this.#tick : this.#tick - 1}`, body })
    })
  }

  /** Another view than before, or the first: what the client holds counts only where it comes back to the very same. */
  #enter(stream: Stream, view: AccessView): void {
    const isFirst = stream.fingerprint === ''
    stream.fingerprint = view.fingerprint
    stream.positions.clear()
    const [epoch, tick] = stream.lastEventId?.split('.') ?? []
    const isMine = isFirst && epoch === this.#epochOf(stream) && /^\d{1,15}$/.test(tick ?? '')
    stream.resumeFrom = isMine && Number(tick) <= this.#tick ? Number(tick) : undefined
  }

  #epochOf({ fingerprint, topic }: Stream): string {
    const hash = createHash('sha256').update(JSON.stringify([fingerprint, topic.name, topic.kinds]))
    return `${this.#epoch}${hash.digest('hex').slice(0, 12)}`
  }

  #statusOf(cluster: ClusterState, kinds: Topic['kinds']): Body {
    const { pictures } = this.#options
    const stale = kinds.some((kind) => kind !== 'summary' && pictures.isStale(cluster, kind))
    return new Body(
      JSON.stringify({
        cluster: cluster.name,
        status: cluster.status.health,
        stale,
        lastSeen: cluster.status.checkedAt === null ? null : rfc3339(cluster.status.checkedAt),
      }),
      'status',
    )
  }

  #put(stream: Stream, slot: string, body: Body): void {
    if (stream.sent.get(slot) === body) return
    stream.sent.set(slot, body)
    this.#send(stream, { id: `${this.#epoch}.${this.#tick}`, body, slot })
  }

  #send(stream: Stream, frame: Frame): void {
    this.#counts.frame(frame.body.data.length)
    const before = stream.client.dropped
    stream.client.send(frame)
    if (stream.client.dropped > before) this.#counts.dropped(stream.client.dropped - before)
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

  #beat(now: number): void {
    this.#beatAt = now
    for (const stream of [...this.#streams.keys()]) if (!stream.client.beat()) this.#end(stream, 'too slow')
    for (const [key, feed] of this.#feeds) {
      if (now - feed.usedAt <= FEED_IDLE_MS) continue
      feed.close()
      this.#feeds.delete(key)
    }
    for (const [key, { at }] of this.#summaries) if (now - at > FEED_IDLE_MS) this.#summaries.delete(key)
  }

  #end(stream: Stream, reason: EndReason): void {
    if (!this.#streams.has(stream)) return
    this.#forget(stream)
    const retryMs = reason === 'token expired' ? null : 2000 + Math.round(Math.random() * 8000)
    const body = new Body(JSON.stringify({ reason, retryMs }), 'end')
    stream.client.end(stream.protocol === 2 ? { id: `${this.#epochOf(stream)}.${this.#tick}`, body } : undefined)
  }

  #forget(stream: Stream): void {
    clearTimeout(this.#streams.get(stream))
    this.#streams.delete(stream)
  }
}

/** Everything the client holds of this cluster is void. */
const removed = (cluster: string): Body =>
  new Body(JSON.stringify({ cluster, status: 'removed', stale: true, lastSeen: null }), 'status')

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
  return {
    frame: (length: number) => {
      frames.inc()
      bytes.inc(length)
    },
    dropped: (count: number) => dropped.inc(count),
  }
}
