import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { AgentStatus } from '#agent'
import { FleetError } from '#model'
import { boundConnections, CONNECTION_TIMES, type Logger, type Metrics, type Part } from '#runtime'
import type { AgentConfig } from './config.ts'
import type { InventoryReport } from './inventory-options.ts'

export interface ProbesOptions {
  readonly address: AgentConfig['healthAddress']
  readonly metrics: Metrics
  readonly logger: Logger
  /** how inventory is doing; absent: it is not collected */
  readonly inventory?: () => InventoryReport
  /** false: inventory alone says whether we are ready. Default true */
  readonly hasHub?: boolean
  /** undefined before the agent is open */
  readonly status: () => AgentStatus | undefined
  /** for people, where there is no agent yet; default: nothing was collected yet */
  readonly waitsFor?: () => string
  /** of this program, for both answers */
  readonly version: string
  /** told the port that was taken */
  readonly onListening: (port: number) => void
}

class HealthPortTakenError extends FleetError {
  override readonly name = 'HealthPortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true
}

/**
 * `/healthz`: the process lives; it also tells of a disk that takes nothing, which a restart would not cure. `/readyz`: one
 * round was collected, whether the hub answers or not; without a hub: inventory runs, or waits for what it says. `/metrics`: the
 * Prometheus text format.
 */
export function probesPart({
  address,
  metrics,
  logger,
  status,
  waitsFor,
  version,
  onListening,
  inventory,
  hasHub = true,
}: ProbesOptions): Part {
  const isReady = () => {
    const { collection } = status() ?? {}
    return hasHub
      ? collection !== undefined && collection.rounds > collection.failedRounds
      : inventory?.().phase !== 'reading'
  }
  const handler: RequestListener = (request, response) => {
    const answer = (code: number, body: object) =>
      response.writeHead(code, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
    const now = status()
    switch (request.url?.split('?')[0]) {
      case '/healthz':
        answer(200, {
          ...{ status: now?.buffer.fault === undefined ? 'ok' : 'degraded', version },
          ...(now && facts(now)),
          ...(inventory && { inventory: inventory() }),
        })
        return
      case '/readyz':
        if (isReady()) answer(200, { status: 'ready', version })
        else
          answer(503, {
            status: 'not ready',
            version,
            error:
              now?.collection.lastFailure ??
              waitsFor?.() ??
              (hasHub ? undefined : inventory?.().message) ??
              'nothing was collected yet',
          })
        return
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
    async start() {
      const { host, port, orFree = false } = address
      const moved = (free: number) => {
        logger.info(
          { taken: port, port: free },
          '/healthz, /readyz and /metrics are on a free port, as theirs is taken',
        )
        return free
      }
      const isTaken = (error: NodeJS.ErrnoException) => error.code === 'EADDRINUSE'
      const listening = await listen(server, host, port).catch((error: NodeJS.ErrnoException) => {
        if (isTaken(error) && orFree) return listen(server, host, 0).then(moved)
        const sentence = `port ${port} is taken by another program; choose another with HEALTH_ADDRESS`
        throw isTaken(error) ? new HealthPortTakenError(sentence, { cause: error }) : error
      })
      onListening(listening)
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
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
