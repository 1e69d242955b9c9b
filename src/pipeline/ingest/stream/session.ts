import {
  type AgentFacts,
  type Batch,
  type BatchView,
  type ClusterName,
  FleetError,
  type Loss,
  type NodeSnapshot,
  type Plan,
  type SequenceRange,
} from '#model'
import {
  batchFromOriginal,
  type ConnectRequest,
  decodeRequest,
  encodePlan,
  type Frame,
  type HealthReport,
  type Hello,
  type Loss as LossMessage,
  type MetricsBatch,
  negotiate,
  type ReadOriginal,
  type RegisterRequest,
  type ResponseInit,
  readOriginal,
  WireError,
} from '#wire'
import { BaseMismatchError, ClusterNotConnectedError } from '../errors.ts'
import { ORIGINAL_ORIGIN } from '../origins.ts'
import { missingFrom, sizeOf } from '../ranges.ts'
import { ClockOffset } from './clock-offset.ts'
import { decodeFrame, FrameRefusedError, hasChanges, isSequence, lossOf, withoutBase } from './frames.ts'
import type { StreamLimits } from './limits.ts'
import { plannedOnly, sourcesOf } from './planned.ts'
import { addSequence, hasSequence } from './ranges.ts'
import { StreamRate } from './rate.ts'
import { correctOriginalTime, correctTime } from './times.ts'
import type { Peer, Verdict } from './types.ts'

/*
 * One stream, without its socket: what happens goes in as events, what is to be done comes out as effects. Nothing here
 * waits, reads a clock or knows gRPC, so that any order of events can be tried.
 *
 *   arriving ──register──► open ──goodbye──► leaving ──(acks are out)──► ended
 *       └───────────────────┴──────── refused, revoked, broken ─────────────┘
 *
 * States and messages: docs/spec/wire.md.
 */

/** As in gRPC, https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
export const grpcStatus = {
  ok: 0,
  invalidArgument: 3,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unavailable: 14,
  unauthenticated: 16,
} as const

export type Answer = NonNullable<ResponseInit['payload']>

export type SessionEvent =
  /** the call is here; undefined: it showed no credential, the registration must */
  | { readonly kind: 'opened'; readonly verdict: Verdict | undefined }
  | { readonly kind: 'message'; readonly bytes: Uint8Array }
  | { readonly kind: 'accepted'; readonly ticket: number }
  | { readonly kind: 'failed'; readonly ticket: number; readonly error: FleetError }
  /** a newer stream has its place */
  | { readonly kind: 'replaced'; readonly message: string; readonly retryAfterMs: number }
  | { readonly kind: 'disconnect'; readonly code: string; readonly message: string }
  | { readonly kind: 'credentials' }
  | { readonly kind: 'plan' }
  | { readonly kind: 'flush' }
  | { readonly kind: 'tick' }
  /** the agent sends nothing more, and waits for its acks */
  | { readonly kind: 'finished' }
  /** where it ended because nothing was heard, for how long; else 0 */
  | { readonly kind: 'closed'; readonly silentMs: number }

export type Effect =
  | { readonly kind: 'send'; readonly answer: Answer }
  /** give it to the ingester after the pause, and say how it ended by its ticket */
  | {
      readonly kind: 'accept'
      readonly ticket: number
      readonly batch: Batch
      readonly view: BatchView | undefined
      /** the message its parts were read from: the log may keep this instead */
      readonly told: Uint8Array | undefined
      readonly afterMs: number
    }
  | {
      readonly kind: 'lost'
      readonly ticket: number
      readonly cluster: ClusterName
      readonly loss: Loss
      readonly afterMs: number
    }
  /** acks wait: an event `flush` soon, several at once */
  | { readonly kind: 'flush' }
  /** facts moved; `now`: it came, went or delivers for the first time */
  | { readonly kind: 'facts'; readonly now: boolean }
  | {
      readonly kind: 'note'
      readonly level: 'debug' | 'info' | 'warn'
      readonly facts: object
      readonly sentence: string
    }
  | { readonly kind: 'count'; readonly what: Counted }
  /** nothing comes after it; the status is what gRPC tells */
  | { readonly kind: 'end'; readonly status: number; readonly code: string; readonly message: string }

export type Counted =
  | 'frame'
  | 'original'
  | 'loss'
  | 'refused'
  | 'held'
  | 'resync'
  | 'duplicate'
  | 'time_corrected'
  | 'unplanned'

