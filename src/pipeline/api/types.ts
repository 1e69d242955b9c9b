import type { FastifyInstance } from 'fastify'
import type { Access, Semantics } from '#access'
import type { Attention } from '#attention'
import type { AuditTrail } from '#audit'
import type { SourceCatalog } from '#catalog'
import type { EventBus } from '#events'
import type { HistoryStore } from '#history'
import type { FillingView, Access as Rule } from '#http'
import type { Identity, IdentityConfig } from '#identity'
import type { CompiledSource } from '#metricsource'
import type { Clock, DecideMember, LackedRights, MemberReader, MemberRequestReader, RowsPart } from '#model'
import type { RegistryReader } from '#registry'
import type { Logger, Metrics } from '#runtime'
import type { NodeSeries, StateReader } from '#state'

/** A bucket that fills at `perSecond` and holds `burst`: per person, and per address for those we do not know. */
export interface RateLimit {
  readonly perSecond: number
  readonly burst: number
}

/** PEM texts. */
export interface TlsConfig {
  readonly cert: string
  readonly key: string
  /** asks callers for a certificate; who signed it is judged where the proxy is believed or not (#identity) */
  readonly clientCa?: string
}

/** Where and how the HTTP API listens; durations in ms, sizes in bytes. */
export interface ApiConfig {
  readonly host: string
  /** 0: any free port */
  readonly port: number
  /** as given to `openIdentity`: a server on which nobody signs in answers on loopback only */
  readonly identity: Pick<IdentityConfig, 'localAdministrator' | 'publicUrl' | 'oidc'>
  /** without it the server speaks plain HTTP, for loopback and behind proxies */
  readonly tls?: TlsConfig
  /** origins that may read across sites; trimmed; "*" alone is anyone, without credentials; default none */
  readonly corsOrigins?: readonly string[]
  /** names besides localhost that a loopback server answers to */
  readonly allowedHosts?: readonly string[]
  /** of one request; default 30 s */
  readonly requestTimeoutMs?: number
  /** as given to `openAccess`, for administrators to read; default strict */
  readonly semantics?: Semantics
  /** a sentence for everybody: why nothing proves that what is answered is whole; absent: it is */
  readonly provisional?: string
  /** default 200 requests per second, bursts of 400; a local administrator has no limit */
  readonly rateLimit?: RateLimit
  /** HTTP connections open at once; default 2048 */
  readonly maxConnections?: number
  /** of one request body where the route says nothing else; default 16 KiB */
  readonly bodyLimitBytes?: number
  /** of encoded answers kept; default 64 MiB */
  readonly bodyCacheBytes?: number
  /** of all open streams; default 2000 */
  readonly maxStreams?: number
  /** unsent bytes of one stream before it is told to begin again; default 1 MiB */
  readonly streamBufferBytes?: number
  /** how often one caller, at one address, may open streams; default 10 a second, bursts of 100 */
  readonly streamOpens?: RateLimit
  /** seals the ids of streams; the same for all processes that answer for one fleet; default one of this process */
  readonly streamKey?: string
  /** changes within this time travel together; default 50 ms */
  readonly streamGatherMs?: number
  /** how long a lost store is answered from memory before 503; default 10 s */
  readonly storeGraceMs?: number
}

/**
 * Collects from a cluster through the hub's own way in.
 * @returns undefined: the hub has no way into this cluster (an agent pushes, or another process of the hub reads it)
 */
export type SourceTrial = (
  cluster: string,
  source: CompiledSource,
  options: { readonly limit: number; readonly signal: AbortSignal },
) => Promise<RowsPart | undefined>

/** Who is a member, who asks to be one, and how that is decided. */
export interface ServedMembers {
  readonly members: MemberReader
  readonly requests: MemberRequestReader
  readonly decide: DecideMember
  readonly lackedRights: LackedRights
  /** the hub is its own API, so that its administrators may decide without rights there */
  readonly administratorsDecide: boolean
}

/** What the HTTP API answers from. */
export interface ApiOptions {
  readonly state: StateReader
  readonly events: EventBus
  readonly identity: Identity
  readonly access: Access
  /** what was refused and, as it is configured, what was asked; without it nothing is kept */
  readonly audit?: AuditTrail
  /** which MetricSources are in force; without it there are no types */
  readonly catalog?: SourceCatalog
  /** told of clusters whose usage is shown; without it usage is read as often as ever */
  readonly attention?: Pick<Attention, 'look'>
  /** without it there are no registries */
  readonly registries?: RegistryReader
  /** without it the hub has no members, and nobody can ask to be one */
  readonly members?: ServedMembers
  /** reads a cluster once with a source that is in force nowhere; without it nothing can be tried against a cluster here */
  readonly trySource?: SourceTrial
  /** without it, routes of history answer 501 */
  readonly history?: HistoryStore
  /** how far the past of a cluster has been filled; undefined: it is not being filled */
  readonly filling?: (cluster: string) => FillingView | undefined
  /** samples of nodes for where there is no history */
  readonly series?: NodeSeries
  readonly config: ApiConfig
  readonly logger: Logger
  readonly clock: Clock
  readonly version: string
  /** the built web page; without it `/` says how to build it */
  readonly webRoot?: string
  /** ours are added, and all are served at /metrics */
  readonly metrics: Metrics
  /** further checks of /readyz, of what the hub hears: a text is the reason why not, and why nothing new is known */
  readonly readiness?: Readonly<Record<string, () => string | undefined>>
  /** further checks of /readyz alone */
  readonly checks?: Readonly<Record<string, () => string | undefined>>
}

/** A route as it is served, with who may call it. */
export interface RegisteredRoute {
  readonly method: string
  readonly url: string
  readonly access: Rule
}

/** The HTTP API while it listens. */
export interface ApiServer extends AsyncDisposable {
  /** For tests and for further routes before `start`. */
  readonly app: FastifyInstance
  /** Every route that is served, after `app.ready()`, with who may call it. */
  registered(): readonly RegisteredRoute[]
  /**
   * Listens.
   * @returns the address, such as http://127.0.0.1:8080
   * @throws the system's error where the port is taken
   */
  start(): Promise<string>
  /** Ends streams, lets requests finish, closes. Safe to repeat. */
  stop(): Promise<void>
}
