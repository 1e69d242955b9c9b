import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { stringify } from 'yaml'
import { boundConnections, CONNECTION_TIMES, type Logger, type Metrics, silentLogger } from '#runtime'
import type { Sealer } from '#sealing'
import { StaticTokens, type TokenGrant } from './authentication.ts'
import { type ClientAuthorities, ClientTrust } from './client-certificates.ts'
import type { ApiRequest, ApiResponse } from './http/call.ts'
import { answerHere, type LocalAnswer, type LocalRequest } from './in-process.ts'
import type { ApiServer } from './server.ts'
import { ApiError } from './status.ts'
import { generateServingCertificate, type ServingCertificate } from './tls.ts'

/** Where the embedded API listens. */
export interface ListenOptions {
  /** default 127.0.0.1 */
  readonly host?: string
  /** default 0: any free one */
  readonly port?: number
  /** A certificate to show, with the CA that clients shall trust; or one made here, its CA kept in `dir` if given, the key sealed if there is a sealer. */
  readonly tls?:
    | ServingCertificate
    | { readonly dir?: string; readonly sealer?: Sealer; readonly extraHosts?: readonly string[] }
  /** path prefix ('' or '/clusters/east') → server; the longest that fits answers */
  readonly mounts?: ReadonlyMap<string, ApiServer>
  /** who may come in; without any nobody may */
  readonly tokens: readonly TokenGrant[]
  /** PEM of one or more CAs whose client certificates say who calls: the common name, and the organisations as groups */
  readonly clientCa?: string
  /** further CAs, which may change while the port is open: what they are then counts from the next request on */
  readonly clientAuthorities?: ClientAuthorities
  /** by path prefix: who may come in there, and nobody else */
  readonly mountTokens?: ReadonlyMap<string, readonly TokenGrant[]>
  /** connections open at once; default: as many as the system gives */
  readonly maxConnections?: number
  readonly logger?: Logger
  readonly metrics?: Metrics
}

/** One HTTPS port in front of one or many API servers. */
export interface ApiListener extends AsyncDisposable {
  /** https://host:port */
  readonly url: string
  readonly port: number
  /** what clients trust */
  readonly caPem: string
  /**
   * Answers a request of this very process, with the same mounts, tokens and rights, and without a connection.
   * Rejects with the signal's reason; the answer ends with it, too.
   */
  answer(request: LocalRequest, signal: AbortSignal): Promise<LocalAnswer>
  mount(prefix: string, server: ApiServer): void
  /** The server itself stays open. */
  unmount(prefix: string): void
  /** A kubeconfig with one context for one mount. */
  kubeconfig(options: { context: string; token: string; prefix?: string; user?: string }): string
}

const PREFIX = /^(\/[A-Za-z0-9._-]+)*$/
/** Room for the name of a cluster, and a bound on what an address of many slashes costs. */
const LONGEST_PREFIX = 512

/** Between the end of a listener's life and the moment connections are cut. */
const CLOSE_MS = 1000

/**
 * Opens the port.
 * @throws Error of the system where the port is taken.
 */
export async function listenApi(options: ListenOptions): Promise<ApiListener> {
  const host = options.host ?? '127.0.0.1'
  const logger = options.logger ?? silentLogger
  const tokens = new StaticTokens(options.tokens)
  const own = new Map([...(options.mountTokens ?? [])].map(([prefix, grants]) => [prefix, new StaticTokens(grants)]))
  const mounts = new Map<string, ApiServer>()
  const tls = await servingCertificate(host, options.tls, logger)
  const answer = (request: ApiRequest, response: ApiResponse): void => {
    const path = (request.url ?? '/').split('?')[0] ?? '/'
    const prefix = mountFor(mounts, path)
    const server = prefix === undefined ? undefined : mounts.get(prefix)
    if (!server) {
      notMounted(response)
      return
    }
    server.handle(request, response, prefix ?? '', own.get(prefix ?? '') ?? tokens).catch((error: unknown) => {
      logger.error({ err: error, path }, 'a request could not be answered')
      response.destroy()
    })
  }
  const clients = new ClientTrust(options.clientCa, options.clientAuthorities)
  const context = () => ({ cert: tls.cert, key: tls.key, minVersion: 'TLSv1.2' as const, ca: clients.tls?.ca })
  const https = createServer({ ...context(), ...clients.tls, ...CONNECTION_TIMES }, answer)
  const forget = clients.attach(https, () => https.setSecureContext(context()))
  https.maxHeadersCount = 0 // beyond a number headers would be ignored, those that name another user too
  // A watch is silent for as long as nothing happens.
  https.requestTimeout = 0
  https.keepAliveTimeout = 60_000
  const { maxConnections: max, metrics } = options
  if (max !== undefined)
    boundConnections(https, { listener: 'kubernetes-api', max, logger, ...(metrics && { metrics }) })
  https.on('tlsClientError', (error) => logger.debug({ err: error }, 'a TLS handshake failed'))
  const port = await listen(https, options.port ?? 0, host)
  const url = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  const mount = (prefix: string, server: ApiServer): void => {
    if (!PREFIX.test(prefix) || prefix.length >= LONGEST_PREFIX)
      throw new ApiError('BadRequest', `${JSON.stringify(prefix)} is no path to mount a server at`)
    mounts.set(prefix, server)
  }
  for (const [prefix, server] of options.mounts ?? []) mount(prefix, server)
  return {
    url,
    port,
    caPem: tls.ca,
    answer: (request, signal) => answerHere(answer, request, signal),
    mount,
    unmount: (prefix) => void mounts.delete(prefix),
    kubeconfig: ({ context, token, prefix = '', user = context }) =>
      kubeconfigText({ server: url + prefix, caPem: tls.ca, context, token, user }),
    [Symbol.asyncDispose]: () => {
      forget()
      return close(https)
    },
  }
}

/** The longest prefix of whole segments that a server is mounted at. There may be a thousand: none is tried that the path does not name. */
function mountFor(mounts: ReadonlyMap<string, ApiServer>, path: string): string | undefined {
  let best = mounts.has('') ? '' : undefined
  for (let end = 0; end >= 0 && end < LONGEST_PREFIX; ) {
    end = path.indexOf('/', end + 1)
    const prefix = end < 0 ? path : path.slice(0, end)
    if (mounts.has(prefix)) best = prefix
  }
  return best
}

function notMounted(response: ApiResponse): void {
  const { status } = new ApiError('NotFound', 'no cluster is served under this path', {})
  response.writeHead(404, { 'content-type': 'application/json' })
  response.end(JSON.stringify(status))
}

async function servingCertificate(
  host: string,
  tls: ListenOptions['tls'],
  logger: Logger,
): Promise<ServingCertificate> {
  if (tls && 'cert' in tls) return tls
  const own = ['0.0.0.0', '::'].includes(host) ? [] : [host]
  const hosts = [...new Set(['127.0.0.1', '::1', 'localhost', ...own, ...(tls?.extraHosts ?? [])])]
  return generateServingCertificate({ hosts, dir: tls?.dir, sealer: tls?.sealer, logger })
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), CLOSE_MS)
    server.close(() => {
      clearTimeout(cut)
      resolve()
    })
    server.closeIdleConnections()
  })
}

function kubeconfigText(parts: {
  server: string
  caPem: string
  context: string
  token: string
  user: string
}): string {
  const { server, caPem, context, token, user } = parts
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': context,
    clusters: [
      { name: context, cluster: { server, 'certificate-authority-data': Buffer.from(caPem).toString('base64') } },
    ],
    users: [{ name: user, user: { token } }],
    contexts: [{ name: context, context: { cluster: context, user } }],
  })
}
