import type { FastifyInstance } from 'fastify'
import type { AccessFilter } from '#access'
import type { EventBus } from '#events'
import type { HistoryStore } from '#history'
import type { Clock } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { StateReader } from '#state'

/**
 * How a request gets its principal. Headers are never believed by default: in `trusted-proxy` the peer's address must be
 * listed, or it must know the secret, or both where both are given.
 */
export type AuthenticationConfig =
  /** whoever reaches the port is the administrator: for loopback only, refused elsewhere */
  | { readonly mode: 'local-administrator'; readonly username?: string }
  | {
      readonly mode: 'trusted-proxy'
      /** default X-Forwarded-User */
      readonly userHeader?: string
      /** default X-Forwarded-Email */
      readonly emailHeader?: string
      /** comma list; default X-Forwarded-Groups */
      readonly groupsHeader?: string
      /** addresses or CIDR blocks of the proxies */
      readonly trustedPeers: readonly string[]
      readonly sharedSecret?: { readonly header: string; readonly value: string }
      /** the proxy's sign-out page; none: logout says nothing of it */
      readonly signOutUrl?: string
    }
  /** the documented development user; all three conditions are stated, so that none is met by accident */
  | {
      readonly mode: 'development'
      readonly environment: 'development'
      readonly proxyEnabled: false
      readonly developmentUserEnabled: true
    }

export interface ApiConfig {
  readonly host: string
  /** 0: any free port */
  readonly port: number
  readonly authentication: AuthenticationConfig
  /** origins that may read across sites; trimmed; "*" alone is anyone, without credentials; default none */
  readonly corsOrigins?: readonly string[]
  /** names besides localhost that a loopback server answers to */
  readonly allowedHosts?: readonly string[]
  /** of one request; default 30 s */
  readonly requestTimeoutMs?: number
  /** of one request body; default 16 KiB: no route reads one */
  readonly bodyLimitBytes?: number
  /** of encoded answers kept; default 64 MiB */
  readonly bodyCacheBytes?: number
  /** of all open streams; default 2000 */
  readonly maxStreams?: number
  /** unsent bytes of one stream before it is told to begin again; default 1 MiB */
  readonly streamBufferBytes?: number
  /** changes within this time travel together; default 50 ms */
  readonly streamGatherMs?: number
  /** how long a lost store is answered from memory before 503; default 10 s */
  readonly storeGraceMs?: number
}

export interface ApiOptions {
  readonly state: StateReader
  readonly events: EventBus
  readonly access: AccessFilter
  /** without it, routes of history answer 501 */
  readonly history?: HistoryStore
  readonly config: ApiConfig
  readonly logger: Logger
  readonly clock: Clock
  readonly version: string
  /** the built web page; without it `/` says how to build it */
  readonly webRoot?: string
  /** ours are added, and all are served at /metrics */
  readonly metrics: Metrics
  /** further checks of /readyz: a text is the reason why not */
  readonly readiness?: Readonly<Record<string, () => string | undefined>>
}

export interface ApiServer extends AsyncDisposable {
  /** For tests and for further routes before `start`. */
  readonly app: FastifyInstance
  /**
   * Listens.
   * @returns the address, such as http://127.0.0.1:8080
   * @throws the system's error where the port is taken
   */
  start(): Promise<string>
  /** Ends streams, lets requests finish, closes. Safe to repeat. */
  stop(): Promise<void>
}
