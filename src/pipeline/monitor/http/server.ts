import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import type { AccessView } from '#access'
import type { Attention } from '#attention'
import { type Clock, type ClusterState, FleetError, type MemberReader } from '#model'
import { boundConnections, CONNECTION_TIMES, type Logger, type Metrics, SlowWriter, type Turns } from '#runtime'
import type { StateReader } from '#state'
import { rfc3339 } from '../documents.ts'
import { jsonPieces } from '../json.ts'
import type { Kind } from '../pictures.ts'
import type { Topic } from '../stream/group.ts'
import type { Opening, OpenStream, StreamHub } from '../stream/hub.ts'
import type { Tenancy } from '../tenancy.ts'
import { type OneTimeNames, Tickets } from '../tickets.ts'
import { type Caller, presentedBy, redactedUrl, type TokenReader } from '../tokens.ts'
import {
  type AnswerParts,
  clustersHistory,
  fleetSnapshot,
  forbidden,
  nodeHistory,
  nodesHistory,
  notFound,
  podsHistory,
  Refusal,
  snapshot,
  tooManyAnswers,
  unauthorized,
} from './answers.ts'
import { isForeign, Origins } from './cors.ts'
import { type Endpoint, forAdministrators, type Route, routeOf } from './paths.ts'
import { Places } from './places.ts'
import { pageOf, type Selection, selected, selectionOf } from './selection.ts'
import { beginEvents, SseSink } from './sse.ts'
import { webSocketSink } from './websocket.ts'

export interface MonitorServerOptions extends AnswerParts {
  readonly state: StateReader
  readonly members?: Pick<MemberReader, 'member'>
  readonly tenancy: Tenancy
  readonly tokens: TokenReader
  readonly tickets: { readonly secret: string | undefined; readonly names: OneTimeNames }
  readonly streams: StreamHub
  /** what paths without a prefix are about */
  readonly defaultCluster: string
  readonly attention?: Attention
  readonly address: { readonly host: string; readonly port: number }
  readonly corsOrigins: readonly string[]
  readonly tls?: { readonly cert: string; readonly key: string }
  readonly maxConnections: number
  /** shared by all whose work is long */
  readonly turns: Turns
  readonly logger: Logger
  readonly metrics: Metrics
  readonly clock: Clock
}

/** The listener's port is taken: by whom to ask and what to do. */
export class MonitorPortTakenError extends FleetError {
  override readonly name = 'MonitorPortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true
}

/** A message that a client sends is read and thrown away; a larger one ends its connection, bytes. */
const MAX_MESSAGE_BYTES = 64 * 1024
const RETRY_MS = 5000
const READS: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD'])

/** The kinds that a stream tells of, by the last part of its path. */
const KINDS: Readonly<Partial<Record<Endpoint, readonly (Kind | 'summary')[]>>> = {
  'sse/cluster-info': ['nodes'],
  'ws/cluster-info': ['nodes'],
  'sse/pod-metrics': ['pods'],
  'ws/pod-metrics': ['pods'],
  'sse/health': ['nodes', 'pods'],
  'sse/summary': ['summary'],
}

interface Asking {
  readonly route: Route
  readonly caller: Caller
  readonly query: URLSearchParams
  readonly view: AccessView
}

/**
 * Cluster Monitor's listener.
 *
 *   CORS → path → method → token or ticket → cluster there for the caller → administrator where needed → answer or stream
 */
export class MonitorServer implements AsyncDisposable {
  readonly #options: MonitorServerOptions
  readonly #server: Server
  readonly #origins: Origins
  readonly #tickets: Tickets
  readonly #places: Places
  readonly #sockets = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false })
  readonly #requests

  constructor(options: MonitorServerOptions) {
    this.#options = options
    this.#origins = new Origins(options.corsOrigins)
    this.#tickets = new Tickets({ ...options.tickets, clock: options.clock })
    this.#places = new Places(options.clock)
    const { tls, maxConnections, logger, metrics } = options
    const times = { ...CONNECTION_TIMES, requestTimeout: 15_000 }
    this.#server = tls ? createTlsServer({ ...times, ...tls, minVersion: 'TLSv1.2' }) : createServer(times)
    boundConnections(this.#server, { listener: 'monitor', max: maxConnections, logger, metrics })
    this.#requests = metrics.counter(
      'clusterpulse_monitor_requests_total',
      'Requests to the Cluster Monitor listener.',
      ['status'],
    )
    this.#server.on('request', (request, response) => void this.#answer(request, response))
    this.#server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head))
  }

