import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AccessFilter, Principal } from '#access'
import type { Subscription as BusSubscription, EventBus, EventId, NumberedChange } from '#events'
import type { RowType } from '#http'
import { type Clock, minutes, seconds } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { StateReader } from '#state'
import { changeTexts, Dirty, type Subscription } from './dirty.ts'
import { RefusedError } from './problem.ts'
import type { ApiConfig } from './types.ts'
import { rowTypes, staleAt, type Views, type VisibleCluster } from './views.ts'

const heartbeatMs = seconds(15)
const tickMs = 500
/** A stream ends after this and resumes, so that who may see what is asked again. */
const maxLifeMs = minutes(60)
/** How long a client that was told to begin again may take to read it. */
const farewellMs = seconds(5)
/** Above this a snapshot is the shorter way. */
const maxReplay = 10_000

export interface StreamQuery {
  readonly cluster?: readonly string[]
  readonly type?: readonly RowType[]
  readonly lastEventId?: string
}

interface StreamParts {
  readonly state: StateReader
  readonly events: EventBus
  readonly access: AccessFilter
  readonly views: Views
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics: Metrics
  readonly config: ApiConfig
}

/** Everyone who gets the same bytes. */
interface Group extends Subscription {
  readonly key: string
  /** ends the ids of this group: another subscription or other eyes cannot resume with them */
  readonly mark: string
  readonly clients: Set<Client>
}

interface Client {
  readonly group: Group
  readonly response: ServerResponse
  readonly openedAt: number
  /** it has a snapshot, or resumed */
  ready: boolean
  /** unsent bytes above which it is too slow */
  limit: number
}

/**
 * Server-sent events: what is true, then what moves.
 *
 *   bus ─► dirty names ─(gather 50 ms)─► one frame per group ─► one shared buffer to each client of it
 *
 * An id names a place on the bus and the group. Between two frames of a client nothing is lost and nothing comes twice; a
 * client that cannot take its frames is told to begin again and never makes another wait.
 */
export class StreamHub implements AsyncDisposable {
  readonly #parts: StreamParts
  readonly #groups = new Map<string, Group>()
  readonly #closing = new AbortController()
  readonly #waits = new Set<Promise<void>>()
  readonly #overflows: { inc(): void }
  #bus: BusSubscription | undefined
  #dirty = new Dirty()
  /** the last change in `#dirty` or in a frame */
  #last: EventId
  #gathering = false
  #storeState: string
  #steadyAt: number
  #beatAt: number
  #count = 0

  constructor(parts: StreamParts) {
    this.#parts = parts
    this.#last = parts.events.head()
    this.#storeState = parts.state.availability().state
    this.#steadyAt = parts.clock.now()
    this.#beatAt = parts.clock.now()
    parts.metrics.gauge('clusterpulse_streams_open', 'open event streams', [], (gauge) => gauge.set(this.#count))
    this.#overflows = parts.metrics.counter('clusterpulse_stream_overflows_total', 'streams that were too slow')
  }

  /** @throws RefusedError `too_many_streams`; then nothing was sent */
  async open(principal: Principal, request: FastifyRequest, reply: FastifyReply, query: StreamQuery): Promise<void> {
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
    const client: Client = {
      group: this.#groupOf(principal, query),
      response,
      openedAt: clock.now(),
      ready: false,
      limit: config.streamBufferBytes ?? 2 ** 20,
    }
    client.group.clients.add(client)
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
    })
    response.flushHeaders()
    this.#write(client, Buffer.concat([Buffer.from('retry: 2000\n\n'), this.#storeFrame()]))
    if (this.#storeState === 'loading') return // the snapshot follows as soon as there is one
    if (after === undefined || !(await this.#resume(client, after))) this.#snapshot(client)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    for (const { clients } of this.#groups.values()) for (const { response } of [...clients]) response.end()
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
    if (this.#gathering) return
    this.#gathering = true
    this.#later(this.#parts.config.streamGatherMs ?? 50, () => this.#flush())
  }

  #flush(): void {
    this.#gathering = false
    if (this.#dirty.isEmpty) return
    const dirty = this.#dirty
    this.#dirty = new Dirty()
    this.#send(dirty, this.#last)
  }

  /** One frame per group, one buffer for all of a group. Without an id the frame is no place to resume at. */
  #send(dirty: Dirty, id: EventId | undefined): void {
    const now = this.#parts.clock.now()
    for (const group of this.#groups.values()) {
      const texts = changeTexts(dirty, group, now)
      if (texts.length === 0) continue
      const frame = changeFrame(texts, now, id === undefined ? undefined : `${id}.${group.mark}`)
      for (const client of [...group.clients]) if (client.ready) this.#write(client, frame)
    }
  }

  #snapshot(client: Client): void {
    if (!client.group.clients.has(client)) return
    // What is gathered goes to the others first: the snapshot holds it already.
    this.#flush()
    const { state, clock } = this.#parts
    const now = clock.now()
    const { group } = client
    const clusters = state.clusters().flatMap(({ name }) => group.see(name) ?? [])
    for (const { state: cluster } of clusters) group.shown.add(cluster.name)
    const rows = [...group.clusters].flatMap((name) => {
      const cluster = group.see(name)
      return cluster ? rowTypes.filter((type) => group.types.has(type)).map((type) => rowsText(cluster, type)) : []
    })
    const texts = clusters.map((cluster) => cluster.json(now)).join(',')
    const frame = Buffer.from(
      `id: ${this.#last}.${group.mark}\nevent: snapshot\ndata: {"clusters":[${texts}],"rows":[${rows.join(',')}],"now":${now}}\n\n`,
    )
    client.ready = true
    client.limit += frame.length
    this.#write(client, frame)
  }

  /** @returns false where the place is unknown, too far back, or a snapshot is the simpler truth */
  async #resume(client: Client, after: string): Promise<boolean> {
    const dot = after.lastIndexOf('.')
    const { group } = client
    if (after.slice(dot + 1) !== group.mark) return false
    const { events, clock, state } = this.#parts
    const missed: NumberedChange[] = []
    let arrived = (): void => undefined
    await using replay = events.subscribe(
      (changes) => {
        missed.push(...changes)
        arrived()
      },
      after.slice(0, dot),
    )
    if (replay.reset) return false
    if (after.slice(0, dot) !== replay.head && missed.length === 0) {
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
    const now = clock.now()
    // That a cluster went stale has no number; it is said again.
    for (const cluster of state.clusters()) if (staleAt(cluster) <= now) dirty.clusters.add(cluster.name)
    client.ready = true
    const texts = changeTexts(dirty, group, now)
    if (texts.length === 0) return true
    const frame = changeFrame(texts, now, `${missed.at(-1)?.id ?? replay.head}.${group.mark}`)
    client.limit += frame.length
    this.#write(client, frame)
    return true
  }

  #write(client: Client, frame: Buffer): void {
    const { response, group } = client
    if (!group.clients.has(client)) return
    // One frame may pass the limit; the next does not. A client that reads takes a frame of any size.
    if (response.writableLength <= client.limit) {
      response.write(frame)
      return
    }
    this.#overflows.inc()
    this.#forget(client)
    response.end('event: reset\ndata: {"reason":"too slow: begin again"}\n\n')
    this.#later(farewellMs, () => response.destroy())
  }

  #forget(client: Client): void {
    if (!client.group.clients.delete(client)) return
    this.#count -= 1
    if (client.group.clients.size === 0) this.#groups.delete(client.group.key)
  }

