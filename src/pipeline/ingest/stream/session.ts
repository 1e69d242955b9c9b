import { AGENT_ENDED, type AgentFacts, type ClusterName, type FleetError, HUB_STOPPED, ORIGINAL_ORIGIN } from '#model'
import { type ConnectRequest, decodeRequest, type HealthReport, type JoinRequest, type RegisterRequest } from '#wire'
import { ClusterNotConnectedError } from '../errors.ts'
import { grpcStatus } from '../line/grpc-status.ts'
import type { JoinStep } from '../line/join-desk.ts'
import type { Channel, ChannelContext } from './channel.ts'
import { ClockOffset } from './clock-offset.ts'
import { Effects } from './effects.ts'
import { Identity, notConnected } from './identity.ts'
import { InFlight } from './in-flight.ts'
import { OpenStream, type Registered } from './open-stream.ts'
import { OriginalBatches } from './original-batches.ts'
import { agreeOn, OwnFrames } from './own-frames.ts'
import { Plans } from './plans.ts'
import { StreamRate } from './rate.ts'
import type { Claimed, Effect, Farewell, SessionEvent, SessionWorld } from './session-events.ts'
import { Trust } from './trust.ts'
import type { Peer } from './types.ts'

/*
 * One stream, without its socket: what happens goes in as events, what is to be done comes out as effects. Nothing here
 * waits, reads a clock or knows gRPC, so that any order of events can be tried.
 *
 *   arriving ──register──► open ──goodbye──► leaving ──(acks are out)──► ended
 *       ├──join──► joining ─┴──────── refused, revoked, broken ─────────────┤
 *       └───────────────────────────────────────────────────────────────────┘
 *
 * Here is the life of the stream; who it is of, is in Identity, and what is spoken of once it is open, in channels. A message
 * is of the first channel that takes it. States and messages: docs/spec/wire.md.
 */

type Phase =
  | { readonly tag: 'arriving'; readonly since: number }
  /** it may become a member: nothing else is taken of it */
  | { readonly tag: 'joining'; readonly since: number }
  | { readonly tag: 'open' }
  | { readonly tag: 'leaving'; readonly until: number; readonly farewell: Farewell }
  | { readonly tag: 'ended'; readonly reason: string }

/** What there is from the registration on. */
interface Opened {
  readonly stream: OpenStream
  readonly plans: Plans
  readonly channels: readonly Channel[]
  /** undefined: the agent knows the hub otherwise, or takes no such word */
  readonly trust: Trust | undefined
}

export class Session {
  readonly #world: SessionWorld
  readonly #rate: StreamRate
  readonly #identity: Identity
  readonly #effects = new Effects()
  readonly #inFlight: InFlight
  /** ours, when the call came */
  readonly #arrivedAt: number
  #phase: Phase
  #opened: Opened | undefined
  #silentMs = 0

  constructor(world: SessionWorld, now: number) {
    this.#world = world
    this.#rate = new StreamRate(world.limits, now)
    this.#identity = new Identity(world)
    this.#inFlight = new InFlight(world, this.#effects)
    this.#phase = { tag: 'arriving', since: now }
    this.#arrivedAt = now
  }

  /** What is to be done because of the event, in this order. */
  on(event: SessionEvent, now: number): readonly Effect[] {
    if (this.hasEnded) return []
    this.#handle(event, now)
    this.#leaveWhenDone(now)
    return this.#effects.take()
  }

