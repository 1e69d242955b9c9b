import type { SecureContext } from 'node:tls'
import { buildConnector, Client } from 'undici'
import type { Clock } from '#model'
import type { Lookup, OutboundGuard } from '#outbound'
import { ProbeError, troubleWith } from './errors.ts'
import { Guard } from './guard.ts'
import { type Headers, lineOf } from './header.ts'
import { rootsOf, systemRoots } from './roots.ts'
import type { RegistryTarget } from './types.ts'

/** One answer, as far as it was read. */
export interface Answer {
  /** of the answer: after redirects another one than was asked */
  readonly url: URL
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
  /** there was more than `maxBytes` */
  readonly isCut: boolean
  /** it came from the registry's own scheme, host and port, and no other was asked in between */
  readonly isHome: boolean
  /** from the request until its headers, ms; redirects included */
  readonly headersMs: number
}

export interface Question {
  readonly maxBytes: number
  readonly authorization?: string | undefined
  readonly accept?: string
  /** redirects are answers; default: they are followed */
  readonly stays?: boolean
  /** told when the headers of the last answer are there: its body may never end */
  readonly onHeaders?: (headersMs: number) => void
}

export interface WireOptions {
  readonly target: RegistryTarget
  readonly home: URL
  readonly lookup: Lookup
  readonly outbound: OutboundGuard
  readonly clock: Clock
  /** ends everything */
  readonly signal: AbortSignal
}

const MAX_REDIRECTS = 5
const MAX_HEADER_BYTES = 32 * 1024
const REDIRECTS = new Set([301, 302, 303, 307, 308])

/**
 * The connections of one probe: one per place that is asked, closed with it. They belong to one registry, so nothing of
 * another one can leak in. Redirects are followed by hand:
 *
 *   answer ─▶ redirect? ─▶ another origin: no credentials from here on ─▶ guarded connection ─▶ answer
 */
export class Wire implements AsyncDisposable {
  readonly #options: WireOptions
  readonly #guard: Guard
  readonly #clients = new Map<string, Client>()

  /** @throws ProbeError `ca_invalid` */
  constructor(options: WireOptions) {
    this.#options = options
    const { home, target, lookup, outbound } = options
    this.#guard = new Guard({ home: home.hostname, allowInternal: target.allowPrivateRedirects, lookup, outbound })
    this.#guard.checkLiteral(home.hostname) // remembers where the registry is
    if (target.caPem !== undefined) rootsOf(target.caPem, false)
  }