  #tick(): void {
    this.#later(tickMs, () => this.#tick())
    const { state, clock } = this.#parts
    const now = clock.now()
    const storeState = state.availability().state
    if (storeState !== this.#storeState) {
      this.#storeState = storeState
      this.#toAll(this.#storeFrame())
      if (storeState !== 'loading') for (const client of this.#clients()) if (!client.ready) this.#snapshot(client)
    }
    const aged = new Dirty()
    for (const cluster of state.clusters()) {
      const at = staleAt(cluster)
      if (at > this.#steadyAt && at <= now) aged.clusters.add(cluster.name)
    }
    this.#steadyAt = now
    if (!aged.isEmpty) this.#send(aged, undefined)
    if (now - this.#beatAt < heartbeatMs) return
    this.#beatAt = now
    this.#toAll(Buffer.from(`event: heartbeat\ndata: {"now":${now}}\n\n`))
    for (const { response, openedAt } of this.#clients()) if (now - openedAt > maxLifeMs) response.end()
  }

  #clients(): Client[] {
    return [...this.#groups.values()].flatMap(({ clients }) => [...clients])
  }

  #toAll(frame: Buffer): void {
    for (const client of this.#clients()) this.#write(client, frame)
  }

  #storeFrame(): Buffer {
    const availability = this.#parts.state.availability()
    this.#storeState = availability.state
    const since = availability.state === 'unavailable' ? availability.since : null
    // The store's own words may name hosts of the inside: they are for the log.
    const reason = availability.state === 'unavailable' ? 'the store behind the hub does not answer' : ''
    return Buffer.from(`event: store\ndata: ${JSON.stringify({ state: availability.state, since, reason })}\n\n`)
  }

  #groupOf(principal: Principal, query: StreamQuery): Group {
    const { access, state, views } = this.#parts
    const clusters = new Set([...(query.cluster ?? [])].sort())
    const types = new Set([...(query.type ?? [])].sort())
    const key = JSON.stringify([access.fingerprint(principal), [...clusters], [...types]])
    const known = this.#groups.get(key)
    if (known) return known
    const see = (name: string): VisibleCluster | undefined => {
      const cluster = state.cluster(name)
      return cluster && views.of(principal, cluster)
    }
    const visible = state.clusters().flatMap(({ name }) => (see(name) ? [name] : []))
    const mark = createHash('sha1').update(key).digest('hex').slice(0, 12)
    const group: Group = { key, mark, clients: new Set(), clusters, types, see, shown: new Set<string>(visible) }
    this.#groups.set(key, group)
    return group
  }
}

function changeFrame(texts: readonly string[], now: number, id: string | undefined): Buffer {
  const head = id === undefined ? '' : `id: ${id}\n`
  return Buffer.from(`${head}event: change\ndata: {"changes":[${texts.join(',')}],"now":${now}}\n\n`)
}

function rowsText(cluster: VisibleCluster, type: RowType): string {
  const items = [...cluster.rows(type).values()].map(({ json }) => json).join(',')
  const name = JSON.stringify(cluster.state.name)
  return `{"type":"${type}","cluster":${name},"items":[${items}],"part":${JSON.stringify(cluster.part(type))}}`
}
