import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type AdmissionRule, type AdmittedObject, concerns, type VersionConverter } from '#kinds'
import { type KubeClient, type KubeObject, type Resource, reviewAccess, whole } from '#kube'
import { type Clock, systemClock } from '#model'
import { boundConnections, CONNECTION_TIMES, chunksOf, discardBody, type Logger, readBounded } from '#runtime'
import { type ConversionRequest, convert } from './convert.ts'
import { mutate, operationOf, type ReviewRequest, type ReviewWorld, validate } from './review.ts'

/** What the server shows, PEM. */
export interface WebhookTls {
  readonly cert: string
  readonly key: string
}

export interface WebhookOptions {
  readonly rules: readonly AdmissionRule[]
  readonly converters?: readonly VersionConverter[]
  /** the API whose server asks: who may do what, and what rules look at, is asked there */
  readonly kube: KubeClient
  readonly tls: WebhookTls
  /** hears of every write that `/audit` is told of, before it is allowed, which waits for it; default: nobody */
  readonly onWrite?: (review: ReviewRequest) => Promise<void>
  /** hears of every write that a rule refused, by the name of the rule; default: nobody */
  readonly onRefused?: (rule: string) => void
  /** the last part of every path that is answered: whoever may reach the port but does not know it is nobody; default: all are answered */
  readonly word?: () => string
  readonly host?: string
  /** 0: a free one */
  readonly port: number
  readonly logger: Logger
  readonly clock?: Clock
}

export interface WebhookListener extends AsyncDisposable {
  readonly port: number
  /** Shows another certificate from the next connection on. */
  renew(tls: WebhookTls): void
}

/** As large as an object may be, twice: what is and what shall be. */
const MAX_BODY_BYTES = 8 * 1024 * 1024
/** An API server keeps a few open. */
const MAX_CONNECTIONS = 256
/** An API server gives up after ten seconds. */
const TIMEOUT_MS = 9_000

/** An API server closes what it does not use for 90 s: were that done here, a write that begins in the same moment would fail. */
const KEPT_MS = 120_000

