import { randomBytes } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { errors, headers } from '@nats-io/transport-node'
import { type Clock, type ClusterName, FleetError, seconds, systemClock } from '#model'
import { isUntaken, NATS_ANSWERS_WITHIN_MS, type NatsConfig, subjectToken } from '#nats'
import type { Logger, Metrics } from '#runtime'
import type { StateReader } from '#state'
import { NatsLink, type Session } from './link.ts'
import type { EventPart } from './messages.ts'
import { type DropReason, publisherMetrics } from './metrics.ts'
import { Report } from './report.ts'
import { partsOf } from './source.ts'
import { STREAM } from './stream.ts'
import { type EventKind, subjectOf } from './subjects.ts'

export interface PublisherOptions {
  readonly nats: NatsConfig
  /** its clusters are published, each for itself */
  readonly state: StateReader
  /** of the cluster whose subjects carry no name */
  readonly defaultCluster: string
  /** warn where it is not known after the first looks; default false */
  readonly expectsDefault?: boolean
  /** of each cluster, ms */
  readonly periodMs: number
  /** whose pods are told; default: all */
  readonly isNamespaceWanted?: (namespace: string) => boolean
  /** told of each cluster that is published, every period: what it uses is to be read as often */
  readonly look?: (cluster: ClusterName) => void
  readonly metrics: Metrics
  readonly logger: Logger
  /** default: the system's */
  readonly clock?: Clock
}

/** Bytes of a part, at most: half of what a NATS server takes by default. */
const MAX_PART_BYTES = 512 * 1024
/** Of a message beside its content. */
const HEADER_BYTES = 1024
/** Clusters whose acknowledgements are awaited at once. */
const SENDERS = 8
const KINDS: readonly EventKind[] = ['metrics', 'pods']
/** Time of a tick is looked at so often in a period. */
const LOOKS_PER_PERIOD = 50
/** By then each cluster was declared and asked once. */
const FIRST_LOOKS_MS = seconds(30)
/** Nothing that was due longer ago is published, periods. */
const KEEP_PERIODS = 2

/** What of one subject is still to be sent: the newest tick alone, whose content is read when its turn comes. */
interface Lane {
  readonly cluster: ClusterName
  readonly kind: EventKind
  due: { readonly tick: number; readonly at: number } | undefined
  isSending: boolean
}

/**
 * Publishes what state says of its clusters to JetStream, each period, beside everything else: nobody waits for it, and it keeps one tick
 * per subject. Period and offset of a cluster follow from its name and the clock, so that several hubs number a tick alike
 * and the stream drops what comes twice.
 */
export class ClusterPublisher implements AsyncDisposable {
  readonly #options: PublisherOptions
  readonly #clock: Clock
  readonly #link: NatsLink
  readonly #stop = new AbortController()
  readonly #lanes = new Map<string, Lane>()
  readonly #ticks = new Map<ClusterName, number>()
  /** with something due, oldest first */
  readonly #waiting = new Set<Lane>()
  readonly #sending = new Set<Promise<void>>()
  readonly #counts: ReturnType<typeof publisherMetrics>
  readonly #publishing: Report
  /** subjects of which the last event was not kept */
  readonly #refusedOn = new Set<string>()
  readonly #running: Promise<unknown>