export interface SessionWorld {
  readonly limits: StreamLimits
  readonly tls: boolean
  /** which of several processes this is */
  readonly process?: string
  /** whose the token of a registration is */
  verify(token: string): Verdict
  stillValid(peer: Peer): boolean
  knows(cluster: ClusterName): boolean
  received(cluster: ClusterName, origin: string): readonly SequenceRange[]
  heardTo(cluster: ClusterName, origin: string): number | undefined
  planOf(cluster: ClusterName): Plan | undefined
  /** takes the place of the cluster's stream before, which is told; `identity` tells two agents of one name apart */
  enter(cluster: ClusterName, identity: string): Place
  random(): number
}

/** What outlives the streams of a cluster. */
export interface Place {
  readonly epoch: number
  /** '' or why this place is doubtful, for people */
  readonly doubt: string
  readonly originals: OriginalNumbers
}

/** Originals do not number: the hub does, in one row per cluster. */
export interface OriginalNumbers {
  last: number
  /** ids of the last batches that were accepted */
  recent: string[]
}

const RECENT_ORIGINALS = 64
/** A frame this young tells what its sender's clock shows. */
const FRESH_MS = 5_000
const KEPT_VIEWS = 3
const MAX_RESTORED_RANGES = 1_024
const MAX_RECEIVED_RANGES = 4_096
const ORIGIN = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/

type Phase =
  | { readonly tag: 'arriving'; readonly since: number; readonly peer: Peer | undefined }
  | { readonly tag: 'open'; readonly stream: Open }
  | { readonly tag: 'leaving'; readonly stream: Open; readonly until: number; readonly farewell: Farewell }
  | { readonly tag: 'ended'; readonly stream: Open | undefined; readonly reason: string }

interface Farewell {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly retryAfterMs: number
}

/** What is known of a registered stream. */
interface Open {
  readonly peer: Peer
  readonly place: Place
  readonly version: string
  readonly protocol: AgentFacts['protocol']
  /** of our agents: their buffer */
  readonly origin: string
  readonly since: number
  readonly clock: ClockOffset
  heartbeatAt: number
  bufferedBatches: number
  bufferedBytes: number
  oldestBufferedAt: number | null
  /** what its buffer held at the registration, `empty` where it held nothing; undefined: no longer of interest */
  pending: SequenceRange | 'empty' | undefined
  /** collection times: of the newest batch before this stream, and of the oldest that came by it */
  heardTo: number | undefined
  earliestAt: number
  lostBatches: number
  plan: string
  sentPlan: string | undefined
  delivering: boolean
  /** of live frames of this stream, oldest first; only acknowledged ones are bases */
  readonly views: Map<number, BatchView>
  acks: SequenceRange[]
  /** originals are taken one after the other, so that their acks keep their order */
  readonly queue: Queued[]
  /** of an original: its nodes as it last told them, so that what did not move is not made anew */
  nodes: readonly NodeSnapshot[]
}

interface Queued {
  readonly metrics: MetricsBatch
  readonly bytes: number
  readonly read?: { readonly nodes: ReadOriginal['nodes']; readonly told: Uint8Array }
}

interface Ticket {
  readonly bytes: number
  readonly since: number
  attempt: number
  readonly sequence: number
  readonly work:
    | { readonly kind: 'frame'; batch: Batch; readonly view: BatchView }
    | { readonly kind: 'loss'; readonly loss: Loss }
    | {
        readonly kind: 'original'
        readonly batch: Batch
        readonly batchId: string
        readonly told: Uint8Array | undefined
      }
}

/** The hello names a buffer and a time that can be used. */
const namesItself = ({ origin, nowMs }: Hello): boolean =>
  ORIGIN.test(origin) && origin !== ORIGINAL_ORIGIN && Number.isFinite(nowMs)

export class Session {
  readonly #world: SessionWorld
  readonly #rate: StreamRate
  #phase: Phase
  #effects: Effect[] = []
  readonly #tickets = new Map<number, Ticket>()
  #nextTicket = 1
  #heldBytes = 0
  /** when frames of this stream broke the protocol */
  #badFrames: readonly number[] = []
  #silentMs = 0
  #retrying = 0

  constructor(world: SessionWorld, now: number) {
    this.#world = world
    this.#rate = new StreamRate(world.limits, now)
    this.#phase = { tag: 'arriving', since: now, peer: undefined }
  }

