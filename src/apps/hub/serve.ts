import { readFileSync } from 'node:fs'
import { type Access, openAccess, type PolicySource } from '#access'
import { type ApiOptions, type ApiServer, apiServer, type ServedMembers, type SourceTrial } from '#api'
import type { Attention } from '#attention'
import { type AuditTrail, openAudit } from '#audit'
import type { SourceCatalog } from '#catalog'
import type { EventBus } from '#events'
import type { HistoryStore } from '#history'
import { type Identity, openIdentity, type RevocationStore } from '#identity'
import type { KubeClient } from '#kube'
import { FleetError, systemClock } from '#model'
import { type RedisConnection, sharedKey } from '#redis'
import type { RegistryReader } from '#registry'
import type { Metrics, Part } from '#runtime'
import type { NodeSeries, StateReader } from '#state'
import type { WebConfig } from './config.ts'
import { type HubLogger, part } from './run.ts'
import { webRoot } from './web-root.ts'

/** The port for people is taken: says by whom to ask and what to do. */
export class PortTakenError extends FleetError {
  override readonly name = 'PortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true

  constructor(host: string, port: number, options?: ErrorOptions) {
    super(
      `port ${port} on ${host} is taken by another program; stop it, or choose another with API_PORT or --port (0 takes a free one)`,
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
  /** how far the past of a cluster is filled, while it is */
  readonly filling?: ApiOptions['filling']
  /** samples of nodes, where routes of history answer 501 */
  readonly series?: () => NodeSeries
  readonly policies: () => PolicySource
  readonly catalog: () => SourceCatalog
  readonly registries: () => RegistryReader
  /** absent: this hub has no members */
  readonly members?: () => ServedMembers
  /** told of clusters whose usage is shown */
  readonly attention?: () => Attention
  /** reads a cluster once for a preview; only where this process has the way in */
  readonly trySource?: SourceTrial
  /** the API server of the hub, where tokens are reviewed and groups read */
  readonly hub?: () => KubeClient
  /** shared by replicas, so that a sign-out counts in each; default: this process */
  readonly revocations?: () => RevocationStore
  /** of the audit stream */
  readonly redis?: RedisConnection
  readonly metrics: Metrics
  readonly logger: HubLogger
  readonly version: string
  /** told to everybody: why nothing proves that what is answered is whole */
  readonly provisional?: string
  readonly readiness?: Readonly<Record<string, () => string | undefined>>
  readonly checks?: Readonly<Record<string, () => string | undefined>>
}

/** Ids of streams that one process gives are known in the others. */
const STREAM_KEY = 'clusterpulse:stream-key'

/** The page and the API as parts, in order; `address()` after they started. */
export interface Serving {
  readonly parts: readonly Part[]
  address(): string
  /** undefined before it is open */
  audit(): AuditTrail | undefined
}

export function serving(options: ServeOptions): Serving {
  const { web, metrics, logger } = options
  let trail: AuditTrail | undefined
  const audit = part<AuditTrail>('audit', async () => {
    trail = await openAudit({
      config: web.access.audit,
      ...(options.redis && { redis: options.redis }),
      logger: logger.child({ part: 'audit' }),
      metrics,
    })
    return trail
  })
  const identity = part<Identity>('identity', () =>
    openIdentity({
      config: web.access.identity,
      ...(options.hub && web.access.needsHub && { kube: options.hub() }),
      ...(options.revocations && { revocations: options.revocations() }),
      clock: systemClock,
      logger: logger.child({ part: 'identity' }),
      metrics,
    }),
  )
  const { serve, address } = servePart(options, () => ({ identity: identity.get(), audit: audit.get() }))
  return { parts: [audit, identity, serve], address, audit: () => trail }
}

function servePart(
  options: ServeOptions,
  opened: () => { readonly identity: Identity; readonly audit: AuditTrail },
): { readonly serve: Part; address(): string } {
  const { web, state, events, history, metrics, logger, version, readiness, checks } = options
  let server: ApiServer | undefined
  let address = ''
  const serve: Part = {
    name: 'api',
    async start() {
      const root = webRoot()
      const store = history?.()
      const { tls, semantics, administrators } = web.access
      const streamKey =
        web.access.identity.session?.secret ??
        // What an original manager writes is read, and nothing is added to it.
        (options.redis && options.provisional === undefined ? await sharedKey(options.redis, STREAM_KEY) : undefined)
      const access: Access = openAccess({ source: options.policies(), semantics, administrators, clock: systemClock })
      server = apiServer({
        state: state(),
        events: events(),
        access,
        catalog: options.catalog(),
        registries: options.registries(),
        ...(options.members && { members: options.members() }),
        ...(options.attention && { attention: options.attention() }),
        ...(options.trySource && { trySource: options.trySource }),
        ...opened(),
        config: {
          host: web.host,
          identity: web.access.identity,
          semantics,
          ...(options.provisional !== undefined && { provisional: options.provisional }),
          port: web.port,
          corsOrigins: web.corsOrigins,
          maxConnections: web.maxConnections,
          ...(streamKey !== undefined && { streamKey }),
          ...(web.rateLimit && { rateLimit: web.rateLimit }),
          ...(tls && {
            tls: {
              cert: readFileSync(tls.certFile, 'utf8'),
              key: readFileSync(tls.keyFile, 'utf8'),
              ...(tls.clientCaPem !== undefined && { clientCa: tls.clientCaPem }),
            },
          }),
        },
        logger: logger.child({ part: 'api' }),
        clock: systemClock,
        version,
        metrics,
        ...(store && { history: store }),
        ...(options.filling && { filling: options.filling }),
        ...(options.series && { series: options.series() }),
        ...(root !== undefined && { webRoot: root }),
        ...(readiness && { readiness }),
        ...(checks && { checks }),
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
  }
  return { serve, address: () => address }
}
