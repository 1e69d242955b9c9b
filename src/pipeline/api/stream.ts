import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Access, AccessView } from '#access'
import type { Attention } from '#attention'
import type { Subscription as BusSubscription, EventBus, NumberedChange } from '#events'
import type { RowType, StoreView } from '#http'
import type { Clock } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { StateReader } from '#state'
import type { ClusterSets } from './cluster-sets.ts'
import { Dirty } from './dirty.ts'
import { RefusedError } from './problem.ts'
import { RateLimiter } from './rate-limit.ts'
import { acceptsGzip, accessViewOf, principalOf } from './route.ts'
import type { StoreFacts } from './store-facts.ts'
import { AccessViewWatch } from './stream-access-views.ts'
import { Backlog } from './stream-backlog.ts'
import { Frame, FrameRun } from './stream-frame.ts'
import {
  type Asked,
  beginning,
  begun,
  type Client,
  everyone,
  partsOf,
  type StreamGroup,
  verdictOn,
} from './stream-group.ts'
import { StreamGroups } from './stream-groups.ts'
import { FleetHistory } from './stream-history.ts'
import { StreamIds } from './stream-ids.ts'
import {
  defaultOpens,
  farewellMs,
  fewBytes,
  heartbeatMs,
  heartbeatsPerId,
  heartbeatTurns,
  maxBlindMs,
  maxBorrowedMs,
  maxLifeMs,
  maxProxiedMs,
  maxStallMs,
  shortFarewellMs,
  tickMs,
  ticksPerLook,
  ticksPerPing,
} from './stream-limits.ts'
import { parseRowsAsked } from './stream-query.ts'
import type { RowsFeed } from './stream-rows.ts'
import { SocketWriter, type StreamSockets } from './stream-socket.ts'
import { EventWriter, type StreamWriter } from './stream-writer.ts'
import type { ApiConfig } from './types.ts'
import { staleAt, type Views } from './views.ts'
import type { VisibleTypes } from './visible-types.ts'

export interface StreamQuery {
  readonly cluster?: readonly string[]
  readonly type?: readonly RowType[]
  readonly clusters?: boolean
  readonly rows?: readonly string[]
  readonly lastEventId?: string
}

interface StreamParts {
  readonly state: StateReader
  readonly events: EventBus
  readonly access: Access
  readonly views: Views
  readonly types: VisibleTypes
  readonly sets: ClusterSets
  readonly sockets: StreamSockets
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  readonly config: ApiConfig
  /** told of clusters whose usage streams show, as long as they do */
  readonly attention?: Pick<Attention, 'look'>
  readonly store: StoreFacts
}

/** What comes in one go is told in one go. */
const AT_ONCE_MS = 5
const MAX_GATHER_MS = 500

/**
 * Streams: what is true, then what moves. Server-sent events or a WebSocket, with equal content.
 *
 *   bus ─► history, dirty names ─(at once, or 50 ms after the last)─► one frame per group or query ─► one shared buffer to each client of it
 *   policies, time ─► access view asked again ─► group changed? ─► `access`, then a snapshot that replaces everything
 *
 * Each client holds the state of one place in the history. `ready` ones hold the newest and are told what moves; the others (they
 * just came, came back with an id, or were too slow) are told snapshots and differences until they do.
 *
 * An id names a place on the bus and what was asked by which access view, sealed. No frame is made by an access view that policies have
 * overtaken; while they cannot be read none is made at all.
 */
export class StreamHub implements AsyncDisposable {
  readonly #parts: StreamParts
  readonly #history: FleetHistory
  readonly #accessViews: AccessViewWatch
  readonly #opens: RateLimiter
  readonly #groups: StreamGroups
  readonly #backlog: Backlog
  readonly #closing = new AbortController()
  readonly #waits = new Set<Promise<void>>()
  readonly #overflows: { inc(): void }
  #bus: BusSubscription | undefined
  #dirty = new Dirty()
  /** the place in the history that all who are ready hold */
  #flushed = 0
  #gathering = false
  /** when it was last told what moved, and how long that took, ms */
  #told = { at: Number.NEGATIVE_INFINITY, tookMs: 0 }
  /** what was last said of the store, to compare */
  #steadyAt: number
  #ticks = 0
  #turns = 0
  #opened = 0
  #count = 0