  /** What is to be done because of the event, in this order. */
  on(event: SessionEvent, now: number): readonly Effect[] {
    if (this.#phase.tag === 'ended') return []
    this.#effects = []
    this.#handle(event, now)
    this.#leaveWhenDone(now)
    return this.#effects
  }

  /** 0: the next message may come; else ms to wait, or Infinity until something under way has ended. */
  readAfterMs(now: number): number {
    if (this.#phase.tag === 'leaving' || this.#phase.tag === 'ended') return Number.POSITIVE_INFINITY
    const { maxUnacked, maxUnackedBytes } = this.#world.limits
    const queued = this.#phase.tag === 'open' ? this.#phase.stream.queue.length : 0
    if (this.#retrying > 0 || this.#tickets.size + queued >= maxUnacked || this.#heldBytes >= maxUnackedBytes)
      return Number.POSITIVE_INFINITY
    return this.#rate.waitMs(now)
  }

  get peer(): Peer | undefined {
    return this.#phase.tag === 'arriving' ? this.#phase.peer : this.#phase.stream?.peer
  }

  get cluster(): ClusterName | undefined {
    return this.#stream?.peer.cluster
  }

  get isDelivering(): boolean {
    return this.#phase.tag === 'open' && this.#phase.stream.delivering
  }

  get hasEnded(): boolean {
    return this.#phase.tag === 'ended'
  }

  /** undefined before the registration */
  facts(now: number): AgentFacts | undefined {
    const stream = this.#stream
    if (!stream) return undefined
    const connected = this.#phase.tag === 'open'
    return {
      connected,
      since: connected ? stream.since : now - this.#silentMs,
      reason: this.#reason(),
      version: stream.version,
      protocol: stream.protocol,
      heartbeatAt: stream.heartbeatAt,
      bufferedBatches: stream.bufferedBatches,
      bufferedBytes: stream.bufferedBytes,
      oldestBufferedAt: stream.oldestBufferedAt,
      lostBatches: stream.lostBatches,
      clockOffsetMs: stream.clock.ms ?? 0,
      tls: this.#world.tls,
      method: stream.peer.method,
      plan: stream.plan,
      epoch: stream.place.epoch,
      ...(this.#world.process !== undefined && { process: this.#world.process }),
    }
  }

  get #stream(): Open | undefined {
    return this.#phase.tag === 'arriving' ? undefined : this.#phase.stream
  }

  #reason(): string {
    if (this.#phase.tag === 'leaving') return this.#phase.farewell.message
    if (this.#phase.tag === 'ended') return this.#phase.reason
    return this.#stream?.place.doubt ?? ''
  }

  #handle(event: SessionEvent, now: number) {
    switch (event.kind) {
      case 'opened':
        return this.#opened(event.verdict, now)
      case 'message':
        return this.#message(event.bytes, now)
      case 'accepted':
        return this.#accepted(event.ticket, now)
      case 'failed':
        return this.#failed(event.ticket, event.error, now)
      case 'replaced':
        return this.#leave(
          { status: grpcStatus.aborted, code: 'replaced', message: event.message, retryAfterMs: event.retryAfterMs },
          now,
        )
      case 'disconnect':
        return this.#disconnect(event.code, event.message, now)
      case 'credentials':
        return this.#checkCredential()
      case 'plan':
        return this.#sendPlan()
      case 'flush':
        return this.#flush()
      case 'tick':
        return this.#tick(now)
      case 'finished':
        return this.#leave(
          { status: grpcStatus.ok, code: 'finished', message: 'the agent ended the stream', retryAfterMs: 0 },
          now,
        )
      case 'closed':
        return this.#ended(event.silentMs > 0 ? 'nothing was heard of it' : 'the connection ended', event.silentMs)
      default:
        event satisfies never
    }
  }

  // Who

  #opened(verdict: Verdict | undefined, now: number) {
    if (!verdict) return
    if ('refused' in verdict) return this.#unauthenticated()
    this.#phase = { tag: 'arriving', since: now, peer: verdict.peer }
  }