  /**
   * Asks, and follows.
   * @throws ProbeError why there is no answer; the signal's reason where it ended
   */
  async get(url: URL, question: Question): Promise<Answer> {
    const { home, clock } = this.#options
    const startedAt = clock.now()
    let at = url
    let isHome = url.origin === home.origin
    // Once it was sent elsewhere, what comes back home is somebody else's question: not ours to sign.
    let { authorization } = question
    for (let redirects = 0; ; redirects++) {
      const answer = await this.#asked(at, { ...question, authorization }, (headersAt) =>
        question.onHeaders?.(Math.max(0, headersAt - startedAt)),
      )
      const headersMs = Math.max(0, answer.headersAt - startedAt)
      const location = lineOf(answer.headers, 'location')
      if (question.stays || !REDIRECTS.has(answer.status) || location === '')
        return { ...answer, url: at, isHome, headersMs }
      if (redirects === MAX_REDIRECTS)
        throw new ProbeError('redirect_refused', `${at.host} and others redirect more than ${MAX_REDIRECTS} times`)
      const next = this.nextUrl(at, location)
      if (next.origin !== url.origin) {
        isHome = false
        authorization = undefined
      }
      at = next
    }
  }

  /** A server may end a connection that it kept just when the next question is on its way: that one is asked once more. */
  async #asked(url: URL, question: Question, onHead: (at: number) => void): Promise<Received> {
    const wasAsked = this.#clients.has(url.origin)
    try {
      return await this.#exchange(url, question, onHead)
    } catch (error) {
      if (!wasAsked || !isBrokenConnection(error)) throw error
      return this.#exchange(url, question, onHead)
    }
  }

  /** Where a registry sends us. @throws ProbeError `redirect_refused`, `insecure_refused` */
  nextUrl(from: URL, location: string): URL {
    if (location.length > 4096 || !URL.canParse(location, from.href))
      throw new ProbeError('redirect_refused', `${from.host} redirects to what is no address`)
    const next = new URL(location, from)
    next.username = ''
    next.password = ''
    next.hash = ''
    if (next.protocol !== 'https:' && next.protocol !== 'http:')
      throw new ProbeError('redirect_refused', `${from.host} redirects to what is neither http nor https`)
    if (next.protocol === 'http:' && from.protocol === 'https:')
      throw new ProbeError('redirect_refused', `${from.host} redirects from https to http, which is never followed`)
    return next
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#clients.values()].map((client) => client.destroy()))
    this.#clients.clear()
  }

  #client(url: URL): Client {
    const known = this.#clients.get(url.origin)
    if (known) return known
    this.#guard.checkLiteral(url.hostname)
    const client = new Client(url.origin, {
      connect: buildConnector({
        lookup: this.#guard.lookup,
        timeout: this.#options.target.timeoutMs,
        ...(url.protocol === 'https:' && this.#tlsFor(url)),
      }),
      pipelining: 1,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: 0, // one deadline for the whole probe
      bodyTimeout: 0,
    })
    this.#clients.set(url.origin, client)
    return client
  }

  /** What was declared of the registry goes for its host; others are verified as everybody's are. */
  #tlsFor(url: URL): { readonly secureContext: SecureContext; readonly rejectUnauthorized: boolean } {
    const { target, home } = this.#options
    const isHome = url.hostname === home.hostname
    const { caPem } = target
    const secureContext = caPem === undefined ? systemRoots() : rootsOf(caPem, !isHome)
    return { secureContext, rejectUnauthorized: !(isHome && target.skipTlsVerify) }
  }

  #exchange(url: URL, question: Question, onHead: (at: number) => void): Promise<Received> {
    const { maxBytes, authorization, accept = 'application/json' } = question
    const { signal, clock } = this.#options
    const headers: Record<string, string> = {
      accept,
      'accept-encoding': 'identity', // what is counted is what is kept
      'user-agent': 'clusterpulse',
      ...(authorization !== undefined && { authorization }),
    }
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      let stop: (error: Error) => void = () => undefined
      const abort = () => {
        reject(signal.reason) // first: stopping tells of an error of its own
        stop(new Error('the probe ended'))
      }
      const end = (settle: () => void) => {
        signal.removeEventListener('abort', abort)
        settle()
      }
      const refuse = (error: unknown) => end(() => reject(troubleWith(url.host, error)))
      signal.addEventListener('abort', abort, { once: true })
      let client: Client
      try {
        client = this.#client(url)
      } catch (error) {
        return refuse(error)
      }
      const chunks: Buffer[] = []
      let size = 0
      let head: { status: number; headers: Headers; headersAt: number } | undefined
      const take = (isCut: boolean) =>
        end(() =>
          head
            ? resolve({ ...head, body: Buffer.concat(chunks).subarray(0, maxBytes), isCut })
            : reject(new ProbeError('unreachable', `${url.host} sent nothing`)),
        )
      client.dispatch(
        { origin: url.origin, path: url.pathname + url.search, method: 'GET', headers },
        {
          onRequestStart(controller) {
            stop = (error) => controller.abort(error)
            if (signal.aborted) stop(new Error('the probe ended'))
          },
          onResponseStart(_, status, received) {
            head = { status, headers: received, headersAt: clock.now() }
            onHead(head.headersAt)
          },
          onResponseData(controller, chunk) {
            if (size < maxBytes) chunks.push(Buffer.from(chunk))
            size += chunk.length
            if (size <= maxBytes) return
            take(true)
            controller.abort(new Error('the answer is too large'))
          },
          onResponseEnd() {
            take(false)
          },
          onResponseError(_, error) {
            refuse(error)
          },
        },
      )
    })
  }
}

interface Received extends Pick<Answer, 'status' | 'headers' | 'body' | 'isCut'> {
  readonly headersAt: number
}

const BROKEN = new Set<unknown>(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

function isBrokenConnection(error: unknown): boolean {
  const cause = error instanceof ProbeError ? error.cause : undefined
  return BROKEN.has((cause as { readonly code?: unknown } | undefined)?.code)
}
