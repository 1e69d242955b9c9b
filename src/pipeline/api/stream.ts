import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Access, AccessView } from '#access'
import type { Subscription as BusSubscription, EventBus, EventId, NumberedChange } from '#events'
import type { RowType } from '#http'
import { type Clock, minutes, seconds } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { Availability, StateReader } from '#state'
import { Dirty } from './dirty.ts'
import { RefusedError } from './problem.ts'
import { acceptsGzip, accessViewOf, principalOf } from './route.ts'
import { AccessViewWatch } from './stream-access-views.ts'
import { Frame } from './stream-frame.ts'
import { type Asked, type Client, groupKey, StreamGroup } from './stream-group.ts'
import { StreamIds } from './stream-ids.ts'
import { StreamWriter } from './stream-writer.ts'
import type { ApiConfig } from './types.ts'
import { staleAt, type Views } from './views.ts'

const tickMs = 500
/** A heartbeat each second: a page that hears nothing for longer asks whether the hub is still there. */
const ticksPerHeartbeat = 2
/** A stream ends after this, and whoever reads it comes again. */
const maxLifeMs = minutes(60)
/** The same for people known by a proxy's headers: only a new request shows whether they are still signed in there, in which groups. */
const maxProxiedMs = minutes(5)
/** So long may an administrator look through another's eyes. */
const maxBorrowedMs = minutes(15)
/** How long a client that was told to begin again may take to read it. */
const farewellMs = seconds(5)
/** The same where the stream ends because it must. */
const shortFarewellMs = seconds(1)
/** Without policies to go by nothing is sent; after this the stream ends. */
const maxBlindMs = seconds(10)
/** Above this a snapshot is the shorter way. */
const maxReplay = 10_000
/** Snapshots are made for this long at a time, then others have their turn. */
const snapshotTurnMs = 25

export interface StreamQuery {
  readonly cluster?: readonly string[]
  readonly type?: readonly RowType[]
  readonly lastEventId?: string
}

interface StreamParts {
  readonly state: StateReader
  readonly events: EventBus
  readonly access: Access
  readonly views: Views
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  readonly config: ApiConfig
}

/**
 * Server-sent events: what is true, then what moves.
 *
 *   bus ─► dirty names ─(gather 50 ms)─► one frame per group ─► one shared buffer to each client of it
 *   policies, time ─► access view asked again ─► group changed? ─► `access`, then a snapshot that replaces everything
 *
 * An id names a place on the bus and the group, sealed. Between two frames of a client nothing is lost and nothing comes
 * twice; a client that cannot take its frames is told to begin again and never makes another wait. No frame is made by an access view
 * that policies have overtaken; while they cannot be read none is made at all.
 */
export class StreamHub implements AsyncDisposable {
  readonly #parts: StreamParts
  readonly #ids = new StreamIds()
  readonly #accessViews: AccessViewWatch
  readonly #groups = new Map<string, StreamGroup>()
  readonly #closing = new AbortController()
  readonly #waits = new Set<Promise<void>>()
  readonly #overflows: { inc(): void }
  /** their snapshots are yet to come */
  readonly #waiting = new Set<Client>()
  #bus: BusSubscription | undefined
  #dirty = new Dirty()
  /** the last change in `#dirty` or in a frame */
  #last: EventId
  #gathering = false
  #drawing = false
  /** what was last said of the store, to compare */
  #storeState: string
  #steadyAt: number
  #ticks = 0
  #count = 0

