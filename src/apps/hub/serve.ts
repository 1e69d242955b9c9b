import { administratorsOnly } from '#access'
import { type ApiConfig, type ApiServer, type AuthenticationConfig, apiServer } from '#api'
import type { EventBus } from '#events'
import type { HistoryStore } from '#history'
import { FleetError, systemClock } from '#model'
import type { Metrics, Part } from '#runtime'
import type { StateReader } from '#state'
import type { WebConfig } from './config.ts'
import type { HubLogger } from './run.ts'
import { webRoot } from './web-root.ts'

/** The port for people is taken: says by whom to ask and what to do. */
export class PortTakenError extends FleetError {
  override readonly name = 'PortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true

  constructor(host: string, port: number, options?: ErrorOptions) {
    super(
      `port ${port} on ${host} is taken by another program; stop it, or choose another with --port (0 takes a free one)`,
      options,
    )
  }
}

export interface ServeOptions {
  readonly web: WebConfig
  readonly state: () => StateReader
  readonly events: () => EventBus
  /** undefined: routes of history answer 501 */
  readonly history?: () => HistoryStore | undefined
  readonly metrics: Metrics
  readonly logger: HubLogger
  readonly version: string
  readonly readiness?: Readonly<Record<string, () => string | undefined>>
}

/** The page and the API as a part; `address()` after it started. */
export function servePart({
  web,
  state,
  events,
  history,
  metrics,
  logger,
  version,
  readiness,
}: ServeOptions): Part & { address(): string } {
  let server: ApiServer | undefined
  let address = ''
  return {
    name: 'api',
    async start() {
      const root = webRoot()
      const store = history?.()
      server = apiServer({
        state: state(),
        events: events(),
        access: administratorsOnly({ users: web.adminUsers, groups: web.adminGroups }),
        config: apiConfig(web),
        logger: logger.child({ part: 'api' }),
        clock: systemClock,
        version,
        metrics,
        ...(store && { history: store }),
        ...(root !== undefined && { webRoot: root }),
        ...(readiness && { readiness }),
      })
      try {
        address = await server.start()
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE')
          throw new PortTakenError(web.host, web.port, { cause: error })
        throw error
      }
    },
    stop: async () => server?.stop(),
    address: () => address,
  }
}

function apiConfig(web: WebConfig): ApiConfig {
  return { host: web.host, port: web.port, corsOrigins: web.corsOrigins, authentication: authentication(web) }
}

function authentication(web: WebConfig): AuthenticationConfig {
  switch (web.signIn) {
    case 'local-administrator':
      return { mode: 'local-administrator' }
    case 'development':
      return { mode: 'development', environment: 'development', proxyEnabled: false, developmentUserEnabled: true }
    case 'trusted-proxy':
      return {
        mode: 'trusted-proxy',
        userHeader: web.userHeader,
        emailHeader: web.emailHeader,
        groupsHeader: web.groupsHeader,
        trustedPeers: web.trustedProxies,
        ...(web.trustedProxySecret !== undefined && {
          sharedSecret: { header: 'X-ClusterPulse-Proxy-Secret', value: web.trustedProxySecret },
        }),
      }
  }
}
