import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Clock, FleetError, seconds, systemClock } from '#model'
import {
  boundConnections,
  CONNECTION_TIMES,
  discardBody,
  hostName,
  isLoopback,
  type Logger,
  type Metrics,
  SlowWriter,
  Turns,
} from '#runtime'
import { type ApiAccess, type Review, type Verdict, wordsOf } from './access.ts'
import { EventStreams } from './event-streams.ts'
import { pageOf } from './page.ts'
import { type Question, readQuestion } from './query.ts'
import { HEADERS, Refusal, sendRefusal, unavailable } from './refusal.ts'
import { othersReviewOf, reviewOf, routeOf } from './routes.ts'
import { statusList } from './status-list.ts'
import { awaited, summaryJson } from './summary.ts'
import type { InventoryView, RowsNow } from './view.ts'

/** What there is to read; a sentence where there is nothing yet. */
export type Readable = { readonly view: InventoryView } | { readonly view?: never; readonly message: string }

export interface InventoryApiOptions {
  /** name of this cluster, in every answer */
  readonly cluster: string
  readonly address: { readonly host: string; readonly port: number }
  /** undefined: whoever reaches the port may read; then it answers to names of this machine alone, where it listens there alone */
  readonly access: ApiAccess | undefined
  readonly readable: () => Readable
  readonly logger: Logger
  readonly metrics: Metrics
  readonly clock?: Clock
  readonly maxStreams?: number
}

class InventoryPortTakenError extends FleetError {
  override readonly name = 'InventoryPortTakenError'
  readonly code = 'port_taken'
  readonly retryable = true
}

const MAX_CONNECTIONS = 256
/** After this it is worth asking again whether something was read. */
const RETRY_SECONDS = 5
const LOG_EVERY_MS = seconds(60)

