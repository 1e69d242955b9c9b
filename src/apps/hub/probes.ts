import { createServer, type RequestListener, type Server } from 'node:http'
import { FleetError } from '#model'
import { boundConnections, CONNECTION_TIMES, type Logger, type Metrics, type Part } from '#runtime'
import type { Address } from './config.ts'

export interface ProbesOptions {
  readonly metricsAddress: Address
  readonly healthAddress: Address
  /** the page of /metrics, in the text format */
  readonly page: () => Promise<string>
  readonly metrics: Metrics
  readonly logger: Logger
  /** by name: why not, or undefined when ready */
  readonly readiness: Readonly<Record<string, () => string | undefined>>
  /** of this program, for both answers */
  readonly version: string
}

/** Of each port. A kubelet and a Prometheus need two. */
const MAX_CONNECTIONS = 256
const TEXT_FORMAT = 'text/plain; version=0.0.4; charset=utf-8'

class ProbePortTakenError extends FleetError {
  override readonly name = 'ProbePortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true
}

/** `/healthz`, `/readyz` and `/metrics` of a process that serves nothing else. */
export function probesPart(options: ProbesOptions): Part {
  const { metricsAddress, healthAddress, page, readiness, version } = options
  const servers: Server[] = []
  const health: RequestListener = (request, response) => {
    const path = request.url?.split('?')[0]
    if (path === '/healthz') return answer(response, 200, { status: 'ok', version })
    if (path !== '/readyz')
      return answer(response, 404, { error: 'there are /healthz and /readyz', code: 'route_not_found' })
    const faults = Object.entries(readiness).flatMap(([name, check]) => {
      const fault = attempt(check)
      return fault === undefined ? [] : [[name, fault] as const]
    })
    if (faults.length === 0) return answer(response, 200, { status: 'ready', version })
    return answer(response, 503, {
      status: 'not ready',
      version,
      error: faults.map(([name, fault]) => `${name}: ${fault}`).join('; '),
    })
  }
  return {
    name: 'probes',
    async start() {
      servers.push(await listen(health, healthAddress, 'HEALTH_PROBE_BIND_ADDRESS', options))
      servers.push(await listen(scraped(page), metricsAddress, 'METRICS_BIND_ADDRESS', options))
    },
    stop: () => closeAll(servers),
  }
}

/** `/metrics` of a process that serves other things on another port. */
export function metricsPart(
  address: Address,
  setting: string,
  options: Pick<ProbesOptions, 'page' | 'logger' | 'metrics'>,
): Part {
  const servers: Server[] = []
  return {
    name: 'metrics',
    async start() {
      servers.push(await listen(scraped(options.page), address, setting, options))
    },
    stop: () => closeAll(servers),
  }
}

function scraped(page: () => Promise<string>): RequestListener {
  return (request, response) => {
    if (request.url?.split('?')[0] !== '/metrics')
      return answer(response, 404, { error: 'there is /metrics', code: 'route_not_found' })
    page().then(
      (text) => response.writeHead(200, { 'content-type': TEXT_FORMAT }).end(text),
      (error: unknown) => answer(response, 500, { error: String(error), code: 'unexpected' }),
    )
  }
}

async function closeAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve).closeAllConnections())))
}

/** A check that cannot run yet, since its part is not started, is a reason too. */
function attempt(check: () => string | undefined): string | undefined {
  try {
    return check()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function answer(response: Parameters<RequestListener>[1], status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`)
}

function listen(
  handler: RequestListener,
  { host, port }: Address,
  setting: string,
  { logger, metrics }: Pick<ProbesOptions, 'logger' | 'metrics'>,
): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ requestTimeout: 10_000, ...CONNECTION_TIMES }, handler)
    boundConnections(server, { listener: setting, max: MAX_CONNECTIONS, logger, metrics })
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') return reject(error)
      reject(
        new ProbePortTakenError(`port ${port} is taken by another program; choose another with ${setting}`, {
          cause: error,
        }),
      )
    })
    server.listen(port, host, () => resolve(server))
  })
}
