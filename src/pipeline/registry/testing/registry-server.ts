import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net'
import { systemClock } from '#model'
import type { Lookup } from '#outbound'
import { probeRegistry } from '../probe.ts'
import type { ProbeResult, RegistryTarget } from '../types.ts'

export type Script = (request: IncomingMessage, response: ServerResponse) => void

export interface TestServer extends AsyncDisposable {
  readonly port: number
  /** such as http://127.0.0.1:4711 */
  readonly url: string
  /** `GET /v2/ authorization` of every request so far */
  readonly seen: readonly { readonly path: string; readonly authorization: string | undefined }[]
  /** bytes that left for clients */
  sent(): number
}

/** A real server on a free port that answers by a script. */
export async function serve(
  script: Script,
  options: {
    readonly tls?: { readonly cert: string; readonly key: string }
    readonly host?: string
    readonly port?: number
  } = {},
): Promise<TestServer> {
  const seen: { path: string; authorization: string | undefined }[] = []
  const sockets = new Set<Socket>()
  let closedBytes = 0
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    seen.push({ path: request.url ?? '', authorization: request.headers.authorization })
    script(request, response)
  }
  const server = options.tls ? createHttps(options.tls, listener) : createHttp(listener)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => {
      closedBytes += socket.bytesWritten
      sockets.delete(socket)
    })
  })
  const host = options.host ?? '127.0.0.1'
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, host, resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `${options.tls ? 'https' : 'http'}://${host}:${port}`,
    seen,
    sent: () => [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, closedBytes),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A server that speaks by bytes, for what no HTTP server would say. */
export async function serveBytes(onConnection: (socket: Socket) => void): Promise<TestServer> {
  const sockets = new Set<Socket>()
  let bytes = 0
  const server = createTcp((socket) => {
    sockets.add(socket)
    socket.on('error', () => socket.destroy()) // the other end hangs up: that is what is tested
    socket.on('close', () => {
      bytes += socket.bytesWritten
      sockets.delete(socket)
    })
    onConnection(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    seen: [],
    sent: () => [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, bytes),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'docker-distribution-api-version': 'registry/2.0',
      ...headers,
    })
    .end(JSON.stringify(body))

export interface RegistryWords {
  readonly repositories?: readonly string[]
  readonly credentials?: { readonly username: string; readonly password: string }
  /** Bearer with this realm instead of Basic; tokens are as `tokenFor` says */
  readonly realm?: () => string
  readonly tokenFor?: string
  readonly headers?: Record<string, string>
}

/** A registry as the distribution specification has it, small. */
export function registry(words: RegistryWords = {}): Script {
  const { repositories = [], credentials, realm, tokenFor, headers = {} } = words
  return (request, response) => {
    const url = new URL(request.url ?? '/', 'http://registry')
    const given = request.headers.authorization
    if (realm) {
      if (given !== `Bearer ${tokenFor}`) {
        const challenge = `Bearer realm="${realm()}",service="the, registry"`
        return json(response, 401, {}, { ...headers, 'www-authenticate': challenge })
      }
    } else if (credentials) {
      const wanted = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
      if (given !== wanted) return json(response, 401, {}, { ...headers, 'www-authenticate': 'Basic realm="here"' })
    }
    if (url.pathname === '/v2/') return json(response, 200, {}, headers)
    if (url.pathname !== '/v2/_catalog') return json(response, 404, {}, headers)
    const sorted = [...repositories].sort()
    const last = url.searchParams.get('last') ?? ''
    const n = Number(url.searchParams.get('n') ?? 1000)
    const left = sorted.filter((name) => name > last)
    const page = left.slice(0, n)
    const link = `</v2/_catalog?last=${page.at(-1)}&n=${n}>; rel="next"`
    return json(response, 200, { repositories: page }, { ...headers, ...(left.length > n && { link }) })
  }
}

export function targetAt(endpoint: string, changes: Partial<RegistryTarget> = {}): RegistryTarget {
  return {
    name: 'harbor',
    displayName: 'Harbor',
    endpoint,
    type: 'harbor',
    labels: {},
    insecure: endpoint.startsWith('http:'),
    skipTlsVerify: false,
    caPem: undefined,
    allowPrivateRedirects: false,
    credentials: undefined,
    credentialsRef: undefined,
    intervalMs: 60_000,
    timeoutMs: 5_000,
    checkCatalog: false,
    catalogPageSize: 100,
    healthCheckPaths: [],
    ...changes,
  }
}

export const probe = (target: RegistryTarget, lookup?: Lookup): Promise<ProbeResult> =>
  probeRegistry(target, {
    signal: new AbortController().signal,
    clock: systemClock,
    ...(lookup && { lookup }),
  })

/** Names that lead to the given addresses; others do not exist. */
export const names =
  (known: Readonly<Record<string, string | (() => string)>>): Lookup =>
  (hostname, callback) => {
    const found = known[hostname]
    const address = typeof found === 'function' ? found() : found
    if (address === undefined) return callback(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), [])
    callback(null, [{ address, family: address.includes(':') ? 6 : 4 }])
  }