/** Answers over plain HTTP. */
export class InventoryApi implements AsyncDisposable {
  readonly #options: InventoryApiOptions
  readonly #clock: Clock
  readonly #turns = new Turns()
  readonly #server: Server
  readonly #streams: EventStreams
  readonly #requests
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(options: InventoryApiOptions) {
    this.#options = options
    const { logger, metrics, clock = systemClock, maxStreams } = options
    this.#clock = clock
    this.#server = createServer({ requestTimeout: 10_000, ...CONNECTION_TIMES })
    boundConnections(this.#server, { listener: 'inventory', max: MAX_CONNECTIONS, logger, metrics })
    this.#streams = new EventStreams({
      clock,
      turns: this.#turns,
      logger,
      metrics,
      ...(maxStreams !== undefined && { maxStreams }),
    })
    this.#requests = metrics.counter('kollect_inventory_requests_total', 'Requests to the inventory API', ['status'])
    this.#server.on('request', (request, response) => void this.#answer(request, response))
  }

  /** @returns the port @throws FleetError `port_taken` */
  start(): Promise<number> {
    const { host, port } = this.#options.address
    return new Promise((resolve, reject) => {
      this.#server.once('error', (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EADDRINUSE') return reject(error)
        const sentence = `port ${port} is taken by another program; choose another with INVENTORY_HTTP_PORT`
        reject(new InventoryPortTakenError(sentence, { cause: error }))
      })
      this.#server.listen(port, host, () => resolve((this.#server.address() as AddressInfo).port))
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    await this.#streams[Symbol.asyncDispose]()
    this.#server.closeAllConnections()
    await closed
  }

  /** Answers one request; never throws. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on('close', () => this.#requests.inc({ status: String(response.statusCode) }))
    response.on('error', () => response.destroy())
    try {
      await this.#respond(request, response)
    } catch (error) {
      const refusal = error instanceof Refusal ? error : this.#unexpected(error)
      if (response.headersSent) {
        response.destroy()
        return
      }
      if (!(await discardBody(request))) response.setHeader('connection', 'close')
      sendRefusal(response, refusal)
    }
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { path, query } = addressOf(request)
    this.#checkHost(request)
    const route = routeOf(path)
    if (!route) throw new Refusal(404, 'route_not_found', 'nothing is here: see docs/reference/inventory-api.md')
    if (request.method !== 'GET')
      throw new Refusal(405, 'method_not_allowed', 'the inventory is only read: use GET', { headers: { allow: 'GET' } })
    if (hasBody(request)) throw new Refusal(413, 'body_refused', 'a GET has no body here')
    const asked = readQuestion(query, route.form, route.named)
    const review = reviewOf(route, asked)
    await this.#admit(request, review)
    const others = othersReviewOf(route, asked)
    const isOwn = others !== undefined && (await this.#judge(request, [others])) !== 'allowed'
    const question = isOwn ? { ...asked, filter: { ...asked.filter, isOwn } } : asked
    const reviews = others && !isOwn ? [review, others] : [review]
    if (route.successor !== undefined)
      response.setHeader('deprecation', 'true').setHeader('link', `<${route.successor}>; rel="successor-version"`)
    const view = this.#view(question)
    if (route.answer === 'watch') return this.#openStream(request, response, { view, question, reviews })
    if (route.answer === 'rows') return this.#rows(response, view, question)
    const list = statusList(view, route.answer, { cluster: this.#options.cluster, question })
    response.writeHead(200, { ...HEADERS, 'content-type': 'application/json' }).end(`${JSON.stringify(list)}\n`)
  }

  /** Whether who asks may have what they ask for. @throws Refusal */
  async #admit(request: IncomingMessage, review: Review): Promise<void> {
    const verdict = await this.#judge(request, [review])
    if (verdict === 'unauthenticated')
      throw new Refusal(401, 'unauthenticated', 'show a bearer token that this cluster knows', {
        headers: { 'www-authenticate': 'Bearer' },
      })
    if (verdict === 'forbidden')
      throw new Refusal(403, 'forbidden', `you may not ${wordsOf(review)}; somebody who may can grant it with a role`)
  }

  /** All of it. */
  async #judge(request: IncomingMessage, reviews: readonly Review[]): Promise<Verdict> {
    const { access, logger } = this.#options
    if (!access) return 'allowed'
    try {
      for (const review of reviews) {
        const verdict = await access.judge(request, review)
        if (verdict !== 'allowed') return verdict
      }
      return 'allowed'
    } catch (error) {
      const now = performance.now()
      if (now - this.#warnedAt >= LOG_EVERY_MS) {
        this.#warnedAt = now
        logger.warn({ err: error }, 'who asks the inventory API cannot be found out')
      }
      throw new Refusal(
        500,
        'review_failed',
        'who you are, or what you may, cannot be found out now; the log of the agent says why',
      )
    }
  }

  /** @throws Refusal where nothing was read yet, or not what is asked for */
  #view({ filter, cluster }: Question): InventoryView {
    const own = this.#options.cluster
    if (cluster !== undefined && cluster !== own)
      throw new Refusal(404, 'cluster_not_found', `this agent knows the cluster ${own} alone; ask the hub about others`)
    const readable = this.#options.readable()
    if (!readable.view) throw unavailable('not_ready', `inventory is not read yet: ${readable.message}`, RETRY_SECONDS)
    if (readable.view.named(filter)?.length === 0)
      throw new Refusal(
        404,
        'inventory_not_found',
        filter.clusterInventory === undefined
          ? `there is no inventory ${filter.namespace ?? '*'}/${filter.inventory}`
          : `there is no KollectClusterInventory ${filter.clusterInventory}`,
      )
    return readable.view
  }

  async #rows(response: ServerResponse, view: InventoryView, question: Question): Promise<void> {
    const { cluster } = this.#options
    const { filter, paging } = question
    const read = view.read(filter)
    const page = pageOf(read.rows(), paging)
    if (page.total === 0 && read.waitsFor.length > 0) throw incomplete(read, question)
    const inventories = view.named(filter)
    const facts = { cluster, question, read, page, ...(inventories && { inventories }) }
    const gone = new AbortController()
    if (response.destroyed) gone.abort()
    response.on('close', () => gone.abort())
    response.writeHead(200, { ...HEADERS, 'content-type': 'application/json' })
    const writer = new SlowWriter(response, { clock: this.#clock, turns: this.#turns, signal: gone.signal })
    if (await writer.write(summaryJson(facts))) response.end('\n')
  }

  #openStream(
    request: IncomingMessage,
    response: ServerResponse,
    {
      view,
      question,
      reviews,
    }: { readonly view: InventoryView; readonly question: Question; readonly reviews: readonly Review[] },
  ): void {
    const lastEventId = request.headers['last-event-id']
    const resume = typeof lastEventId === 'string' && lastEventId !== '' ? lastEventId : question.resume
    this.#streams.open(request, response, {
      ...{ view, cluster: this.#options.cluster },
      question: { ...question, ...(resume !== undefined && { resume }) },
      judge: () => this.#judge(request, reviews),
    })
  }

  /** A page that a foreign name led here must not read what a port without sign-in shows to this machine (DNS rebinding). */
  #checkHost({ headers }: IncomingMessage): void {
    const { access, address } = this.#options
    if (access || !isLoopback(address.host) || isLoopback(hostName(headers.host ?? ''))) return
    throw new Refusal(403, 'host_refused', 'this port answers on localhost only')
  }

  #unexpected(error: unknown): Refusal {
    this.#options.logger.error({ err: error }, 'a request to the inventory API met an error')
    return new Refusal(500, 'unexpected', 'the answer failed; the log of the agent says why')
  }
}

const incomplete = (read: RowsNow, { filter }: Question): Refusal =>
  unavailable(
    'incomplete',
    'nothing that matches was read yet, and not everything was read: the targets that are waited for say why in their conditions',
    RETRY_SECONDS,
    { complete: false, ...awaited(read.waitsFor, filter) },
  )

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

function addressOf({ url = '/' }: IncomingMessage): { readonly path: string; readonly query: URLSearchParams } {
  const at = url.indexOf('?')
  return at < 0
    ? { path: url, query: new URLSearchParams() }
    : { path: url.slice(0, at), query: new URLSearchParams(url.slice(at + 1)) }
}