  /** @returns where it listens @throws MonitorPortTakenError */
  start(): Promise<string> {
    const { host, port } = this.#options.address
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') return reject(error)
        const sentence = `port ${port} is taken by another program; choose another with -addr or MONITOR_ADDRESS`
        reject(new MonitorPortTakenError(sentence, { cause: error }))
      })
      this.#server.listen(port, host, () => {
        const { address, port: taken, family } = this.#server.address() as AddressInfo
        const scheme = this.#options.tls ? 'https' : 'http'
        resolve(`${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${taken}`)
      })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.streams[Symbol.asyncDispose]()
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeIdleConnections()
    // What was answered is on its way; who does not take it must not keep us.
    setTimeout(() => {
      this.#server.closeAllConnections()
      for (const socket of this.#sockets.clients) socket.terminate()
    }, 250).unref()
    await closed
  }

  async #answer(request: IncomingMessage, response: ServerResponse, upgrade?: Upgrade): Promise<void> {
    const headers = this.#origins.headers(request.headers.origin)
    response.on('close', () => this.#log(request, response.statusCode))
    response.on('error', () => response.destroy())
    try {
      if (request.method === 'OPTIONS') return void response.writeHead(200, { ...headers, 'content-length': 0 }).end()
      await this.#respond(request, response, { headers, upgrade })
    } catch (error) {
      const refusal = error instanceof Refusal ? error : this.#unexpected(request, error)
      if (response.headersSent) return void response.destroy()
      const { status, message, retryAfterSeconds: seconds } = refusal
      text(response, status, message, { ...headers, ...(seconds !== undefined && { 'retry-after': String(seconds) }) })
    }
  }

  async #respond(request: IncomingMessage, response: ServerResponse, { headers, upgrade }: Replying): Promise<void> {
    const { path, query } = addressOf(request)
    if (path === '/stream-tickets') return this.#issueTicket(request, response, headers)
    const route = routeOf(path)
    if (path !== '/healthz' && !route) throw notFound()
    if (!READS.has(request.method))
      return text(response, 405, 'method not allowed', { ...headers, allow: 'GET, HEAD, OPTIONS' })
    if (!route) return text(response, 200, 'ok', headers, '')
    const asking = await this.#admit(request, route, query)
    if (route.endpoint.startsWith('ws/')) {
      // Former versions name the origin elsewhere, where nobody looks at it.
      if (!upgrade || request.headers['sec-websocket-version'] !== '13') throw new Refusal(400, 'bad request')
      return this.#openSocket(request, response, asking, upgrade)
    }
    if (route.endpoint.startsWith('sse/')) return this.#openStream(request, response, asking, headers)
    await this.#write(request, response, asking, headers)
  }

  /** Who asks, and whether there is anything for them. @throws Refusal */
  async #admit(request: IncomingMessage, route: Route, query: URLSearchParams): Promise<Asking> {
    const isStream = /^(sse|ws)\//.test(route.endpoint)
    const caller = await this.#callerOf(request, query, isStream)
    const { state, tenancy } = this.#options
    if (state.availability().state === 'loading') throw new Refusal(503, 'loading')
    const view = tenancy.viewOf(caller, state.clusters())
    const { scope } = route
    if (scope.kind === 'cluster') {
      const cluster = state.cluster(scope.cluster)
      if (!cluster || !view.canSee(cluster)) throw notFound()
    }
    if (forAdministrators.has(route.endpoint) && !caller.isAdmin) throw forbidden()
    return { route, caller, query, view }
  }

  async #callerOf(request: IncomingMessage, query: URLSearchParams, isStream: boolean): Promise<Caller> {
    const { token, ticket } = presentedBy(request.headers.authorization, query)
    const caller =
      token !== undefined
        ? await this.#options.tokens.read(token)
        : ticket !== undefined && isStream
          ? await this.#tickets.redeem(ticket)
          : undefined
    if (!caller) throw unauthorized()
    return caller
  }

  async #issueTicket(request: IncomingMessage, response: ServerResponse, headers: Headers): Promise<void> {
    if (request.method !== 'POST')
      return text(response, 405, 'method not allowed', { ...headers, allow: 'POST, OPTIONS' })
    request.resume()
    const caller = await this.#callerOf(request, new URLSearchParams(), false)
    const { ticket, expiresAt } = await this.#tickets.issue(caller)
    sendJson(response, JSON.stringify({ ticket, expiresAt: rfc3339(expiresAt) }), headers, 201)
  }

  /** Made in turns; what is more than a piece as its reader takes it. @throws Refusal where too much is asked for at once */
  async #write({ method }: IncomingMessage, response: ServerResponse, asking: Asking, headers: Headers): Promise<void> {
    const gone = new AbortController()
    const { signal } = gone
    response.on('close', () => gone.abort())
    const writer = new SlowWriter(response, { clock: this.#options.clock, turns: this.#options.turns, signal })
    const texts = jsonPieces(this.#document(asking))
    const { text: first, isLast } = await writer.gather(texts)
    if (isLast) return sendJson(response, first, headers)
    if (method === 'HEAD') return void response.writeHead(200, { ...headers, ...JSON_HEADERS }).end()
    const { userId } = asking.caller
    if (!(await this.#places.take(userId, signal))) {
      if (signal.aborted) return
      throw tooManyAnswers()
    }
    try {
      response.writeHead(200, { ...headers, ...JSON_HEADERS })
      if ((await writer.put(first)) && (await writer.write(texts))) response.end('\n')
    } finally {
      this.#places.giveBack(userId)
    }
  }

  #document({ route, caller, query, view }: Asking): unknown {
    const parts = this.#options
    const { endpoint, scope } = route
    if (endpoint === 'api/graph/dependencies') throw new Refusal(501, 'not implemented')
    if (scope.kind === 'fleet') return this.#fleetDocument(endpoint, query, view)
    const cluster = this.#clusterOf(route)
    if (cluster && view.canSee(cluster)) parts.attention?.look(cluster.name)
    const asked = { cluster, view, caller, query }
    switch (endpoint) {
      case 'cluster-info':
        return snapshot(parts, asked, 'nodes')
      case 'pod-metrics':
        return snapshot(parts, asked, 'pods')
      case 'api/metrics/nodes':
        return nodesHistory(parts, asked)
      case 'api/metrics/node':
        return nodeHistory(parts, asked, route.node ?? '')
      case 'api/metrics/pods':
        return podsHistory(parts, asked)
      default:
        throw notFound()
    }
  }

  #fleetDocument(endpoint: Endpoint, query: URLSearchParams, view: AccessView): unknown {
    const { state } = this.#options
    const all = selected(state.clusters(), view, selectionOf(query, this.#options.members))
    const { clusters, next } = pageOf(all, query)
    for (const { name } of clusters) this.#options.attention?.look(name)
    switch (endpoint) {
      case 'cluster-info':
        return fleetSnapshot(this.#options, clusters, view, { kind: 'nodes', next })
      case 'pod-metrics':
        return fleetSnapshot(this.#options, clusters, view, { kind: 'pods', next })
      case 'api/metrics/clusters':
        return clustersHistory(this.#options, clusters, query)
      case 'summary':
        return this.#options.pictures.summary(clusters, view, next)
      default:
        throw notFound()
    }
  }

  #openStream(request: IncomingMessage, response: ServerResponse, asking: Asking, headers: Headers): void {
    const { streams } = this.#options
    // It went while it was found out who asks: nothing would end its stream.
    if (response.destroyed) return
    if (!streams.hasRoom(asking.caller)) throw new Refusal(429, 'too many streams')
    const wishes = wishesOf(request, asking.query)
    // Those that one restart cut off together come back one by one.
    const retryMs = wishes.protocol === 2 ? 2000 + Math.round(Math.random() * 8000) : RETRY_MS
    const topic = this.#topicOf(asking)
    beginEvents(response, headers)
    if (request.method === 'HEAD') return void response.end()
    const stream = streams.open({ caller: asking.caller, topic, ...wishes }, new SseSink(response, retryMs))
    response.on('close', stream.end)
    this.#whereFailed(request, stream, () => response.destroy())
  }

  /** What is no WebSocket is answered as if nothing else had been offered: clients offer HTTP/2 that way. */
  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => socket.destroy())
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(request.socket)
    response.on('finish', () => socket.end())
    const isAsked = request.headers.upgrade?.toLowerCase() === 'websocket'
    void this.#answer(request, response, isAsked ? { socket, head } : undefined)
  }

  #openSocket(request: IncomingMessage, response: ServerResponse, asking: Asking, { socket, head }: Upgrade): void {
    if (isForeign(request.headers.origin, request.headers.host, this.#origins)) throw forbidden()
    const { streams } = this.#options
    const { caller, query } = asking
    if (!streams.hasRoom(caller)) throw new Refusal(429, 'too many streams')
    const opening = { caller, topic: this.#topicOf(asking), ...wishesOf(request, query) }
    response.detachSocket(request.socket)
    this.#sockets.handleUpgrade(request, socket, head, (client) => {
      const stream = streams.open(opening, webSocketSink(client))
      client.on('close', stream.end)
      this.#whereFailed(request, stream, () => client.terminate())
      this.#log(request, 101)
    })
  }

  /** A stream whose first frames could not be made carries nothing. */
  #whereFailed(request: IncomingMessage, { begun }: OpenStream, end: () => void): void {
    begun.catch((error: unknown) => {
      this.#unexpected(request, error)
      end()
    })
  }

  #topicOf({ route, caller, query }: Asking): Topic {
    const { scope, endpoint } = route
    const { state } = this.#options
    const kinds = (KINDS[endpoint] ?? []).filter((kind) => kind !== 'nodes' || caller.isAdmin)
    if (scope.kind === 'fleet') {
      const selection: Selection = selectionOf(query, this.#options.members)
      const clusters = (view: AccessView) => selected(state.clusters(), view, selection)
      return { name: `fleet ${selection.name}`, clusters, kinds, form: 'fleet' }
    }
    const form = endpoint === 'sse/health' ? 'envelope' : 'bare'
    if (scope.kind === 'default') return { name: 'default', clusters: () => [this.#clusterOf(route)], kinds, form }
    const clusters = (view: AccessView) => {
      const cluster = state.cluster(scope.cluster)
      return cluster && view.canSee(cluster) ? [cluster] : undefined
    }
    return { name: `cluster ${scope.cluster}`, clusters, kinds, form }
  }

  /** Of paths without a prefix the default one: who may not see it is told that nothing is there, in time with those who may. */
  #clusterOf({ scope }: Route): ClusterState | undefined {
    if (scope.kind === 'fleet') return undefined
    return scope.kind === 'cluster' ? this.#options.state.cluster(scope.cluster) : this.defaultCluster
  }

  /** The one that is configured; where there is one alone, that. */
  get defaultCluster(): ClusterState | undefined {
    const { state, defaultCluster } = this.#options
    const [only, ...others] = state.clusters()
    return state.cluster(defaultCluster) ?? (others.length === 0 ? only : undefined)
  }

  #unexpected(request: IncomingMessage, error: unknown): Refusal {
    this.#options.logger.error({ url: redactedUrl(request.url ?? ''), error }, 'a request to the monitor met an error')
    return error instanceof FleetError && error.retryable ? new Refusal(503, 'unavailable') : new Refusal(500, 'error')
  }

  #log(request: IncomingMessage, status: number): void {
    this.#requests.inc({ status: String(status) })
    this.#options.logger.info({ method: request.method, url: redactedUrl(request.url ?? ''), status }, 'answered')
  }
}

