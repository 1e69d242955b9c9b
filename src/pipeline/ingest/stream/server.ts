import {
  type Metadata,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { type AgentFacts, type Clock, type ClusterName, invariant, systemClock } from '#model'
import { type Logger, type Metrics, silentLogger } from '#runtime'
import { COLLECTOR_METHOD } from '#wire'
import { AgentCall, type RawCall } from './call.ts'
import { Gates } from './gate.ts'
import type { StreamIngester } from './ingest-port.ts'
import { defaultLimits, type StreamLimits } from './limits.ts'
import { Listener } from './listener.ts'
import { Refusals } from './refusals.ts'
import { LocalSeats, type Seat, type Seats } from './seats.ts'
import { grpcStatus } from './session.ts'
import { streamMetrics } from './stream-metrics.ts'
import type { Agents, PeerVerifier, PlanSource, Presented, ServerTls, Verdict } from './types.ts'

/** Where streams are received, and within which bounds. */
export interface ReceiveOptions {
  readonly host: string
  /** 0: any free one */
  readonly port: number
  /** `plaintext` must be asked for by name: tokens and numbers cross the network as they are */
  readonly tls: ServerTls | 'plaintext'
  readonly limits?: Partial<StreamLimits>
  readonly clock?: Clock
  readonly logger?: Logger
  readonly metrics?: Metrics
  readonly random?: () => number
}

export interface AgentServerOptions extends ReceiveOptions {
  readonly verifier: PeerVerifier
  readonly plans: PlanSource
  readonly ingester: StreamIngester
}

const MAX_STREAMS_PER_CONNECTION = 1_000
const WINDOW_BYTES = 256 * 1024
const MAX_TOKEN = 8_192
const STOP_PATIENCE_MS = 5_000

/**
 * The hub's end of the agents' streams. A peer proves who it is before anything it says is looked at; the credential names
 * the cluster. What it acknowledges is in the hub's log.
 */
export class AgentServer implements AsyncDisposable {
  readonly #options: ReceiveOptions
  readonly #limits: StreamLimits
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #grpc: Server
  readonly #gates = new Gates()
  readonly #calls = new Map<AgentCall, Seat>()
  readonly #unnamed = new Set<AgentCall>()
  readonly #seats: Seats
  readonly #local: LocalSeats | undefined
  readonly #refusals: Refusals
  readonly #count: ReturnType<typeof streamMetrics>
  #listener: Listener | undefined
  #sweep: NodeJS.Timeout | undefined
  #unlisten: (() => void) | undefined
  #stopping = false
  #idle: (() => void) | undefined

  private constructor(
    options: ReceiveOptions,
    hub: Pick<AgentServerOptions, 'verifier' | 'plans' | 'ingester'> | Seats,
  ) {
    const { clock = systemClock, logger = silentLogger } = options
    this.#options = options
    this.#limits = { ...defaultLimits, ...options.limits }
    this.#clock = clock
    this.#logger = logger
    this.#count = streamMetrics(options.metrics, () => this.#calls.size)
    if ('take' in hub) this.#seats = hub
    else {
      this.#local = new LocalSeats({
        ...hub,
        clock,
        logger,
        factsEveryMs: this.#limits.factsEveryMs,
        onContested: () => this.#count.contested(),
      })
      this.#seats = this.#local
    }
    this.#refusals = new Refusals(clock)
    this.#grpc = new Server({
      'grpc.max_receive_message_length': this.#limits.maxMessageBytes,
      'grpc.max_send_message_length': -1,
      'grpc.max_concurrent_streams': MAX_STREAMS_PER_CONNECTION,
      'grpc.keepalive_time_ms': this.#limits.keepaliveMs,
      'grpc.keepalive_timeout_ms': this.#limits.keepaliveTimeoutMs,
      'grpc-node.flow_control_window': WINDOW_BYTES,
      'grpc.enable_channelz': 0,
      interceptors: [this.#gates.interceptor],
    })
    this.#grpc.addService(service, { connect: (call: RawCall) => this.#called(call) } as UntypedServiceImplementation)
  }

  /**
   * Listens from when it resolves.
   * @throws ServerTlsError where the files cannot be used; the system's error where the port cannot be had
   */
  static start(options: AgentServerOptions): Promise<AgentServer> {
    return AgentServer.#start(new AgentServer(options, options))
  }

  /** The same where log, credentials and plans are in another process: `agents` are known there, and not here. */
  static startWith(options: ReceiveOptions, seats: Seats): Promise<AgentServer> {
    return AgentServer.#start(new AgentServer(options, seats))
  }

  static async #start(server: AgentServer): Promise<AgentServer> {
    const injector = server.#grpc.createConnectionInjector(ServerCredentials.createInsecure())
    const { host, port, tls } = server.#options
    server.#listener = await Listener.open({
      host,
      port,
      tls,
      limits: server.#limits,
      logger: server.#logger,
      onConnection: (socket) => injector.injectConnection(socket),
      onRefused: (why) => server.#count.refused(why),
    })
    server.#unlisten = server.#seats.onChange((kind, cluster) => server.#tellAll({ kind }, cluster))
    server.#sweep = setInterval(() => server.#swept(), server.#limits.sweepMs)
    return server
  }

  /** where it listens */
  get address(): { readonly host: string; readonly port: number } {
    return { host: this.#options.host, port: this.#listener?.port ?? 0 }
  }

  /** the live streams */
  get agents(): Agents {
    invariant(this.#local, 'agents are known where the log is')
    return this.#local.agents
  }

  get streams(): number {
    return this.#calls.size
  }

  /** Streams end with `stopping` once what is under way is acknowledged, in bounded time. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stopping) return
    this.#stopping = true
    this.#unlisten?.()
    const empty = new Promise<void>((resolve) => {
      this.#idle = resolve
    })
    for (const call of [...this.#calls.keys()]) call.disconnect('stopping', 'the hub is stopping')
    if (this.#calls.size > 0) {
      const patience = new AbortController()
      await Promise.race([empty, this.#clock.sleep(STOP_PATIENCE_MS, patience.signal)])
      patience.abort()
    }
    clearInterval(this.#sweep)
    await this.#seats[Symbol.asyncDispose]()
    this.#grpc.forceShutdown()
    await this.#listener?.[Symbol.asyncDispose]()
  }

  #called(call: RawCall) {
    const peer = call.getPeer()
    const address = peer.slice(0, Math.max(0, peer.lastIndexOf(':'))) || peer
    const refuse = (code: number, details: string) => void call.emit('error', { code, details })
    if (this.#stopping) return refuse(grpcStatus.unavailable, 'stopping: the hub is stopping')
    const gate = this.#gates.of(call.metadata)
    if (!gate || this.#calls.size >= this.#limits.maxStreams) {
      this.#count.refused('streams')
      return refuse(grpcStatus.unavailable, 'busy: the hub has as many streams as it may')
    }
    const presented = presentedBy(call, address)
    const isNamed = presented.token !== undefined || presented.certificate !== undefined
    if (this.#refusals.isClosedTo(address) || (!isNamed && this.#unnamed.size >= this.#limits.maxUnnamed)) {
      this.#count.refused('unnamed')
      return refuse(grpcStatus.unauthenticated, 'unauthenticated: the credential is not accepted')
    }
    const seat = this.#seats.take(presented)
    const agent = new AgentCall({
      call,
      gate,
      world: {
        ...seat.world,
        limits: this.#limits,
        tls: this.#options.tls !== 'plaintext',
        verify: (token) => this.#noted(presented, seat.world.verify(token)),
        enter: (cluster, identity, holder) => seat.enter(cluster, identity, holder),
        random: this.#options.random ?? Math.random,
      },
      ...(seat.prepare && { prepare: (message: Uint8Array) => seat.prepare?.(message) }),
      ingester: seat.ingester,
      logger: this.#logger.child({ peer }),
      now: () => this.#clock.now(),
      sleep: (ms, signal) => this.#clock.sleep(ms, signal),
      goodbyeMs: this.#limits.goodbyeMs,
      refused: (signal) => {
        this.#count.refused('unauthenticated')
        return this.#refusals.hold(address, signal)
      },
      facts: (one, facts, now) => this.#facts(one, seat, facts, now),
      count: (what) => this.#count.message(what),
      received: (bytes) => this.#count.bytes(bytes),
      ended: (one, code) => this.#ended(one, code),
      closed: () => seat.ended(),
      drop: () => this.#listener?.drop(peer),
    })
    this.#calls.set(agent, seat)
    if (!isNamed) this.#unnamed.add(agent)
    const verdict = isNamed ? seat.opened() : undefined
    agent.open(
      verdict instanceof Promise
        ? verdict.then((one) => this.#noted(presented, one))
        : verdict && this.#noted(presented, verdict),
    )
  }

  #noted(presented: Presented, verdict: Verdict): Verdict {
    // Why stays here: the other end learns nothing.
    if ('refused' in verdict)
      this.#logger.warn({ address: presented.address, refused: verdict.refused }, 'a credential was not accepted')
    return verdict
  }

  #facts(call: AgentCall, seat: Seat, facts: AgentFacts | undefined, now: boolean): void {
    const cluster = call.session.cluster
    if (!facts || !cluster) return
    this.#unnamed.delete(call)
    seat.facts(cluster, call, facts, now)
  }

  #ended(call: AgentCall, code: string): void {
    this.#unnamed.delete(call)
    if (!this.#calls.delete(call)) return
    if (code !== '') this.#count.ended(code)
    if (this.#calls.size === 0) this.#idle?.()
  }

  #tellAll(event: { readonly kind: 'credentials' | 'plan' | 'tick' }, cluster?: ClusterName): void {
    for (const call of [...this.#calls.keys()]) {
      if (cluster === undefined || call.session.cluster === cluster) call.tell(event)
    }
  }

  #swept(): void {
    this.#tellAll({ kind: 'tick' })
    const now = this.#clock.now()
    for (const [call, seat] of this.#calls) this.#facts(call, seat, call.facts(now), false)
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

function presentedBy(call: RawCall, address: string): Presented {
  const token = bearerOf(call.metadata)
  const certificate = call.getAuthContext().sslPeerCertificate
  return {
    address,
    ...(token !== undefined && { token }),
    ...(certificate && {
      certificate: {
        commonName: String(certificate.subject?.CN ?? ''),
        subjectAltName: certificate.subjectaltname ?? '',
        fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
        notAfter: Date.parse(certificate.valid_to),
      },
    }),
  }
}

function bearerOf(metadata: Metadata): string | undefined {
  const [header] = metadata.get('authorization')
  if (typeof header !== 'string' || header.length > MAX_TOKEN) return undefined
  const token = /^bearer +(\S+)$/i.exec(header)?.[1]
  return token
}