  /** 0: the next message may come; else ms to wait, or Infinity until something under way has ended. */
  readAfterMs(now: number): number {
    if (this.#phase.tag === 'leaving' || this.hasEnded || this.#inFlight.isFull) return Number.POSITIVE_INFINITY
    return this.#rate.waitMs(now)
  }

  get peer(): Peer | undefined {
    return this.#identity.peer
  }

  /** undefined before the registration */
  get cluster(): ClusterName | undefined {
    return this.#opened?.stream.registered.peer.cluster
  }

  get isDelivering(): boolean {
    return this.#phase.tag === 'open' && this.#opened?.stream.isDelivering === true
  }

  /** Registered, and not about to end: nothing of it waits for a moment. */
  get isOpen(): boolean {
    return this.#phase.tag === 'open'
  }

  /** Its credential counts, and it said who it is. */
  get isRegistered(): boolean {
    return this.#opened !== undefined
  }

  get hasEnded(): boolean {
    return this.#phase.tag === 'ended'
  }

  /** undefined before the registration */
  facts(now: number): AgentFacts | undefined {
    const connected = this.#phase.tag === 'open'
    return this.#opened?.stream.facts(this.#world, {
      connected,
      endedAt: now - this.#silentMs,
      reason: this.#reason(now),
    })
  }

  #reason(now: number): string {
    if (this.#phase.tag === 'leaving') return whyOf(this.#phase.farewell)
    if (this.#phase.tag === 'ended') return this.#phase.reason
    const doubt = this.#opened?.stream.registered.place.doubt
    return doubt && now < doubt.until ? doubt.message : ''
  }

  #handle(event: SessionEvent, now: number) {
    switch (event.kind) {
      case 'opened':
        if (event.verdict) this.#phase = { tag: 'arriving', since: now }
        return this.#endFor(this.#identity.present(event.verdict))
      case 'message':
        return this.#message(event.bytes, now)
      case 'accepted':
        return this.#inFlight.accepted(event.ticket, now)
      case 'failed':
        return this.#failed(event.ticket, event.error, now)
      case 'replaced': {
        const { message, retryAfterMs } = event
        return this.#leave({ status: grpcStatus.aborted, code: 'replaced', message, retryAfterMs }, now)
      }
      case 'disconnect': {
        const { code, message } = event
        if (code === 'revoked') return this.#end({ status: grpcStatus.unauthenticated, code, message })
        return this.#leave({ status: grpcStatus.unavailable, code, message }, now)
      }
      case 'credentials':
        return this.#endFor(this.#identity.check())
      case 'join':
        return this.#stepped(event.step)
      case 'plan':
        return this.#phase.tag === 'open' ? this.#opened?.plans.send() : undefined
      case 'trust':
        return this.#phase.tag === 'open' ? this.#opened?.trust?.tell() : undefined
      case 'flush':
        return this.#flush()
      case 'tick':
        return this.#tick(now)
      case 'finished':
        return this.#leave({ status: grpcStatus.ok, code: 'finished', message: AGENT_ENDED }, now)
      case 'closed':
        this.#silentMs = event.silentMs
        return this.#ended(event.why || 'the connection ended')
      default:
        event satisfies never
    }
  }

  #message(bytes: Uint8Array, now: number) {
    if (this.#phase.tag === 'leaving') return
    this.#rate.take(bytes.length, now)
    if (this.#rate.isFarOver(now)) {
      const message = 'the stream sends more than it may'
      return this.#end({ status: grpcStatus.resourceExhausted, code: 'rate', message, retryAfterMs: 60_000 })
    }
    const { stream, channels } = this.#opened ?? {}
    if (channels?.some((channel) => channel.read?.(bytes, now))) return stream?.heard(now)
    let request: ConnectRequest
    try {
      request = decodeRequest(bytes)
    } catch {
      const message = 'a message is not of this protocol'
      return this.#end({ status: grpcStatus.invalidArgument, code: 'malformed', message })
    }
    const { payload } = request
    if (payload.case === undefined) return
    if (payload.case === 'join') return this.#join(payload.value, now)
    if (payload.case === 'register' && this.#phase.tag !== 'joining') return this.#register(payload.value, now)
    const refuse = (code: string, message: string) =>
      this.#end({ status: grpcStatus.failedPrecondition, code, message })
    if (!stream) return refuse('not_registered', 'the first message must be the registration')
    stream.heard(now)
    if (payload.case === 'health') return this.#health(stream, payload.value, now)
    if (channels?.some((channel) => channel.take(payload, bytes.length, now))) return
    refuse('not_negotiated', 'frames were not agreed on at the registration')
  }

  #health(stream: OpenStream, health: HealthReport, now: number) {
    const other = health.clusterName === '' ? undefined : this.#identity.claim(health.clusterName)
    if (other) return this.#end(other)
    stream.health(health, now)
    this.#effects.add({ kind: 'facts', now: false })
  }

  #join(request: JoinRequest, now: number) {
    const end = (code: string, message: string) => this.#end({ status: grpcStatus.failedPrecondition, code, message })
    if (this.#phase.tag !== 'arriving') return end('malformed', 'a request to join comes first on a stream, and once')
    if (!this.#world.takesJoins) return end('not_negotiated', 'this hub takes no requests to join')
    this.#phase = { tag: 'joining', since: now }
    this.#effects.add({ kind: 'join', request })
  }

  #stepped(step: JoinStep) {
    if (this.#phase.tag !== 'joining') return
    switch (step.kind) {
      case 'pending': {
        const { request, message } = step
        return this.#effects.send({ case: 'joinState', value: { phase: 'pending', request, message } })
      }
      case 'joined': {
        const { request, certificate, roots } = step
        this.#effects.send({ case: 'joinState', value: { phase: 'joined', request, certificate, roots } })
        return this.#end({ status: grpcStatus.ok, code: 'joined', message: `request ${request} was granted` })
      }
      case 'over': {
        const { code, message, retryAfterMs = 0 } = step
        return this.#end({ status: statusOf[code], code, message, retryAfterMs })
      }
      default:
        step satisfies never
    }
  }

  #register(request: RegisterRequest, now: number) {
    if (this.#opened) {
      const other = this.#identity.claim(request.clusterName)
      if (other) return this.#end(other)
      return this.#effects.note('warn', {}, 'a second registration on one stream was ignored')
    }
    const peer = this.#identity.register(request)
    if ('status' in peer) return this.#end(peer)
    const { hello, version } = request
    const clock = new ClockOffset()
    if (!hello) {
      clock.waited(this.#arrivedAt, now)
      const original = { identity: ORIGINAL_ORIGIN, instance: '' }
      return this.#open(original, { peer, version, protocol: 'original', clock, plan: '' }, now)
    }
    const agreed = agreeOn(hello)
    if ('farewell' in agreed) return this.#end(agreed.farewell)
    clock.compare(hello.nowMs, now)
    const plan = hello.planVersion.slice(0, 128)
    const isTold = agreed.capabilities.includes('register') && peer.method === 'certificate'
    const trust = isTold ? new Trust(this.#world, this.#effects) : undefined
    const facts = { peer, version, protocol: agreed.version, clock, plan, ...(trust && { trust }) }
    const claimed = { identity: hello.origin, instance: hello.instance.slice(0, 64) }
    this.#open(claimed, facts, now, (context) => {
      const frames = new OwnFrames(context, hello)
      frames.welcome(agreed, now)
      clock.greeted(now)
      return [frames]
    })
  }

  /** @param own the channels of our protocol */
  #open(
    claimed: Claimed,
    { version, trust, ...facts }: Omit<Registered, 'place'> & { readonly trust?: Trust },
    now: number,
    own: (context: ChannelContext) => readonly Channel[] = () => [],
  ) {
    const place = this.#world.enter(facts.peer.cluster, claimed)
    const stream = new OpenStream({ ...facts, version: version.slice(0, 128), place }, now)
    const { protocol } = facts
    this.#effects.add({ kind: 'facts', now: true })
    this.#effects.note('info', { version: version.slice(0, 128), protocol, epoch: place.epoch }, 'an agent is here')
    const context: ChannelContext = {
      world: this.#world,
      identity: this.#identity,
      stream,
      effects: this.#effects,
      inFlight: this.#inFlight,
      rate: this.#rate,
      end: (farewell) => this.#end(farewell),
    }
    const plans = new Plans(context)
    this.#opened = { stream, plans, channels: [...own(context), new OriginalBatches(context)], trust }
    this.#phase = { tag: 'open' }
    plans.send()
    trust?.tell()
  }

  #failed(ticket: number, error: FleetError, now: number) {
    if (error instanceof ClusterNotConnectedError && this.cluster && this.#inFlight.has(ticket))
      return this.#end(notConnected(this.cluster))
    this.#inFlight.failed(ticket, error, now)
  }

  #flush() {
    for (const channel of this.#opened?.channels ?? []) channel.flush?.()
  }

  #tick(now: number) {
    this.#endFor(this.#identity.check())
    if (this.#phase.tag === 'joining' && now - this.#phase.since > this.#world.limits.joinMs) {
      const message = 'nobody decided yet; the request stays, ask again'
      return this.#end({ status: grpcStatus.unavailable, code: 'join_unavailable', message, retryAfterMs: 1_000 })
    }
    if (this.#phase.tag !== 'arriving' || now - this.#phase.since <= this.#world.limits.registerMs) return
    const message = 'no registration came in time'
    this.#end({ status: grpcStatus.unauthenticated, code: 'unauthenticated', message })
  }

  // What is under way is acknowledged first: the agent need not send it again.
  #leave(farewell: Farewell, now: number) {
    if (this.#phase.tag === 'arriving' || this.#phase.tag === 'joining') return this.#end(farewell)
    if (this.#phase.tag !== 'open') return
    for (const channel of this.#opened?.channels ?? []) channel.leave?.()
    this.#phase = { tag: 'leaving', until: now + this.#world.limits.goodbyeMs, farewell }
  }

  #leaveWhenDone(now: number) {
    if (this.#phase.tag !== 'leaving') return
    const { farewell, until } = this.#phase
    if (!this.#inFlight.isEmpty && now < until) return
    this.#flush()
    this.#end(farewell)
  }

  #endFor(farewell: Farewell | undefined) {
    if (farewell) this.#end(farewell)
  }

  #end({ status, code, message, retryAfterMs = 0 }: Farewell) {
    // Originals know no goodbye; the status of the call tells them.
    if (status !== grpcStatus.ok && this.#opened?.stream.registered.protocol !== 'original')
      this.#effects.send({ case: 'goodbye', value: { code, message, retryAfterMs } })
    this.#effects.add({ kind: 'end', status, code, message })
    this.#ended(whyOf({ code, message }))
  }

  #ended(said: string) {
    const reason = this.#phase.tag === 'leaving' ? whyOf(this.#phase.farewell) : said
    this.#phase = { tag: 'ended', reason }
    this.#inFlight.clear()
    if (this.#opened) this.#effects.note('info', { reason }, 'an agent went')
    this.#effects.add({ kind: 'facts', now: true })
  }
}

/** What stays to be read once the stream is over. */
const whyOf = ({ code, message }: Pick<Farewell, 'code' | 'message'>): string =>
  code === 'stopping' ? HUB_STOPPED : message

const statusOf: Readonly<Record<(JoinStep & { readonly kind: 'over' })['code'], number>> = {
  join_refused: grpcStatus.permissionDenied,
  join_denied: grpcStatus.permissionDenied,
  join_busy: grpcStatus.resourceExhausted,
  join_unavailable: grpcStatus.unavailable,
}
