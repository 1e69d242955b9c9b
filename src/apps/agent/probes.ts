import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AgentStatus } from '#agent'
import { FleetError } from '#model'
import { boundConnections, CONNECTION_TIMES, type Logger, type Metrics, type Part } from '#runtime'
import type { AgentConfig } from './config.ts'
import type { InventoryReport } from './inventory-options.ts'
import type { Leadership } from './leadership.ts'

/** What the answers are about. */
export interface Probed {
  /** undefined before the agent is open */
  readonly status: () => AgentStatus | undefined
  /** how inventory is doing; absent: it is not collected */
  readonly inventory?: () => InventoryReport
  /** whether it leads among its replicas; absent: it is the only one */
  readonly leadership?: Pick<Leadership, 'isLeading' | 'waitsFor'>
  /** false: inventory alone says whether we are ready. Default true */
  readonly hasHub?: boolean
  /** for people, where there is no agent yet; default: nothing was collected yet */
  readonly waitsFor?: () => string
}

export interface ProbesOptions {
  readonly address: AgentConfig['healthAddress']
  readonly metrics: Metrics
  readonly logger: Logger
  readonly about: Probed
  /** of this program, for both answers */
  readonly version: string
}

class HealthPortTakenError extends FleetError {
  override readonly name = 'HealthPortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true
}

/** Listens once, from when its process may be asked to its end: who waits to become a member is found where the member is. */
export interface Probes extends Part {
  /** Begins to listen, and says where; once, however often it is asked. */
  start(): Promise<void>
  /** undefined before it listens */
  readonly port: number | undefined
  readonly metrics: Metrics
  /** From now on the answers are about this. */
  tellOf(about: Probed): void
}

/**
 * `/healthz`: the process lives; it also tells of a disk that takes nothing, which a restart would not cure. `/readyz`: one
 * round was collected, and the hub did not say that it does not serve this agent; whether it answers or not is not of the agent.
 * Without a hub: inventory runs, or waits for what it says; a replica that stands by for another one is ready. `/metrics`: the Prometheus text format.
 */
export function agentProbes({ address, metrics, logger, version, ...options }: ProbesOptions): Probes {
  let { about } = options
  let at: number | undefined
  /** Why it is not ready; undefined: it is. */
  const lacking = (): string | undefined => {
    const { status, inventory, waitsFor, leadership, hasHub = true } = about
    if (leadership && !leadership.isLeading) return undefined
    const now = status()
    if (!hasHub && inventory?.().phase !== 'reading') return undefined
    if (now && now.collection.rounds > now.collection.failedRounds)
      return now.uplink.refusal && `the hub does not serve it: ${now.uplink.refusal}`
    const told = now?.collection.lastFailure ?? waitsFor?.() ?? (hasHub ? undefined : inventory?.().message)
    return told ?? 'nothing was collected yet'
  }
  const handler: RequestListener = (request, response) => {
    const answer = (code: number, body: object) =>
      response.writeHead(code, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
    const { status, inventory, leadership } = about
    const now = status()
    switch (request.url?.split('?')[0]) {
      case '/healthz':
        answer(200, {
          ...{ status: now?.buffer.fault === undefined ? 'ok' : 'degraded', version },
          ...(now && facts(now)),
          ...(leadership && { leading: leadership.isLeading }),
          ...(leadership && !leadership.isLeading && { standsBy: leadership.waitsFor() }),
          ...(inventory && { inventory: inventory() }),
        })
        return
      case '/readyz': {
        const error = lacking()
        if (error === undefined) answer(200, { status: 'ready', version, state: stateOf(now, leadership) })
        else answer(503, { status: 'not ready', version, error })
        return
      }
      case '/metrics':
        metrics.registry.metrics().then(
          (text) => response.writeHead(200, { 'content-type': metrics.registry.contentType }).end(text),
          (error: unknown) => answer(500, { error: String(error), code: 'unexpected' }),
        )
        return
      default:
        answer(404, { error: 'there are /healthz, /readyz and /metrics', code: 'route_not_found' })
    }
  }
  const server = createServer({ requestTimeout: 10_000, ...CONNECTION_TIMES }, handler)
  boundConnections(server, { listener: 'HEALTH_ADDRESS', max: 256, logger, metrics })
  return {
    name: 'probes',
    metrics,
    get port() {
      return at
    },
    tellOf(next) {
      about = next
    },
    async start() {
      if (at !== undefined) return
      at = await listenAt(server, address)
      logger.info(
        { port: at, ...(address.port !== 0 && at !== address.port && { taken: address.port }) },
        'serves /healthz, /readyz and /metrics',
      )
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** @throws HealthPortTakenError where another program has the port, and no other one does */
async function listenAt(server: Server, { host, port, orFree = false }: AgentConfig['healthAddress']): Promise<number> {
  try {
    return await listen(server, host, port)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    if (orFree) return listen(server, host, 0)
    const sentence = `port ${port} is taken by another program; choose another with HEALTH_ADDRESS`
    throw new HealthPortTakenError(sentence, { cause: error })
  }
}

/** @returns the port */
function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

/** How one that is ready stands. */
function stateOf(now: AgentStatus | undefined, leadership: Probed['leadership']): string {
  if (leadership && !leadership.isLeading) return `stands by: ${leadership.waitsFor()}`
  if (!now) return 'without a hub'
  const { phase, awaySince, reason } = now.uplink
  if (phase === 'live' || awaySince === undefined) return 'served by the hub'
  return `not connected to the hub since ${new Date(awaySince).toISOString()} (${reason}): batches are buffered`
}

function facts({ uplink, buffer, collection, findings }: AgentStatus): object {
  return {
    hub: uplink.phase === 'live' ? 'connected' : uplink.reason,
    ...(uplink.awaySince !== undefined && { hubAwaySince: new Date(uplink.awaySince).toISOString() }),
    bufferedBatches: buffer.batches,
    lostBatches: buffer.lostBatches,
    ...(buffer.fault !== undefined && { buffer: buffer.fault }),
    ...(collection.lastFailure !== undefined && { collection: collection.lastFailure }),
    ...(findings.length > 0 && { config: findings }),
  }
}