type Headers = Readonly<Record<string, string>>

/** A connection that may become a WebSocket. */
interface Upgrade {
  readonly socket: Duplex
  readonly head: Buffer
}

interface Replying {
  readonly headers: Headers
  readonly upgrade: Upgrade | undefined
}

function addressOf({ url = '/' }: IncomingMessage): { readonly path: string; readonly query: URLSearchParams } {
  const at = url.indexOf('?')
  return at < 0
    ? { path: url, query: new URLSearchParams() }
    : { path: url.slice(0, at), query: new URLSearchParams(url.slice(at + 1)) }
}

/** How a client wants its stream, and where it was. */
function wishesOf({ headers }: IncomingMessage, query: URLSearchParams): Pick<Opening, 'protocol' | 'lastEventId'> {
  const id = headers['last-event-id'] ?? query.get('lastEventId') ?? undefined
  const lastEventId = typeof id === 'string' && id.length <= 64 ? id : undefined
  return { protocol: query.get('protocol') === '2' ? 2 : 1, lastEventId }
}

function text(response: ServerResponse, status: number, word: string, headers: Headers, end = '\n'): void {
  const body = `${word}${end}`
  response
    .writeHead(status, {
      ...headers,
      'content-type': 'text/plain; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'x-content-type-options': 'nosniff',
    })
    .end(body)
}

const JSON_HEADERS = {
  'content-type': 'application/json',
  // No cache between keeps what was answered to a credential.
  'cache-control': 'private, no-store',
  'x-content-type-options': 'nosniff',
}

function sendJson(response: ServerResponse, document: string, headers: Headers, status = 200): void {
  const body = Buffer.from(`${document}\n`)
  response.writeHead(status, { ...headers, ...JSON_HEADERS, 'content-length': body.length }).end(body)
}