  // The same for every reason: nothing tells whether a cluster or a credential exists.
  #unauthenticated() {
    this.#end(grpcStatus.unauthenticated, 'unauthenticated', 'the credential is not accepted')
  }

  #checkCredential() {
    const peer = this.peer
    if (!peer || this.#world.stillValid(peer)) return
    this.#end(grpcStatus.unauthenticated, 'revoked', 'the credential is no longer valid')
  }

  #register(request: RegisterRequest, now: number) {
    const phase = this.#phase
    if (phase.tag !== 'arriving') {
      if (request.clusterName !== this.cluster) return this.#wrongCluster(request.clusterName)
      return this.#note('warn', {}, 'a second registration on one stream was ignored')
    }
    const peer = phase.peer ?? this.#named(request.token)
    if (!peer) return this.#unauthenticated()
    this.#phase = { tag: 'arriving', since: phase.since, peer }
    if (request.clusterName !== peer.cluster) return this.#wrongCluster(request.clusterName)
    if (!this.#world.stillValid(peer)) return this.#unauthenticated()
    if (!this.#world.knows(peer.cluster)) return this.#notConnected(peer.cluster)
    const { hello, version } = request
    if (hello) this.#welcome(peer, version, hello, now)
    else this.#welcomeOriginal(peer, version, now)
  }

  #named(token: string): Peer | undefined {
    const verdict = this.#world.verify(token)
    return 'peer' in verdict ? verdict.peer : undefined
  }

  #wrongCluster(claimed: string) {
    const name = JSON.stringify(claimed.slice(0, 80))
    this.#end(grpcStatus.permissionDenied, 'wrong_cluster', `the credential is not that of a cluster ${name}`)
  }

  #notConnected(cluster: string) {
    this.#end(
      grpcStatus.failedPrecondition,
      'not_connected',
      `cluster ${cluster} has no connection on this hub`,
      30_000,
    )
  }

  #enter(
    peer: Peer,
    identity: string,
    facts: Pick<Open, 'version' | 'protocol' | 'origin' | 'clock' | 'plan'>,
    now: number,
  ): Open {
    const place = this.#world.enter(peer.cluster, identity)
    const stream: Open = {
      ...facts,
      peer,
      place,
      version: facts.version.slice(0, 128),
      since: now,
      heartbeatAt: now,
      bufferedBatches: 0,
      bufferedBytes: 0,
      oldestBufferedAt: null,
      pending: undefined,
      heardTo: undefined,
      earliestAt: Number.POSITIVE_INFINITY,
      lostBatches: 0,
      sentPlan: undefined,
      delivering: false,
      views: new Map(),
      acks: [],
      queue: [],
      nodes: [],
    }
    this.#phase = { tag: 'open', stream }
    this.#effects.push({ kind: 'facts', now: true })
    this.#note('info', { version: stream.version, protocol: stream.protocol, epoch: place.epoch }, 'an agent is here')
    return stream
  }

  #welcomeOriginal(peer: Peer, version: string, now: number) {
    this.#enter(
      peer,
      ORIGINAL_ORIGIN,
      { version, protocol: 'original', origin: ORIGINAL_ORIGIN, clock: new ClockOffset(), plan: '' },
      now,
    )
    this.#sendPlan()
  }

  #welcome(peer: Peer, version: string, hello: Hello, now: number) {
    const { limits } = this.#world
    if (!namesItself(hello))
      return this.#end(grpcStatus.invalidArgument, 'invalid_hello', 'the hello names no usable origin or time')
    const agreed = negotiate(hello)
    if (!agreed)
      return this.#end(
        grpcStatus.failedPrecondition,
        'version',
        'this hub and this agent have no version in common',
        300_000,
      )
    const clock = new ClockOffset()
    clock.compare(hello.nowMs, now)
    const facts = {
      version,
      protocol: agreed.version,
      origin: hello.origin,
      clock,
      plan: hello.planVersion.slice(0, 128),
    }
    const stream = this.#enter(peer, hello.origin, facts, now)
    stream.heardTo = this.#world.heardTo(peer.cluster, hello.origin)
    const { oldestSequence: first, newestSequence: last } = hello
    stream.pending = isSequence(first) && isSequence(last) && first <= last ? [first, last] : 'empty'
    const received = this.#world.received(peer.cluster, hello.origin)
    this.#send({
      case: 'welcome',
      value: {
        version: agreed.version,
        capabilities: [...agreed.capabilities],
        // The newest runs: what is left out is sent again and dropped here.
        received: received.slice(-MAX_RECEIVED_RANGES).map(([first, last]) => ({ first, last })),
        nowMs: now,
        maxMessageBytes: limits.maxMessageBytes,
        backlogBytesPerSecond: limits.backlogBytesPerSecond,
        epoch: stream.place.epoch,
        maxUnacked: limits.maxUnacked,
      },
    })
    this.#sendPlan()
  }

  // What is to be collected

  #sendPlan() {
    if (this.#phase.tag !== 'open') return
    const { stream } = this.#phase
    const plan = this.#world.planOf(stream.peer.cluster)
    if (!plan || plan.version === stream.sentPlan) return
    const first = stream.sentPlan === undefined
    stream.sentPlan = plan.version
    if (stream.protocol !== 'original') {
      this.#send({ case: 'plan', value: { version: plan.version, json: encodePlan(plan) } })
      return
    }
    // An original takes a message without sources for "none", and gets none where there are none from the beginning.
    if (first && plan.sources.length === 0) return
    const encoder = new TextEncoder()
    const sources = plan.sources.map((source) => encoder.encode(JSON.stringify(source)))
    this.#send({ case: 'config', value: { metricSourcesJson: sources, defaultIntervalSeconds: 0 } })
  }

  // What comes

  #message(bytes: Uint8Array, now: number) {
    if (this.#phase.tag === 'leaving') return
    this.#rate.take(bytes.length, now)
    if (this.#rate.isFarOver(now))
      return this.#end(grpcStatus.resourceExhausted, 'rate', 'the stream sends more than it may', 60_000)
    const phase = this.#phase
    if (phase.tag === 'open' && phase.stream.protocol === 'original') {
      const read = readOriginal(bytes, phase.stream.nodes)
      if (read) {
        phase.stream.heartbeatAt = now
        const { metrics, nodes } = read
        return this.#original(phase.stream, { metrics, bytes: bytes.length, read: { nodes, told: bytes } }, now)
      }
    }
    let request: ConnectRequest
    try {
      request = decodeRequest(bytes)
    } catch {
      return this.#end(grpcStatus.invalidArgument, 'malformed', 'a message is not of this protocol')
    }
    const { payload } = request
    if (payload.case === undefined) return
    if (payload.case === 'register') return this.#register(payload.value, now)
    if (this.#phase.tag !== 'open')
      return this.#end(grpcStatus.failedPrecondition, 'not_registered', 'the first message must be the registration')
    const { stream } = this.#phase
    stream.heartbeatAt = now
    switch (payload.case) {
      case 'metrics':
        return this.#original(stream, { metrics: payload.value, bytes: bytes.length }, now)
      case 'health':
        return this.#health(stream, payload.value, now)
      case 'frame':
        return this.#frame(stream, payload.value, bytes.length, now)
      case 'loss':
        return this.#loss(stream, payload.value, bytes.length, now)
      default:
        payload satisfies never
    }
  }

  #health(stream: Open, health: HealthReport, now: number) {
    if (health.clusterName !== '' && health.clusterName !== stream.peer.cluster)
      return this.#wrongCluster(health.clusterName)
    const amount = (value: number) => (Number.isFinite(value) && value > 0 ? Math.round(value) : 0)
    stream.bufferedBatches = amount(health.bufferedBatches)
    stream.bufferedBytes = amount(health.bufferedBytes)
    stream.lostBatches = amount(health.lostBatches)
    const theirs = millisecondsOf(health.timestamp)
    if (theirs !== undefined) stream.clock.compare(theirs, now)
    stream.oldestBufferedAt =
      health.oldestBufferedMs > 0
        ? correctTime({ collectedAt: health.oldestBufferedMs, offsetMs: stream.clock.ms ?? 0, now }).at
        : null
    if (stream.protocol !== 'original') stream.plan = health.planVersion.slice(0, 128)
    this.#effects.push({ kind: 'facts', now: false })
  }

  #frame(stream: Open, frame: Frame, bytes: number, now: number) {
    if (stream.protocol === 'original') return this.#notNegotiated()
    const { sequence, base } = frame
    this.#count('frame')
    if (!isSequence(sequence)) {
      this.#refuse(0, new FrameRefusedError('it has no sequence'))
      return this.#bad(now)
    }
    if (this.#isUnderWay(sequence)) return
    this.#rate.inflate(Math.max(0, Math.min(frame.bodyBytes, this.#world.limits.maxBodyBytes)), now)
    const known = base === 0 ? undefined : stream.views.get(base)
    if (base !== 0 && !known) return this.#withoutView(stream, sequence)
    const { collectedAtMs: collectedAt, ageMs } = frame
    // Sent as soon as it was collected: what the clock showed then it shows still.
    if (!frame.backfill && ageMs !== undefined && ageMs >= 0 && ageMs < FRESH_MS && Number.isFinite(collectedAt))
      stream.clock.compare(collectedAt + ageMs, now)
    const time = correctTime({ collectedAt, ageMs, offsetMs: stream.clock.ms ?? 0, now })
    if (time.corrected) this.#count('time_corrected')
    this.#lookForRestored(stream, sequence, time.at, now)
    try {
      const head = { cluster: stream.peer.cluster, origin: stream.origin, collectedAt: time.at }
      const decoded = decodeFrame(frame, head, known, this.#world.limits)
      const { view } = decoded
      const batch = this.#planned(stream, decoded.batch)
      const ticket = this.#open({ bytes: bytes + frame.bodyBytes, sequence, work: { kind: 'frame', batch, view } }, now)
      this.#accept(ticket, 0)
    } catch (error) {
      if (error instanceof WireError && error.code === 'base_mismatch') return this.#resync(sequence)
      this.#refuse(sequence, FleetError.from(error))
      this.#bad(now)
    }
  }

  /**
   * What we acknowledged, so that the agent has it no more, and have not ourselves: our folder was put back from an older copy. Looked for
   * once per stream, as soon as all that its buffer held has arrived, its declared losses among it.
   */
  #lookForRestored(stream: Open, sequence: number, at: number, now: number) {
    const { pending } = stream
    if (!pending) return
    stream.earliestAt = Math.min(stream.earliestAt, at)
    const from = pending === 'empty' ? sequence : pending[0]
    const received = this.#world.received(stream.peer.cluster, stream.origin)
    if (pending !== 'empty' && missingFrom(received, pending).length > 0) return
    stream.pending = undefined
    // What came before the first that we know may have gone to another hub.
    const known = received[0]?.[0] ?? from
    const lost = known < from ? missingFrom(received, [known, from - 1]) : []
    const [first] = lost
    if (!first) return
    this.#note('warn', { lost }, 'what was received of an agent is not here any more: it is declared lost')
    const loss: Loss = {
      origin: stream.origin,
      sequence: first[0],
      lost: lost.slice(0, MAX_RESTORED_RANGES),
      from: Math.min(stream.heardTo ?? stream.earliestAt, stream.earliestAt),
      to: stream.earliestAt,
      cause: 'restored',
      count: sizeOf(lost),
      keptEveryMs: 0,
    }
    this.#accept(this.#open({ bytes: 0, sequence: loss.sequence, work: { kind: 'loss', loss } }, now), 0)
  }

  /** A sound agent sends a bad frame now and then at most, as of a buffer that was damaged. */
  #bad(now: number) {
    const { maxBadFrames } = this.#world.limits
    this.#badFrames = [...this.#badFrames.filter((at) => now - at < 60_000), now].slice(-maxBadFrames)
    if (this.#badFrames.length >= maxBadFrames)
      this.#end(grpcStatus.invalidArgument, 'bad_frames', 'too many frames were no batches', 60_000)
  }

  #planned(stream: Open, given: Batch): Batch {
    const { batch, dropped } = plannedOnly(given, this.#world.planOf(stream.peer.cluster))
    for (let i = 0; i < dropped; i++) this.#count('unplanned')
    return batch
  }

  // A repeat needs no base: it is here already.
  #withoutView(stream: Open, sequence: number) {
    if (hasSequence(this.#world.received(stream.peer.cluster, stream.origin), sequence)) {
      this.#count('duplicate')
      return this.#ack(stream, sequence)
    }
    this.#resync(sequence)
  }

  #resync(sequence: number) {
    this.#count('resync')
    this.#send({ case: 'resync', value: {} })
    this.#sendRefusal(sequence, { code: 'base_mismatch', error: 'the base is not known here', retryAfterMs: 0 })
  }

  #loss(stream: Open, message: LossMessage, bytes: number, now: number) {
    if (stream.protocol === 'original') return this.#notNegotiated()
    this.#count('loss')
    if (this.#isUnderWay(message.sequence)) return
    try {
      const loss = lossOf(message, stream.origin)
      const ticket = this.#open({ bytes, sequence: loss.sequence, work: { kind: 'loss', loss } }, now)
      this.#accept(ticket, 0)
    } catch (error) {
      this.#refuse(message.sequence, FleetError.from(error))
      this.#bad(now)
    }
  }

  #notNegotiated() {
    this.#end(grpcStatus.failedPrecondition, 'not_negotiated', 'frames were not agreed on at the registration')
  }

  // Originals

  #original(stream: Open, queued: Queued, now: number) {
    const { metrics, bytes } = queued
    if (metrics.clusterName !== stream.peer.cluster) return this.#wrongCluster(metrics.clusterName)
    this.#count('original')
    if (bytes > this.#world.limits.maxOriginalMessageBytes)
      return this.#refuseOriginal(metrics.batchId, `the batch of ${bytes} bytes is too large`)
    this.#heldBytes += bytes
    stream.queue.push(queued)
    this.#nextOriginal(stream, now)
  }

  #nextOriginal(stream: Open, now: number) {
    while (this.#tickets.size === 0) {
      const next = stream.queue.shift()
      if (!next) return
      this.#heldBytes -= next.bytes
      this.#takeOriginal(stream, next, now)
    }
  }

  #takeOriginal(stream: Open, { metrics, bytes, read }: Queued, now: number) {
    const { originals } = stream.place
    const { batchId } = metrics
    if (batchId !== '' && originals.recent.includes(batchId)) {
      this.#count('duplicate')
      return this.#send(originalAck(batchId, ''))
    }
    const collectedAt = millisecondsOf(metrics.collectedAt) ?? Number.NaN
    const time = correctOriginalTime({ collectedAt, offsetMs: stream.clock.ms ?? 0, now })
    if (time.corrected) this.#count('time_corrected')
    const sequence = originals.last + 1
    try {
      const head = { cluster: stream.peer.cluster, origin: ORIGINAL_ORIGIN, sequence, collectedAt: time.at }
      const plan = this.#world.planOf(stream.peer.cluster)
      const hashOf = (source: string) => (plan && sourcesOf(plan).get(source)?.hash) ?? ''
      const batch = this.#planned(stream, batchFromOriginal(metrics, head, hashOf, read?.nodes))
      originals.last = sequence
      if (read) stream.nodes = read.nodes
      const told = read?.told
      const ticket = this.#open({ bytes, sequence, work: { kind: 'original', batch, batchId, told } }, now)
      this.#accept(ticket, 0)
    } catch (error) {
      this.#refuseOriginal(batchId, FleetError.from(error).message)
    }
  }

  #refuseOriginal(batchId: string, why: string) {
    this.#count('refused')
    this.#note('warn', { batchId, error: why }, 'a batch of a collector was refused')
    this.#send(originalAck(batchId, why.slice(0, 1024)))
  }

  // What is under way

  #open(ticket: Omit<Ticket, 'since' | 'attempt'>, now: number): number {
    const id = this.#nextTicket++
    this.#tickets.set(id, { ...ticket, since: now, attempt: 0 })
    this.#heldBytes += ticket.bytes
    return id
  }

  #close(id: number): Ticket | undefined {
    const ticket = this.#tickets.get(id)
    if (!ticket) return undefined
    this.#tickets.delete(id)
    this.#heldBytes -= ticket.bytes
    if (ticket.attempt > 0) this.#retrying--
    return ticket
  }

  #isUnderWay(sequence: number): boolean {
    for (const ticket of this.#tickets.values()) if (ticket.sequence === sequence) return true
    return false
  }

  #accept(id: number, afterMs: number) {
    const work = this.#tickets.get(id)?.work
    const cluster = this.cluster
    if (!work || !cluster) return
    if (work.kind === 'loss') this.#effects.push({ kind: 'lost', ticket: id, cluster, loss: work.loss, afterMs })
    else {
      const view = work.kind === 'frame' && hasChanges(work.batch) ? work.view : undefined
      const told = work.kind === 'original' ? work.told : undefined
      this.#effects.push({ kind: 'accept', ticket: id, batch: work.batch, view, told, afterMs })
    }
  }

  #accepted(id: number, now: number) {
    const ticket = this.#close(id)
    const stream = this.#stream
    if (!ticket || !stream) return
    const { work } = ticket
    if (work.kind === 'original') {
      const { recent } = stream.place.originals
      recent.push(work.batchId)
      if (recent.length > RECENT_ORIGINALS) recent.shift()
      this.#send(originalAck(work.batchId, ''))
    } else {
      this.#ack(stream, ticket.sequence)
      if (work.kind === 'frame' && !work.batch.backfill) keepView(stream.views, ticket.sequence, work.view)
    }
    if (work.kind !== 'loss' && !work.batch.backfill) this.#delivers(stream)
    if (stream.protocol === 'original') this.#nextOriginal(stream, now)
  }

  #delivers(stream: Open) {
    if (stream.delivering) return
    stream.delivering = true
    this.#effects.push({ kind: 'facts', now: true })
  }

  #failed(id: number, error: FleetError, now: number) {
    const ticket = this.#tickets.get(id)
    const stream = this.#stream
    if (!ticket || !stream) return
    const { work } = ticket
    if (error instanceof ClusterNotConnectedError) return this.#notConnected(stream.peer.cluster)
    if (error instanceof BaseMismatchError && work.kind === 'frame') {
      // The hub has read the cluster meanwhile, or acks were on their way: told whole, it needs no base.
      if (hasChanges(work.batch) || work.batch.base !== undefined) {
        work.batch = withoutBase(work.batch, work.view)
        return this.#accept(id, 0)
      }
    } else if (error.retryable && now - ticket.since < this.#holdMs(work.kind)) {
      if (ticket.attempt++ === 0) {
        this.#retrying++
        this.#count('held')
      }
      return this.#accept(
        id,
        Math.min(2_000, 100 * 2 ** Math.min(ticket.attempt, 5)) * (0.5 + this.#world.random() / 2),
      )
    }
    this.#close(id)
    if (work.kind === 'original') {
      const { originals } = stream.place
      if (originals.last === ticket.sequence) originals.last--
      this.#refuseOriginal(work.batchId, error.message)
      this.#nextOriginal(stream, now)
    } else this.#refuse(ticket.sequence, error)
  }

  #holdMs(kind: Ticket['work']['kind']): number {
    const { holdMs, holdOriginalMs } = this.#world.limits
    return kind === 'original' ? holdOriginalMs : holdMs
  }

  // Answers

  #ack(stream: Open, sequence: number) {
    if (stream.acks.length === 0) this.#effects.push({ kind: 'flush' })
    stream.acks = addSequence(stream.acks, sequence)
  }

  #flush() {
    const stream = this.#stream
    if (!stream || stream.acks.length === 0) return
    const received = stream.acks.map(([first, last]) => ({ first, last }))
    stream.acks = []
    this.#send({ case: 'ack', value: { ...emptyAck, success: true, received } })
  }

  #refuse(sequence: number, error: FleetError) {
    if (!error.retryable) {
      this.#count('refused')
      this.#note('warn', { sequence, code: error.code, error: error.message }, 'a frame of an agent was refused')
      return this.#sendRefusal(sequence, { code: error.code, error: error.message, retryAfterMs: undefined })
    }
    const retryAfterMs = Math.round(2_000 + 3_000 * this.#world.random())
    this.#sendRefusal(sequence, { code: error.code, error: error.message, retryAfterMs })
  }

  #sendRefusal(
    sequence: number,
    { code, error, retryAfterMs }: { code: string; error: string; retryAfterMs: number | undefined },
  ): void {
    this.#send({
      case: 'ack',
      value: {
        ...emptyAck,
        error: error.slice(0, 1024),
        received: isSequence(sequence) ? [{ first: sequence, last: sequence }] : [],
        retryable: retryAfterMs !== undefined,
        retryAfterMs: retryAfterMs ?? 0,
        code,
      },
    })
  }

  // The end

  #disconnect(code: string, message: string, now: number) {
    if (code === 'revoked') return this.#end(grpcStatus.unauthenticated, code, message)
    this.#leave({ status: grpcStatus.unavailable, code, message, retryAfterMs: 0 }, now)
  }

  // What is under way is acknowledged first: the agent need not send it again.
  #leave(farewell: Farewell, now: number) {
    if (this.#phase.tag === 'arriving')
      return this.#end(farewell.status, farewell.code, farewell.message, farewell.retryAfterMs)
    if (this.#phase.tag !== 'open') return
    const { stream } = this.#phase
    stream.queue.length = 0
    this.#phase = { tag: 'leaving', stream, until: now + this.#world.limits.goodbyeMs, farewell }
  }

  #leaveWhenDone(now: number) {
    if (this.#phase.tag !== 'leaving') return
    const { farewell, until } = this.#phase
    if (this.#tickets.size > 0 && now < until) return
    this.#flush()
    this.#end(farewell.status, farewell.code, farewell.message, farewell.retryAfterMs)
  }

  #end(status: number, code: string, message: string, retryAfterMs = 0) {
    // Originals know no goodbye; the status of the call tells them.
    if (status !== grpcStatus.ok && this.#stream?.protocol !== 'original')
      this.#send({ case: 'goodbye', value: { code, message, retryAfterMs } })
    this.#effects.push({ kind: 'end', status, code, message })
    this.#ended(message)
  }

  #ended(reason: string, silentMs = 0) {
    this.#silentMs = silentMs
    const farewell = this.#phase.tag === 'leaving' ? this.#phase.farewell.message : reason
    this.#phase = { tag: 'ended', stream: this.#stream, reason: farewell }
    this.#tickets.clear()
    this.#heldBytes = 0
    this.#effects.push({ kind: 'facts', now: true })
  }

  #tick(now: number) {
    this.#checkCredential()
    if (this.#phase.tag === 'arriving' && now - this.#phase.since > this.#world.limits.registerMs)
      this.#end(grpcStatus.unauthenticated, 'unauthenticated', 'no registration came in time')
  }

  #send(answer: Answer) {
    this.#effects.push({ kind: 'send', answer })
  }

  #count(what: Counted) {
    this.#effects.push({ kind: 'count', what })
  }

  #note(level: 'debug' | 'info' | 'warn', facts: object, sentence: string) {
    this.#effects.push({ kind: 'note', level, facts, sentence })
  }
}

const emptyAck = { batchId: '', success: false, error: '', received: [], retryable: false, retryAfterMs: 0, code: '' }

const originalAck = (batchId: string, error: string): Answer => ({
  case: 'ack',
  value: { ...emptyAck, batchId, success: error === '', error },
})

function keepView(views: Map<number, BatchView>, sequence: number, view: BatchView): void {
  views.set(sequence, view)
  const oldest = views.keys().next().value
  if (views.size > KEPT_VIEWS && oldest !== undefined) views.delete(oldest)
}

/** undefined: absent, or out of every reason */
function millisecondsOf(timestamp: Timestamp | undefined): number | undefined {
  if (!timestamp) return undefined
  const ms = Number(timestamp.seconds) * 1000 + timestamp.nanos / 1e6
  return Number.isFinite(ms) && ms > 0 ? ms : undefined
}

type Timestamp = NonNullable<HealthReport['timestamp']>
