import { Server, ServerCredentials, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js'
import { type AgentFacts, type Clock, type OwnerPlace, ownerName, systemClock } from '#model'
import { type Logger, type Metrics, silentLogger } from '#runtime'
import { COLLECTOR_METHOD, type JoinRequest } from '#wire'
import { grpcStatus } from '../line/grpc-status.ts'
import type { HubTrust, JoinDesk, JoinStep } from '../line/join-desk.ts'
import { defaultLimits, type StreamLimits } from '../line/limits.ts'
import type { Arrival } from '../line/line.ts'
import type { Presented } from '../line/presented.ts'
import { Relay } from '../relay/relay.ts'
import { AgentCall } from './call.ts'
import { Gates } from './gate.ts'
import { GrpcLine, type RawCall } from './grpc-line.ts'
import type { StreamIngester } from './ingest-port.ts'
import { Listener, NOT_CUT } from './listener.ts'
import { ByteBudget } from './message-reader.ts'
import { Offenders } from './offenders.ts'
import { presentedBy, showsCredential } from './presented.ts'
import { Refusals } from './refusals.ts'
import { Seats } from './seats.ts'
import { streamMetrics } from './stream-metrics.ts'
import type { Agents, PeerVerifier, PlanSource, ServerTls, Verdict } from './types.ts'

/** Where streams are received, from whom, and within which bounds. */
export interface AgentServerOptions {
  readonly host: string
  /** 0: any free one */
  readonly port: number
  /** `plaintext` must be asked for by name: tokens and numbers cross the network as they are */
  readonly tls: ServerTls | 'plaintext'
  /** of all clusters, whoever owns them */
  readonly verifier: PeerVerifier
  readonly plans: PlanSource
  readonly ingester: StreamIngester
  /** who is no member yet may ask here to become one; absent: nobody may */
  readonly joins?: JoinDesk
  /** by what this hub is known, told to members; asked now and then. Default: not told */
  readonly trust?: () => HubTrust
  /**
   * This process owns a part of the clusters only: streams of the others are brought to their owners, and theirs come here,
   * by sockets in this directory, which nobody else may look into. Absent: it owns all.
   */
  readonly others?: { readonly place: OwnerPlace; readonly directory: string }
  readonly limits?: Partial<StreamLimits>
  readonly clock?: Clock
  readonly logger?: Logger
  readonly metrics?: Metrics
  readonly random?: () => number
}

const MAX_STREAMS_PER_CONNECTION = 1_000
const STOP_PATIENCE_MS = 5_000
const UNANSWERED_MS = 300_000

/**
 * The hub's end of the agents' streams. A peer proves who it is before anything it says is looked at; the credential names
 * the cluster. What it acknowledges is in the hub's log.
 */
export class AgentServer implements AsyncDisposable {
  readonly #options: AgentServerOptions
  readonly #limits: StreamLimits
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #process: string | undefined
  readonly #grpc: Server
  readonly #gates: Gates
  readonly #calls = new Set<AgentCall>()
  readonly #unnamed = new Set<AgentCall>()
  readonly #seats: Seats
  readonly #refusals: Refusals
  readonly #offenders: Offenders
  readonly #count: ReturnType<typeof streamMetrics>
  #relay: Relay | undefined
  #listener: Listener | undefined
  #sweep: NodeJS.Timeout | undefined
  #unlisten: (() => void)[] = []
  #stopping = false
  #idle: (() => void) | undefined

  private constructor(options: AgentServerOptions) {
    const { clock = systemClock, logger = silentLogger, ingester, others } = options
    this.#options = options
    this.#limits = { ...defaultLimits, ...options.limits }
    this.#clock = clock
    this.#logger = logger
    this.#process = others && ownerName(others.place)
    const newcomers = new ByteBudget(this.#limits.maxNewcomerBytes)
    this.#count = streamMetrics(options.metrics, {
      streams: () => this.#calls.size + (this.#relay?.waiting ?? 0),
      newcomerBytes: () => newcomers.held,
      ...(others && { relayed: () => this.#relay?.carried ?? 0 }),
    })
    this.#seats = new Seats({
      ingester,
      clock,
      logger,
      factsEveryMs: this.#limits.factsEveryMs,
      sweepMs: this.#limits.sweepMs,
      onContested: () => this.#count.contested(),
    })
    this.#refusals = new Refusals(clock)
    this.#offenders = new Offenders(clock, this.#limits.maxBadFrames)
    this.#gates = new Gates({ limits: this.#limits, newcomers, onRefused: (why) => this.#count.refused(why) })
    this.#grpc = new Server({
      // Bounded by the gates, which know of whom a message is.
      'grpc.max_receive_message_length': -1,
      'grpc.max_send_message_length': -1,
      'grpc.max_concurrent_streams': MAX_STREAMS_PER_CONNECTION,
      // The library asks; who does not answer is found by the listener. Its own timer would take our pause for their silence.
      'grpc.keepalive_time_ms': this.#limits.pingMs,
      'grpc.keepalive_timeout_ms': UNANSWERED_MS,
      'grpc.max_connection_idle_ms': this.#limits.idleMs,
      'grpc.enable_channelz': 0,
      interceptors: [this.#gates.interceptor],
    })
    this.#grpc.addService(service, { connect: (call: RawCall) => this.#called(call) } as UntypedServiceImplementation)
  }

  /**
   * Listens from when it resolves.
   * @throws ServerTlsError where the files cannot be used; RelayDirectoryError where others could reach the sockets between
   *   owners; the system's error where port or socket cannot be had
   */
  static async start(options: AgentServerOptions): Promise<AgentServer> {
    const server = new AgentServer(options)
    const { host, port, tls, others, verifier, plans } = options
    if (others && others.place.of > 1) server.#relay = await server.#openRelay(others)
    const injector = server.#grpc.createConnectionInjector(ServerCredentials.createInsecure())
    try {
      server.#listener = await Listener.open({
        host,
        port,
        tls,
        limits: server.#limits,
        logger: server.#logger,
        isSlow: (address) => server.#offenders.isSlow(address),
        isRevoked: (certificate) => {
          const verdict = verifier.verify({ certificate, address: '' })
          return 'refused' in verdict && verdict.refused === 'revoked'
        },
        onConnection: (socket) => injector.injectConnection(socket),
        onRefused: (why) => server.#count.refused(why),
      })
    } catch (error) {
      await server.#relay?.[Symbol.asyncDispose]()
      throw error
    }
    server.#unlisten = [
      verifier.onChange((clusters) => {
        server.#listener?.doubtCertificates()
        server.#changed('credentials', clusters)
      }),
      plans.onChange((cluster) => server.#changed('plan', cluster === undefined ? undefined : [cluster])),
    ]
    server.#sweep = setInterval(() => server.#swept(), server.#limits.sweepMs)
    return server
  }

  /** where it listens */
  get address(): { readonly host: string; readonly port: number } {
    return { host: this.#options.host, port: this.#listener?.port ?? 0 }
  }

  /** the live streams of clusters that are owned here */
  get agents(): Agents {
    return this.#seats.agents
  }

  /** that came here, or belong here */
  get streams(): number {
    return this.#calls.size + (this.#relay?.waiting ?? 0) + (this.#relay?.carried ?? 0)
  }

  /** Streams end with `stopping` once what is under way is acknowledged, in bounded time. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    for (const end of this.#unlisten) end()
    const relayed = this.#relay?.stop()
    for (const call of [...this.#calls]) call.stopping()
    const patience = new AbortController()
    await Promise.race([Promise.all([this.#empty(), relayed]), this.#clock.sleep(STOP_PATIENCE_MS, patience.signal)])
    patience.abort()
    clearInterval(this.#sweep)
    await this.#seats[Symbol.asyncDispose]()
    this.#grpc.forceShutdown()
    await this.#relay?.[Symbol.asyncDispose]()
    await this.#listener?.[Symbol.asyncDispose]()
  }

  #empty(): Promise<void> {
    if (this.#calls.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#idle = resolve
    })
  }

  #openRelay({ place, directory }: NonNullable<AgentServerOptions['others']>): Promise<Relay> {
    return Relay.open({
      place,
      directory,
      limits: this.#limits,
      logger: this.#logger,
      now: () => this.#clock.now(),
      serve: (arrival, first) => this.#serve(arrival, first),
      serveRelayed: (arrival, first) => {
        if (!this.#isRefused(arrival, () => showsCredential(arrival.presented))) this.#serve(arrival, first)
      },
      onOwnerAway: (streams) => this.#count.ended('owner_away', streams),
    })
  }

  #called(call: RawCall) {
    const peer = call.getPeer()
    const address = peer.slice(0, Math.max(0, peer.lastIndexOf(':'))) || peer
    const gate = this.#gates.of(call.metadata)
    if (!gate)
      return void call.emit('error', { code: grpcStatus.unavailable, details: 'busy: it came without its gate' })
    const presented = presentedBy(call, address)
    const line = new GrpcLine({
      call,
      gate,
      goodbyeMs: this.#limits.goodbyeMs,
      drop: () => this.#listener?.drop(peer),
      cut: this.#listener?.cutOf(peer) ?? NOT_CUT,
    })
    const arrival = { line, peer, presented, since: this.#clock.now() }
    // Who is not known here waits among those who showed nothing: the owner of the cluster may know better.
    const isProven = () =>
      showsCredential(presented) && (!this.#relay || 'peer' in this.#options.verifier.verify(presented))
    if (this.#isRefused(arrival, isProven)) return
    if (this.#relay) this.#relay.take(arrival, isProven())
    else this.#serve(arrival)
  }

  /** Says so to the peer, where nothing of it is to be looked at. Failures count where the cluster is: see Refusals. */
  #isRefused({ line, presented }: Arrival, isProven: () => boolean): boolean {
    const { maxStreams, maxUnnamed } = this.#limits
    const unproven = this.#unnamed.size + (this.#relay?.unproven ?? 0)
    if (this.#stopping) line.end(grpcStatus.unavailable, 'stopping: the hub is stopping')
    else if (this.streams >= maxStreams) {
      this.#count.refused('streams')
      line.end(grpcStatus.unavailable, 'busy: the hub has as many streams as it may')
    } else if (this.#refusals.isClosedTo(presented.address) || (unproven >= maxUnnamed && !isProven())) {
      this.#count.refused('unnamed')
      line.end(grpcStatus.unauthenticated, 'unauthenticated: the credential is not accepted')
    } else return false
    return true
  }

  /** @param first its first message, where that was waited for */
  #serve(arrival: Arrival, first?: Uint8Array): AgentCall {
    const { line, peer, presented, since } = arrival
    const { verifier, plans, ingester, joins, trust, tls, random = Math.random } = this.#options
    const verify = (shown: Presented) => this.#noted(shown, verifier.verify(shown))
    const call = new AgentCall({
      line,
      since,
      world: {
        limits: this.#limits,
        tls: tls !== 'plaintext',
        ...(this.#process !== undefined && { process: this.#process }),
        verify: (token) => verify({ ...presented, token }),
        stillValid: (one) => verifier.stillValid(one),
        whyEnded: (one) => verifier.whyEnded?.(one),
        pauseMs: (one) => this.#offenders.pauseMs(one),
        badFrame: (one) => this.#offenders.badFrame(one),
        knows: (cluster) => ingester.knows(cluster),
        takesJoins: joins !== undefined,
        ...(trust && { trust }),
        received: (cluster, origin) => ingester.received(cluster, origin),
        heardTo: (cluster, origin) => ingester.heardTo(cluster, origin),
        planOf: (cluster) => plans.planOf(cluster),
        enter: (cluster, claimed, holder) =>
          this.#seats.enter(cluster, claimed, { address: presented.address, key: presented.certificate?.key }, holder),
        random,
      },
      ingester,
      logger: this.#logger.child({ peer }),
      now: () => this.#clock.now(),
      sleep: (ms, signal) => this.#clock.sleep(ms, signal),
      refused: (signal) => {
        this.#count.refused('unauthenticated')
        return this.#refusals.hold(presented.address, signal)
      },
      join: (one, request, signal) => this.#join(one, request, presented.address, signal),
      facts: (one, facts, now) => this.#facts(one, facts, now),
      count: (what) => this.#count.message(what),
      received: (bytes) => this.#count.bytes(bytes),
      ended: (one, code) => this.#ended(one, code, presented.address),
    })
    this.#calls.add(call)
    const isNamed = showsCredential(presented)
    if (!isNamed) this.#unnamed.add(call)
    call.open(isNamed ? verify(presented) : undefined, first)
    return call
  }

  async *#join(call: AgentCall, request: JoinRequest, address: string, signal: AbortSignal): AsyncIterable<JoinStep> {
    const { joins } = this.#options
    if (!joins) return
    const { token, clusterName: cluster, agentName: agent, csr, version, certificate, proof } = request
    const asked = { token, cluster, agent, csr, version, certificate, proof, address }
    // What it showed counts: it is no longer one of those who showed nothing.
    yield* joins.ask(asked, signal, () => this.#unnamed.delete(call))
  }

  #noted(presented: Presented, verdict: Verdict): Verdict {
    // Why stays here: the other end learns nothing.
    if ('refused' in verdict && verdict.refused !== 'not_yet')
      this.#logger.warn({ address: presented.address, refused: verdict.refused }, 'a credential was not accepted')
    return verdict
  }

  #facts(call: AgentCall, facts: AgentFacts | undefined, now: boolean): void {
    const cluster = call.session.cluster
    if (!facts || !cluster) return
    this.#unnamed.delete(call)
    this.#seats.facts(cluster, call, facts, now)
  }

  #ended(call: AgentCall, code: string, address: string): void {
    this.#unnamed.delete(call)
    if (!this.#calls.delete(call)) return
    if (code !== '') this.#count.ended(code, 1)
    this.#offenders.ended(code, call.session.peer, address)
    if (this.#calls.size === 0) this.#idle?.()
  }

  /** @param clusters default: all */
  #changed(what: 'credentials' | 'plan', clusters?: Iterable<string>): void {
    if (clusters) for (const cluster of clusters) this.#seats.tell(cluster, what)
    else for (const call of [...this.#calls]) call.changed(what)
  }

  #swept(): void {
    this.#relay?.sweep()
    this.#listener?.sweep()
    const now = this.#clock.now()
    for (const call of [...this.#calls]) {
      if (!call.takesTurn()) continue
      call.tell({ kind: 'tick' })
      if (this.#options.trust) call.tell({ kind: 'trust' })
      this.#facts(call, call.facts(now), false)
    }
    this.#seats.sweep()
  }
}

const asBuffer = (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
const asIs = (bytes: Buffer) => bytes

// Messages pass as bytes: what they say is looked at where their sender is known.
const service: ServiceDefinition = {
  connect: {
    path: COLLECTOR_METHOD,
    requestStream: true,
    responseStream: true,
    requestSerialize: asBuffer,
    requestDeserialize: asIs,
    responseSerialize: asBuffer,
    responseDeserialize: asIs,
  },
}