  constructor(parts: StreamParts) {
    this.#parts = parts
    this.#accessViews = new AccessViewWatch(parts, () => this.#soon())
    this.#last = parts.events.head()
    this.#storeState = said(parts.state.availability())
    this.#steadyAt = parts.clock.now()
    parts.metrics.gauge('clusterpulse_streams_open', 'open event streams', [], (gauge) => gauge.set(this.#count))
    this.#overflows = parts.metrics.counter('clusterpulse_stream_overflows_total', 'streams that were too slow')
  }

  /** @throws RefusedError `too_many_streams`; then nothing was sent */
  async open(request: FastifyRequest, reply: FastifyReply, query: StreamQuery): Promise<void> {
    const { clock, config } = this.#parts
    if (this.#count >= (config.maxStreams ?? 2000) || this.#closing.signal.aborted)
      throw new RefusedError('too_many_streams', 'the server has all the streams it can take', {
        retryAfterSeconds: 10,
      })
    this.#start()
    this.#count += 1
    const header = request.headers['last-event-id']
    const after = typeof header === 'string' && header !== '' ? header : query.lastEventId
    reply.hijack()
    const response = reply.raw
    const group = this.#groupOf(accessViewOf(request), {
      clusters: new Set(query.cluster),
      types: new Set(query.type),
    })
    const isPacked = acceptsGzip(request.headers['accept-encoding'])
    const writer = new StreamWriter(response, isPacked)
    const client: Client = {
      group,
      principal: principalOf(request),
      sessionId: request.session?.id,
      endsAt: Math.min(
        request.session?.expiresAt ?? Number.POSITIVE_INFINITY,
        request.actor ? clock.now() + maxBorrowedMs : Number.POSITIVE_INFINITY,
      ),
      closesAt:
        clock.now() + ((request.actor ?? principalOf(request)).method === 'trusted-proxy' ? maxProxiedMs : maxLifeMs),
      response,
      writer,
      ready: false,
      limit: config.streamBufferBytes ?? 2 ** 20,
    }
    group.clients.add(client)
    response.on('close', () => this.#forget(client))
    response.on('error', () => this.#forget(client))
    response.on('drain', () => {
      client.limit = config.streamBufferBytes ?? 2 ** 20
    })
    request.raw.socket.setTimeout(0)
    request.raw.socket.setNoDelay(true)
    const headers: Record<string, number | string | string[]> = {}
    for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) headers[name] = value
    response.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-accel-buffering': 'no',
      vary: 'Accept-Encoding',
      ...(isPacked && { 'content-encoding': 'gzip' }),
    })
    response.flushHeaders()
    writer.begin()
    this.#write(client, new Frame(`retry: 2000\n\n${this.#storeText()}`))
    if (this.#parts.state.availability().state === 'loading') return // the snapshot follows as soon as there is one
    if (after === undefined || !(await this.#resume(client, after))) this.#snapshot(client)
  }

  /** The session ended: so do its streams. */
  end(sessionId: string): void {
    for (const client of this.#clients()) if (client.sessionId === sessionId) this.#reset(client, 'session_ended')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    this.#accessViews[Symbol.dispose]()
    for (const { clients } of this.#groups.values()) for (const { writer } of [...clients]) writer.end()
    await this.#bus?.[Symbol.asyncDispose]()
    await Promise.all(this.#waits)
  }

  #start(): void {
    if (this.#bus) return
    const { events, clock } = this.#parts
    this.#bus = events.subscribe((changes) => this.#take(changes))
    this.#last = this.#bus.head
    this.#steadyAt = clock.now()
    this.#later(tickMs, () => this.#tick())
  }

  /** Runs `work` after a while unless the hub closes before. */
  #later(ms: number, work: () => void): void {
    const { clock, logger } = this.#parts
    const { signal } = this.#closing
    const wait: Promise<void> = clock
      .sleep(ms, signal)
      .then(() => {
        if (!signal.aborted) work()
      })
      .catch((error: unknown) => logger.error({ error }, 'a stream met an error'))
      .finally(() => this.#waits.delete(wait))
    this.#waits.add(wait)
  }

  #take(changes: readonly NumberedChange[]): void {
    this.#last = changes.at(-1)?.id ?? this.#last
    if (this.#count === 0) return // whoever comes takes a snapshot
    this.#dirty.add(changes)
    this.#soon()
  }

  #soon(): void {
    if (this.#gathering || this.#count === 0) return
    this.#gathering = true
    this.#later(this.#parts.config.streamGatherMs ?? 50, () => {
      this.#gathering = false
      this.#flush()
    })
  }

  /** One frame per group, one buffer for all of a group. */
  #flush(): void {
    if (this.#accessViews.isDue()) this.#askAgain()
    if (this.#dirty.isEmpty) return
    const dirty = this.#dirty
    this.#dirty = new Dirty()
    const place = dirty.isNumbered ? this.#last : undefined
    for (const group of this.#groups.values()) if (!group.isBlind) this.#sendTo(group, dirty, place)
  }

  /** Without a place the frame is none to resume at. */
  #sendTo(group: StreamGroup, dirty: Dirty, place: EventId | undefined): void {
    const { ready } = group
    if (ready.length === 0) return // whoever comes is given all of it
    const frame = group.changes(dirty, this.#parts.clock.now(), place)
    if (frame) for (const client of ready) this.#write(client, frame)
  }

  #snapshot(client: Client): void {
    if (!client.group.clients.has(client) || client.ready) return
    // What is gathered goes to the others first: the snapshot holds it already.
    this.#flush()
    if (client.group.isBlind) {
      this.#waiting.add(client)
      return
    }
    this.#waiting.delete(client)
    const frame = this.#snapshotOf(client.group)
    client.ready = true
    // What moves meanwhile waits behind it.
    client.limit += frame.plain.length
    this.#write(client, frame)
  }

  #snapshotOf(group: StreamGroup): Frame {
    const now = this.#parts.clock.now()
    const kept = group.kept(this.#last, now)
    if (kept) return kept
    this.#level(group)
    return group.snapshot(this.#last, now)
  }

  /** Brings everyone in the group to the state of this moment, so that all of them hold the same. */
  #level(group: StreamGroup): void {
    const ahead = group.ahead()
    if (group.ready.length === 0) group.fill()
    else if (!ahead.isEmpty) this.#sendTo(group, ahead, undefined)
  }

  /**
   * For those from whom nothing is hidden: of others it is not known what they hold, and what moved meanwhile may not be named.
   * @returns false where the place is unknown, too far back, or a snapshot is the simpler truth
   */
  async #resume(client: Client, after: string): Promise<boolean> {
    const { group } = client
    const known = this.#ids.open(after)
    if (!group.accessView.administrator || known?.mark !== group.mark) return false
    const { place } = known
    const { events, clock, state } = this.#parts
    const missed: NumberedChange[] = []
    let arrived = (): void => undefined
    await using replay = events.subscribe((changes) => {
      missed.push(...changes)
      arrived()
    }, place)
    if (replay.reset) return false
    if (place !== replay.head && missed.length === 0) {
      // What was missed comes in one piece, in this turn or soon.
      await Promise.race([
        new Promise<void>((resolve) => {
          arrived = resolve
        }),
        clock.sleep(seconds(2), this.#closing.signal),
      ])
      if (missed.length === 0) return false
    }
    const dirty = new Dirty()
    dirty.add(missed)
    // A cluster that went while nobody told this client: whether it knew it is not known here.
    if (missed.length > maxReplay || dirty.removed.size > 0) return false
    this.#flush()
    const isMoved = client.group !== group || client.ready || !group.clients.has(client)
    if (isMoved || group.isBlind) return false
    this.#level(group)
    const now = clock.now()
    // That a cluster went stale has no number; it is said again.
    for (const cluster of state.clusters()) if (staleAt(cluster) <= now) dirty.age(cluster.name)
    client.ready = true
    const frame = group.missed(dirty, now, missed.at(-1)?.id ?? replay.head)
    if (!frame) return true
    client.limit += frame.plain.length
    this.#write(client, frame)
    return true
  }

  /** What each principal sees now; whoever sees something else goes to another group and begins anew. */
  #askAgain(): void {
    const clients = this.#clients()
    const blind = new Set([...this.#groups.values()].filter(({ isBlind }) => isBlind))
    const accessViews = this.#accessViews.ask(clients.map(({ principal }) => principal))
    for (const [index, client] of clients.entries()) {
      const accessView = accessViews[index]
      if (accessView && accessView.fingerprint === client.group.accessView.fingerprint)
        client.group.accessView = accessView
      else if (accessView) this.#move(client, accessView)
    }
    const lost = new Set(clients.filter((_, index) => !accessViews[index]).map(({ group }) => group))
    for (const group of this.#groups.values()) {
      if (lost.has(group)) group.blindSince ??= this.#parts.clock.now()
      else group.blindSince = undefined
      // What moved meanwhile was not told.
      if (blind.has(group) && !group.isBlind) this.#level(group)
    }
  }

  #move(client: Client, accessView: AccessView): void {
    const before = client.group
    client.group = this.#groupOf(accessView, before)
    this.#leave(before, client)
    client.group.clients.add(client)
    if (!client.ready) return // its snapshot is yet to come, and will be the new one
    client.ready = false
    const reason = before.accessView.generation === accessView.generation ? 'time' : 'policies'
    this.#write(
      client,
      new Frame(`event: access\ndata: ${JSON.stringify({ reason, now: this.#parts.clock.now() })}\n\n`),
    )
    this.#waiting.add(client)
    this.#draw()
  }

  /** Snapshots for all who were moved, a few at a time. */
  #draw(): void {
    if (this.#drawing || this.#waiting.size === 0) return
    this.#drawing = true
    this.#later(0, () => {
      this.#drawing = false
      const since = performance.now()
      for (const client of [...this.#waiting]) {
        if (performance.now() - since > snapshotTurnMs) break
        this.#snapshot(client)
      }
      if ([...this.#waiting].some(({ group }) => !group.isBlind)) this.#draw()
    })
  }

  #write(client: Client, frame: Frame): void {
    const { writer, group } = client
    if (!group.clients.has(client)) return
    // One frame may pass the limit; the next does not. A client that reads takes a frame of any size.
    if (writer.waitingBytes <= client.limit) {
      writer.write(frame)
      return
    }
    this.#overflows.inc()
    this.#reset(client, 'too slow: begin again', farewellMs)
  }

  /** The last frame; after a while it does not matter whether it was read. */
  #reset(client: Client, reason: string, waitMs = shortFarewellMs): void {
    this.#forget(client)
    client.writer.end(`event: reset\ndata: ${JSON.stringify({ reason })}\n\n`)
    this.#later(waitMs, () => client.response.destroy())
  }

  #forget(client: Client): void {
    if (!client.group.clients.has(client)) return
    this.#leave(client.group, client)
    this.#waiting.delete(client)
    this.#count -= 1
  }

  #leave(group: StreamGroup, client: Client): void {
    group.clients.delete(client)
    if (group.clients.size === 0 && this.#groups.get(group.key) === group) this.#groups.delete(group.key)
  }

  #tick(): void {
    this.#later(tickMs, () => this.#tick())
    const { state, clock } = this.#parts
    const now = clock.now()
    const availability = state.availability()
    if (said(availability) !== this.#storeState) {
      this.#toAll(new Frame(this.#storeText()))
      if (availability.state !== 'loading')
        for (const client of this.#clients()) if (!client.ready) this.#waiting.add(client)
    }
    for (const client of this.#clients()) {
      if (now >= client.endsAt) this.#reset(client, 'session_ended')
      else if (now >= client.closesAt) {
        this.#forget(client)
        client.writer.end()
      }
    }
    for (const cluster of state.clusters()) {
      const at = staleAt(cluster)
      if (at > this.#steadyAt && at <= now) this.#dirty.age(cluster.name)
    }
    this.#steadyAt = now
    this.#flush()
    this.#draw()
    for (const client of this.#clients()) {
      const { blindSince } = client.group
      if (blindSince !== undefined && now - blindSince > maxBlindMs) this.#reset(client, 'policies_unavailable')
    }
    this.#ticks += 1
    if (this.#ticks % ticksPerHeartbeat === 0) this.#beat(now)
  }

  /** Whoever still takes what came before needs none, and is not too slow for it. */
  #beat(now: number): void {
    const frame = new Frame(`event: heartbeat\ndata: {"now":${now}}\n\n`)
    for (const client of this.#clients()) if (client.writer.waitingBytes <= client.limit) this.#write(client, frame)
  }

  #clients(): Client[] {
    return [...this.#groups.values()].flatMap(({ clients }) => [...clients])
  }

  #toAll(frame: Frame): void {
    for (const client of this.#clients()) this.#write(client, frame)
  }

  #storeText(): string {
    const availability = this.#parts.state.availability()
    this.#storeState = said(availability)
    const since = availability.state === 'unavailable' ? availability.since : null
    // The store's own words may name hosts of the inside: they are for the log.
    const missing = availability.state === 'loading' ? (availability.missing ?? '') : ''
    const reason = availability.state === 'unavailable' ? 'the store behind the hub does not answer' : missing
    return `event: store\ndata: ${JSON.stringify({ state: availability.state, since, reason })}\n\n`
  }

  #groupOf(accessView: AccessView, asked: Asked): StreamGroup {
    this.#accessViews.note(accessView)
    const known = this.#groups.get(groupKey(accessView, asked))
    if (known) {
      known.accessView = accessView
      return known
    }
    const { state, views } = this.#parts
    const made = new StreamGroup({ state, views, ids: this.#ids }, accessView, asked)
    this.#groups.set(made.key, made)
    return made
  }
}

const said = (availability: Availability): string =>
  availability.state === 'loading' ? `loading ${availability.missing ?? ''}` : availability.state