  private constructor(options: PublisherOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#link = new NatsLink({
      nats: options.nats,
      subjects: () => this.#subjects(),
      clock: this.#clock,
      logger: options.logger,
    })
    this.#counts = publisherMetrics(options.metrics, () => this.#link.session !== undefined)
    this.#publishing = new Report(options.logger, 'events are published')
    this.#link.changed.add(() => this.#pump())
    const { signal } = this.#stop
    this.#running = Promise.all([this.#link.run(signal), this.#tick(signal)])
  }

  /** Begins; does not wait for NATS, which may come and go. */
  static start(options: PublisherOptions): ClusterPublisher {
    return new ClusterPublisher(options)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#running
    await Promise.all(this.#sending)
  }

  #subjects(): readonly string[] {
    const names = new Set(['cluster.metrics', 'cluster.pods'])
    for (const { name } of this.#options.state.clusters())
      for (const kind of KINDS) names.add(subjectOf(name, kind, this.#options.defaultCluster))
    return [...names]
  }

  async #tick(signal: AbortSignal): Promise<void> {
    const { periodMs, state, look } = this.#options
    const startedAt = this.#clock.now()
    let isDefaultExpected = this.#options.expectsDefault === true
    while (!signal.aborted) {
      const now = this.#clock.now()
      const names = state.clusters().map(({ name }) => name)
      if (isDefaultExpected && now - startedAt >= FIRST_LOOKS_MS) {
        isDefaultExpected = false
        this.#checkDefault(names)
      }
      for (const name of names) {
        const tick = Math.floor((now - offsetOf(name, periodMs)) / periodMs)
        if (this.#ticks.get(name) === tick) continue
        this.#ticks.set(name, tick)
        look?.(name)
        for (const kind of KINDS) this.#due(this.#lane(name, kind), tick, now)
      }
      if (this.#ticks.size > names.length) this.#forget(new Set(names))
      await this.#clock.sleep(Math.max(20, periodMs / LOOKS_PER_PERIOD), signal)
    }
  }

  #checkDefault(names: readonly ClusterName[]): void {
    const { defaultCluster, logger } = this.#options
    if (names.some((name) => name === defaultCluster)) return
    const known = names.slice(0, 8)
    logger.warn(
      { defaultCluster, known, clusters: names.length },
      'DEFAULT_CLUSTER names no cluster of this hub: nothing is published on cluster.metrics and cluster.pods',
    )
  }

  #lane(cluster: ClusterName, kind: EventKind): Lane {
    const key = `${cluster}/${kind}`
    const lane = this.#lanes.get(key) ?? { cluster, kind, due: undefined, isSending: false }
    this.#lanes.set(key, lane)
    return lane
  }

  #forget(known: ReadonlySet<ClusterName>): void {
    for (const name of this.#ticks.keys()) if (!known.has(name)) this.#ticks.delete(name)
    for (const [key, lane] of this.#lanes) {
      if (known.has(lane.cluster)) continue
      this.#lanes.delete(key)
      this.#waiting.delete(lane)
      this.#refusedOn.delete(subjectOf(lane.cluster, lane.kind, this.#options.defaultCluster))
    }
  }

  #due(lane: Lane, tick: number, at: number): void {
    if (lane.due) this.#counts.dropped(lane.kind, this.#link.session ? 'replaced' : 'disconnected')
    lane.due = { tick, at }
    if (lane.isSending) return
    this.#waiting.add(lane)
    this.#pump()
  }

  /** Sends what waits, as far as somebody is there to take it. */
  #pump(): void {
    const { session } = this.#link
    while (session && !session.isDoubted && this.#sending.size < SENDERS && !this.#stop.signal.aborted) {
      const [lane] = this.#waiting
      if (!lane) return
      this.#waiting.delete(lane)
      lane.isSending = true
      const sending = this.#publish(lane, session).finally(() => {
        this.#sending.delete(sending)
        lane.isSending = false
        if (lane.due) this.#waiting.add(lane)
        this.#pump()
      })
      this.#sending.add(sending)
    }
  }

  /** Never rejects. */
  async #publish(lane: Lane, session: Session): Promise<void> {
    const { cluster, kind } = lane
    const subject = subjectOf(cluster, kind, this.#options.defaultCluster)
    // Encoding a large cluster takes its time: others come first.
    await turn()
    const { due } = lane
    lane.due = undefined
    if (!due) return
    try {
      const parts = this.#parts(lane, due.at, session)
      if (typeof parts === 'string') return this.#counts.dropped(kind, parts)
      await publishParts(session, subject, `${subjectToken(cluster)}.${kind}.${due.tick}`, parts)
      this.#counts.published(kind, parts)
      this.#refusedOn.delete(subject)
      if (this.#refusedOn.size === 0) this.#publishing.working()
    } catch (error) {
      // Not tried again: the next tick knows more.
      this.#counts.failed(kind)
      if (error instanceof errors.TimeoutError) session.doubt()
      if (this.#link.session === session) this.#refused(subject, error)
    }
  }

  #parts({ cluster, kind }: Lane, dueAt: number, { maxBytes }: Session): readonly EventPart[] | DropReason {
    const { periodMs, state, isNamespaceWanted } = this.#options
    const at = this.#clock.now()
    if (at - dueAt > KEEP_PERIODS * periodMs) return 'late'
    const known = state.cluster(cluster)
    const room = Math.min(MAX_PART_BYTES, maxBytes - HEADER_BYTES)
    const head = { cluster, at, eventId: randomEventId, maxBytes: room }
    return (known && partsOf(known, kind, head, isNamespaceWanted)) ?? 'unread'
  }

  #refused(subject: string, error: unknown): void {
    this.#refusedOn.add(subject)
    const why = isUntaken(error)
      ? `no stream takes it: ${STREAM} is looked at, and made anew where it is missing`
      : error instanceof errors.TimeoutError
        ? `nobody acknowledges it within ${NATS_ANSWERS_WITHIN_MS / 1000} s: the server hangs, or no stream takes it`
        : FleetError.from(error).message
    this.#publishing.failing(`what is published on ${subject} is not kept (${why})`)
    this.#link.lookAgain()
  }
}

/** One after the other, so that a consumer has them in their order. */
async function publishParts(
  { jetstream }: Session,
  subject: string,
  tickId: string,
  parts: readonly EventPart[],
): Promise<void> {
  for (const [i, { bytes }] of parts.entries()) {
    const own = headers()
    own.set('part', String(i + 1))
    own.set('parts', String(parts.length))
    own.set('snapshot', parts[0]?.eventId ?? '')
    // Another hub may need another number of parts: those are other messages.
    const msgID = parts.length === 1 ? tickId : `${tickId}.${i + 1}/${parts.length}`
    await jetstream.publish(subject, bytes, { msgID, headers: own, timeout: NATS_ANSWERS_WITHIN_MS })
  }
}

/** 16 random bytes in the groups of a UUID, as the original has them. */
function randomEventId(): string {
  const hex = randomBytes(16).toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** Where in the period the tick of a cluster lies: spread over it, and the same in every hub. */
function offsetOf(name: string, periodMs: number): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % periodMs
}