  constructor(parts: StreamParts) {
    this.#parts = parts
    const { state, clock, config, metrics } = parts
    this.#history = new FleetHistory(state, clock)
    this.#groups = new StreamGroups({ ...parts, history: this.#history, ids: new StreamIds(config.streamKey) })
    this.#backlog = new Backlog({
      history: this.#history,
      fewBytes: this.#fewBytes,
      now: () => clock.now(),
      place: () => this.#flushed,
      isLoading: () => this.#isLoading(),
      write: (client, frame) => this.#write(client, frame),
      later: (ms, work) => this.#later(ms, work),
      flush: () => this.#flush(),
    })
    this.#accessViews = new AccessViewWatch(parts, () => this.#soon())
    this.#opens = new RateLimiter(config.streamOpens ?? defaultOpens, clock, 'more streams than one caller may open')
    this.#steadyAt = clock.now()
    metrics.gauge('clusterpulse_streams_open', 'open event streams', [], (gauge) => gauge.set(this.#count))
    this.#overflows = metrics.counter('clusterpulse_stream_overflows_total', 'streams that were too slow')
  }

  /** Follows the bus from now on: whoever comes back with an id of another process finds it here. */
  start(): void {
    if (this.#bus || this.#closing.signal.aborted) return
    const { events, clock } = this.#parts
    this.#bus = events.subscribe((changes) => this.#take(changes))
    this.#history.begin(this.#bus.head)
    this.#flushed = this.#history.place
    this.#steadyAt = clock.now()
    this.#later(tickMs, () => this.#tick())
    this.#later(heartbeatMs / heartbeatTurns, () => this.#beat())
  }

  /** @throws RefusedError `too_many_streams`, `too_many_requests`, `invalid_parameter`; then nothing was sent */
  async open(request: FastifyRequest, reply: FastifyReply, query: StreamQuery): Promise<void> {
    const asked = this.#admit(request, query)
    reply.hijack()
    const response = reply.raw
    // It went while it was found out who asks: nothing would end its stream.
    if (response.destroyed) return
    const isPacked = acceptsGzip(request.headers['accept-encoding'])
    let client: Client | undefined
    const writer = new EventWriter(response, isPacked, () => client && this.#relieve(client))
    client = this.#join(request, asked, writer)
    response.on('close', () => this.#forget(client))
    response.on('error', () => this.#forget(client))
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
    this.#begin(client, request, query)
  }

  /** The same over a WebSocket. @throws as `open`, and RefusedError `upgrade_required`: the request asks for none */
  async openSocket(request: FastifyRequest, reply: FastifyReply, query: StreamQuery): Promise<void> {
    const { sockets } = this.#parts
    sockets.requireUpgrade(request)
    const asked = this.#admit(request, query)
    const socket = await sockets.accept(request, reply)
    let client: Client | undefined
    const writer = new SocketWriter(socket, request.raw.socket, () => client && this.#relieve(client))
    client = this.#join(request, asked, writer)
    socket.on('close', () => this.#forget(client))
    this.#begin(client, request, query)
  }

  get #bufferBytes(): number {
    return this.#parts.config.streamBufferBytes ?? 2 ** 20
  }

  /** A client of rows that has not taken more than this is told no more: the newest state follows once it has. */
  get #fewBytes(): number {
    return Math.min(fewBytes, this.#bufferBytes)
  }

  #admit(request: FastifyRequest, { cluster, type, clusters = true, rows = [] }: StreamQuery): Asked {
    const { config } = this.#parts
    if (this.#count >= (config.maxStreams ?? 2000) || this.#closing.signal.aborted)
      throw new RefusedError('too_many_streams', 'the server has all the streams it can take', {
        retryAfterSeconds: 10,
      })
    const asked = rows.map(parseRowsAsked)
    this.#opens.take(`${(request.actor ?? principalOf(request)).username} ${request.ip}`)
    this.start()
    return { clusters: new Set(cluster), types: new Set(type), isFleet: clusters, rows: asked }
  }

  #join(request: FastifyRequest, asked: Asked, writer: StreamWriter): Client {
    const { clock } = this.#parts
    // What is gathered goes to the others first: what this one is told holds it already.
    this.#flush()
    this.#count += 1
    const group = this.#groupOf(accessViewOf(request), asked)
    const isProxied = (request.actor ?? principalOf(request)).method === 'trusted-proxy'
    const client: Client = {
      group,
      principal: principalOf(request),
      sessionId: request.session?.id,
      endsAt: Math.min(
        request.session?.expiresAt ?? Number.POSITIVE_INFINITY,
        request.actor ? clock.now() + maxBorrowedMs : Number.POSITIVE_INFINITY,
      ),
      closesAt: clock.now() + (isProxied ? maxProxiedMs : maxLifeMs),
      writer,
      turn: this.#opened++ % heartbeatTurns,
      ...begun(group),
      limit: this.#bufferBytes,
      waiting: 0,
      waitingSince: clock.now(),
      store: '',
    }
    group.clients.add(client)
    return client
  }

  #begin(client: Client, request: FastifyRequest, query: StreamQuery): void {
    this.#tellStore([client])
    const header = request.headers['last-event-id']
    const after = typeof header === 'string' && header !== '' ? header : query.lastEventId
    if (after !== undefined) Object.assign(client, client.group.resumed(after))
    if (this.#isLoading()) return // the snapshot follows as soon as there is one
    // Also where nothing moved: that a cluster went stale has no number.
    if (client.fleet?.place !== undefined && !client.group.isBlind) this.#backlog.tellFleet(client, client.fleet)
    this.#backlog.pump(client)
  }

  /** The session ended: so do its streams. */
  end(sessionId: string): void {
    for (const client of this.#groups.clients())
      if (client.sessionId === sessionId) this.#reset(client, 'session_ended')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    this.#accessViews[Symbol.dispose]()
    for (const { clients } of this.#groups) for (const { writer } of [...clients]) writer.end()
    await this.#bus?.[Symbol.asyncDispose]()
    await Promise.all(this.#waits)
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
    this.#history.note(changes)
    if (this.#count === 0) {
      this.#flushed = this.#history.place // whoever comes is told all of it
      return
    }
    this.#dirty.add(changes)
    this.#soon()
  }

  #soon(): void {
    if (this.#gathering || this.#count === 0) return
    this.#gathering = true
    this.#later(this.#gatherMs(), () => {
      this.#gathering = false
      const begun = performance.now()
      this.#flush()
      this.#told = { at: performance.now(), tookMs: performance.now() - begun }
    })
  }

  /** What comes alone is told at once, what comes soon after it together; telling takes no more than half of the time. */
  #gatherMs(): number {
    const { at, tookMs } = this.#told
    const gatherMs = Math.max(this.#parts.config.streamGatherMs ?? 50, Math.min(tookMs, MAX_GATHER_MS))
    return Math.max(AT_ONCE_MS, gatherMs - (performance.now() - at))
  }

  /** One frame per group and query, one buffer for all who are told it. */
  #flush(): void {
    if (this.#accessViews.isDue()) this.#askAgain()
    for (const name of this.#history.level()) this.#dirty.clusters.add(name)
    for (const feed of this.#groups.feeds) {
      if (!feed.fleetMoved()) continue
      this.#history.bump()
      break
    }
    const { place } = this.#history
    if (this.#dirty.isEmpty && place === this.#flushed) return
    const [dirty, from] = [this.#dirty, this.#flushed]
    this.#dirty = new Dirty()
    this.#flushed = place
    for (const group of this.#groups) {
      if (group.ready.size === 0) continue // whoever comes is told all of it
      if (group.isBlind) for (const client of [...group.ready]) this.#lag(client, from)
      else this.#sendTo(group, dirty, from)
    }
  }

  #sendTo(group: StreamGroup, dirty: Dirty, from: number): void {
    const now = this.#parts.clock.now()
    const frames: Frame[] = []
    // Without a number the frame is none to resume at.
    const place = dirty.isNumbered ? this.#history.id : undefined
    const change = group.isFleet && !dirty.isEmpty ? group.changes(dirty, now, place) : undefined
    if (change) frames.push(change)
    let isTold = true
    for (const [query, feed] of group.feeds.entries()) {
      const step = feed.since(from)
      isTold &&= step !== undefined || (feed.ended !== undefined && everyone(group, query))
      const frame = step?.frame(query)
      if (frame) frames.push(frame)
    }
    const isMany = group.feeds.length > 0
    if (isMany && frames.length > 0) frames.push(group.synced(now))
    const [first, second] = frames
    const told = second ? new FrameRun(frames) : first
    for (const client of [...group.ready]) {
      if (!isTold || (isMany && client.writer.waitingBytes > this.#fewBytes)) this.#lag(client, from)
      else if (told) this.#write(client, told)
    }
  }

  /** It holds an older place from now on, and is told the rest in its own time. */
  #lag(client: Client, place: number): void {
    client.group.ready.delete(client)
    for (const part of partsOf(client)) if (!part.isEnded) part.place = place
    this.#backlog.wake(client)
  }

  /** It has taken something. */
  #relieve(client: Client): void {
    if (client.writer.waitingBytes === 0) client.limit = this.#bufferBytes
    this.#backlog.wake(client)
  }

  /** What each principal sees now; whoever sees something else goes to another group and begins anew. */
  #askAgain(): void {
    const clients = this.#groups.clients()
    const accessViews = this.#accessViews.ask(clients.map(({ principal }) => principal))
    for (const [index, client] of clients.entries()) {
      const accessView = accessViews[index]
      if (accessView && accessView.fingerprint === client.group.accessView.fingerprint)
        client.group.accessView = accessView
      else if (accessView) this.#move(client, accessView)
    }
    const lost = new Set(clients.filter((_, index) => !accessViews[index]).map(({ group }) => group))
    for (const group of this.#groups) {
      const wasBlind = group.isBlind
      if (lost.has(group)) group.blindSince ??= this.#parts.clock.now()
      else group.blindSince = undefined
      // What moved meanwhile was not told.
      if (wasBlind && !group.isBlind) for (const client of group.clients) this.#backlog.wake(client)
    }
  }

  #move(client: Client, accessView: AccessView): void {
    const before = client.group
    const hadSome =
      before.ready.has(client) || partsOf(client).some((part) => part.place !== undefined || part.snapshot)
    client.group = this.#groupOf(accessView, before)
    this.#groups.leave(before, client)
    client.group.clients.add(client)
    Object.assign(client, begun(client.group))
    if (hadSome) {
      const reason = before.accessView.generation === accessView.generation ? 'time' : 'policies'
      this.#write(client, new Frame('access', JSON.stringify({ reason, now: this.#parts.clock.now() })))
    }
    this.#backlog.wake(client)
  }

  #write(client: Client, frame: Frame): void {
    const { writer, group } = client
    if (!group.clients.has(client)) return
    // One frame may pass the limit; the next does not. A client that reads takes a frame of any size. One of rows is told no more.
    if (writer.waitingBytes <= client.limit || group.feeds.length > 0) {
      writer.write(frame)
      return
    }
    this.#overflows.inc()
    this.#reset(client, 'too slow: begin again', farewellMs)
  }

  /** The last frame; after a while it does not matter whether it was read. */
  #reset(client: Client, reason: string, waitMs = shortFarewellMs): void {
    this.#forget(client)
    client.writer.end(new Frame('reset', JSON.stringify({ reason })))
    this.#later(waitMs, () => client.writer.destroy())
  }

  #forget(client: Client | undefined): void {
    if (!client?.group.clients.has(client)) return
    this.#groups.leave(client.group, client)
    this.#backlog.forget(client)
    this.#count -= 1
  }

  #groupOf(accessView: AccessView, asked: Asked): StreamGroup {
    this.#accessViews.note(accessView)
    return this.#groups.of(accessView, asked)
  }

  #tick(): void {
    this.#later(tickMs, () => this.#tick())
    const { state, clock } = this.#parts
    const now = clock.now()
    const availability = state.availability()
    for (const client of this.#tellStore(this.#groups.clients()))
      if (availability.state !== 'loading') this.#backlog.wake(client)
    for (const client of this.#groups.clients()) this.#judge(client, now)
    for (const cluster of state.clusters()) {
      const at = staleAt(cluster)
      if (at > this.#steadyAt && at <= now) this.#dirty.age(cluster.name)
    }
    this.#steadyAt = now
    this.#renewFeeds()
    this.#flush()
    this.#backlog.draw()
    for (const client of this.#groups.clients()) {
      const { blindSince } = client.group
      if (blindSince !== undefined && now - blindSince > maxBlindMs) this.#reset(client, 'policies_unavailable')
    }
    this.#ticks += 1
    if (this.#ticks % ticksPerLook === 0) this.#groups.look()
    if (this.#ticks % ticksPerPing === 0) for (const { writer } of this.#groups.clients()) writer.ping?.()
  }

  #judge(client: Client, now: number): void {
    const verdict = verdictOn(client, now, this.#fewBytes)
    if (verdict === 'session_ended') this.#reset(client, verdict)
    else if (verdict === 'over') {
      this.#forget(client)
      client.writer.end()
    } else if (verdict === 'stalled') {
      this.#overflows.inc()
      this.#reset(client, `too slow: nothing was read for ${maxStallMs / 1000} s`, farewellMs)
    }
  }

  /** Declarations came and went. */
  #renewFeeds(): void {
    const renewed = new Set([...this.#groups.feeds].filter((feed) => feed.renew()))
    for (const group of renewed.size > 0 ? this.#groups : []) {
      if (!group.feeds.some((feed) => renewed.has(feed))) continue
      for (const client of group.clients) {
        if (group.ready.has(client)) this.#lag(client, this.#flushed)
        for (const [query, part] of client.rows.entries())
          if (renewed.has(group.feeds[query] as RowsFeed)) Object.assign(part, beginning())
        this.#backlog.wake(client)
      }
    }
  }

  /** Whoever still takes what came before needs none, and is not too slow for it. */
  #beat(): void {
    this.#later(heartbeatMs / heartbeatTurns, () => this.#beat())
    this.#turns += 1
    const isTimely = Math.floor(this.#turns / heartbeatTurns) % heartbeatsPerId === 0
    const isMarked = isTimely && this.#flushed === this.#history.place
    const json = `{"now":${this.#parts.clock.now()}}`
    const plain = new Frame('heartbeat', json)
    for (const group of this.#groups) {
      let marked = isMarked && !group.isBlind ? undefined : plain
      for (const client of group.clients) {
        const { writer, turn } = client
        if (turn !== this.#turns % heartbeatTurns) continue
        if (writer.waitingBytes > (group.feeds.length > 0 ? this.#fewBytes : client.limit)) continue
        const isReady = group.ready.has(client)
        if (isReady) marked ??= new Frame('heartbeat', json, group.idOf(this.#history.id))
        this.#write(client, (isReady && marked) || plain)
      }
    }
  }

  #isLoading(): boolean {
    return this.#parts.state.availability().state === 'loading'
  }

  /** @returns those who were told something else before, and are told how it is now */
  #tellStore(clients: Iterable<Client>): readonly Client[] {
    const store = this.#parts.store.now()
    const now = said(store)
    const news = [...clients].filter((client) => client.store !== now)
    const frame = new Frame('store', JSON.stringify(store))
    for (const client of news) {
      client.store = now
      this.#write(client, frame)
    }
    return news
  }
}

const said = ({ state, reason }: StoreView): string => `${state} ${reason}`