class UnreadableReview extends Error {
  override readonly name = 'UnreadableReview'
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Answers admission and conversion reviews over HTTPS. */
export async function listenWebhooks(options: WebhookOptions): Promise<WebhookListener> {
  const { tls, host = '127.0.0.1', port, logger } = options
  const answers = new Answers(options)
  const minVersion = 'TLSv1.2' as const
  const server = createServer({ ...tls, minVersion, ...CONNECTION_TIMES }, (request, response) => {
    void answers.answer(request, response)
  })
  server.requestTimeout = TIMEOUT_MS
  server.keepAliveTimeout = KEPT_MS
  boundConnections(server, { listener: 'webhooks', max: MAX_CONNECTIONS, logger })
  server.on('tlsClientError', (err) => logger.debug({ err }, 'a caller of the webhooks gave up'))
  server.listen(port, host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    renew: (next) => server.setSecureContext({ ...next, minVersion }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

class Answers {
  readonly #options: WebhookOptions
  readonly #clock: Clock
  readonly #world: ReviewWorld

  constructor(options: WebhookOptions) {
    this.#options = options
    this.#clock = options.clock ?? systemClock
    this.#world = worldOf(options.kube)
  }

  /** Answers one review; never throws. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const path = this.#known(request.url ?? '')
      send(response, 200, await this.#reviewed(path, await readReview(request)))
    } catch (error) {
      const status = error instanceof UnreadableReview ? error.status : 500
      if (status === 500) this.#options.logger.error({ err: error, path: request.url }, 'a review failed')
      const message =
        error instanceof UnreadableReview ? error.message : 'the review failed; the log of the hub says why'
      if (!(await discardBody(request))) response.setHeader('connection', 'close')
      send(response, status, { message })
    }
  }

  /** An API server asks all webhooks at once: `/audit` hears of writes that a rule beside it refuses in the same moment. */
  async #isLet(review: ReviewRequest): Promise<boolean> {
    const { group = '', resource: plural = '' } = review.resource ?? {}
    const about = { operation: operationOf(review), ...(review.subResource && { subresource: review.subResource }) }
    const rules = this.#options.rules.filter((rule) => concerns(rule, { group, plural }, about))
    const asked = { world: this.#world, nowMs: this.#clock.now(), signal: AbortSignal.timeout(TIMEOUT_MS) }
    const answers = await Promise.all(rules.map((rule) => validate(rule, review, asked)))
    return answers.every(({ allowed }) => allowed)
  }

  /** The path without the word. @throws UnreadableReview where that is wrong */
  #known(path: string): string {
    const [plain = ''] = path.split('?')
    const word = this.#options.word?.()
    if (word === undefined) return plain
    const at = plain.lastIndexOf('/')
    if (!isSame(plain.slice(at + 1), word))
      throw new UnreadableReview(403, 'only the API server of this hub is answered')
    return plain.slice(0, at)
  }

  async #reviewed(path: string, { apiVersion, kind, request }: Review): Promise<object> {
    const [, what, name] = path.split('/')
    const answered = (response: object) => ({ apiVersion, kind, response })
    if (what === 'convert' && kind === 'ConversionReview')
      return answered(convert(this.#options.converters ?? [], request as unknown as ConversionRequest))
    if (what === 'audit' && kind === 'AdmissionReview') {
      const review = request as unknown as ReviewRequest
      if (this.#options.onWrite && (await this.#isLet(review))) await this.#options.onWrite(review)
      return answered({ uid: request.uid, allowed: true })
    }
    const rule = this.#options.rules.find((one) => one.name === name)
    if (!rule || kind !== 'AdmissionReview') throw new UnreadableReview(404, `no rule answers ${kind} at ${path}`)
    const review = request as unknown as ReviewRequest
    const nowMs = this.#clock.now()
    if (what === 'mutate') return answered(mutate(rule, review, nowMs))
    if (what !== 'validate') throw new UnreadableReview(404, `no rule answers at ${path}`)
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const response = await validate(rule, review, { world: this.#world, nowMs, signal })
    if (!response.allowed) this.#options.onRefused?.(rule.name)
    return answered(response)
  }
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
const isSame = (a: string, b: string): boolean => timingSafeEqual(digest(a), digest(b))

interface Review {
  readonly apiVersion: string
  readonly kind: string
  readonly request: Readonly<Record<string, unknown>>
}

/** @throws UnreadableReview */
async function readReview(request: IncomingMessage): Promise<Review> {
  if (request.method !== 'POST') throw new UnreadableReview(405, 'reviews are sent by POST')
  const tooLarge = () => new UnreadableReview(413, `a review has at most ${MAX_BODY_BYTES} bytes`)
  const review = parsed((await readBounded(chunksOf(request), MAX_BODY_BYTES, tooLarge)).toString('utf8'))
  if (!review || typeof review.kind !== 'string' || typeof review.request?.uid !== 'string')
    throw new UnreadableReview(400, 'the body is no review: kind and request.uid are needed')
  return review
}

function parsed(text: string): Review | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Review) : undefined
  } catch {
    return undefined // no JSON is no review: the caller is told so
  }
}

function send(response: ServerResponse, status: number, value: object): void {
  if (response.headersSent || response.destroyed) return
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

function worldOf(kube: KubeClient): ReviewWorld {
  return {
    may: ({ name: user, ...who }, { purpose: _, ...attributes }, signal) =>
      reviewAccess(kube, { user, ...who }, attributes, signal),
    async read({ group, version, plural, namespace, name }, signal) {
      const resource: Resource<KubeObject> = whole({
        group,
        version,
        plural,
        kind: '',
        namespaced: namespace !== undefined,
      })
      const found = await kube.get(resource, { name, ...(namespace && { namespace }) }, signal)
      return found as AdmittedObject | undefined
    },
    async list({ group, version, plural, label: { name, value } }, signal) {
      const resource: Resource<KubeObject> = whole({ group, version, plural, kind: '', namespaced: false })
      const found = await kube.listAll(resource, { labelSelector: `${name}=${value}`, signal })
      return found as readonly KubeObject[] as readonly AdmittedObject[]
    },
  }
}
