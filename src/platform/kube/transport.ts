import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import type { Dispatcher } from 'undici'
import { type Clock, steadyClock } from '#model'
import type { OutboundGuard } from '#outbound'
import { backoffMs } from '#runtime'
import { Breaker } from './breaker.ts'
import { type Credential, type CredentialSource, credentialSource, orAborted } from './credentials.ts'
import {
  describeCall,
  errorOfAnswer,
  errorOfConnection,
  isBrokenConnection,
  isConnectionTrouble,
  isUnanswered,
  KubeError,
  timeoutText,
} from './errors.ts'
import { hedged } from './hedge.ts'
import {
  type Answer,
  type AnswerStream,
  AnswerTooLargeError,
  type BorrowedAnswer,
  exchange,
  gathered,
  type LocalServer,
  openStream,
  type SinkFor,
  type WireRequest,
} from './http.ts'
import { impersonationHeaders } from './impersonation.ts'
import { closeLines, type Lines, openLines } from './lines.ts'
import { isProtobuf, readStatus, unwrap } from './protobuf.ts'
import { RateLimit } from './rate-limit.ts'
import type { ClientLimits, ClusterAccess, Impersonation } from './types.ts'

/** What a client may be given besides its access; every field has a default. */
export interface KubeClientOptions extends ClientLimits {
  /** shared by clients that follow each other on one cluster; default: its own */
  readonly breaker?: Breaker
  /** how long one that is in trouble is not asked, ms; of its own breaker. Default: 60 s */
  readonly recoveryMs?: number
  /** connections for requests at most; those that are not kept come only where calls are slow. Watches have their own, one each. Default 4 */
  readonly connections?: number
  /** connections kept open between calls; more than one for whoever makes many calls at once all the time. Default 1 */
  readonly keptConnections?: number
  /** Ask for compressed answers: spares the network, costs CPU. Default: unless the server is on the loopback or in-cluster. */
  readonly gzip?: boolean
  /** of one answer, uncompressed, bytes; default 64 MiB */
  readonly maxAnswerBytes?: number
  /** silence after which a watch is opened anew, ms; above the server's bookmark interval of one minute. Default 80 s */
  readonly watchInactivityMs?: number
  readonly userAgent?: string
  /** answers in place of a server at the address: one that runs in this very process, which needs no connection. Default: none does */
  readonly local?: LocalServer
  /** which addresses are dialed; absent: any, as for an access of our own */
  readonly outbound?: OutboundGuard
  readonly clock?: Clock
  readonly random?: () => number
}

export interface Call {
  readonly method: string
  readonly path: string
  readonly accept?: string
  readonly body?: string
  readonly contentType?: string
  readonly as?: Impersonation | undefined
  readonly signal?: AbortSignal | undefined
  /** instead of the client's, ms */
  readonly timeoutMs?: number
  /** 5xx and timeouts say nothing of the cluster */
  readonly isolated?: boolean
  /** made also while the circuit breaker refuses others: it is how the end of the trouble is heard of */
  readonly anyway?: boolean
  /** of the answer; at most, and by default, the client's */
  readonly maxBytes?: number
  /** takes the body as it comes; default: it is gathered */
  readonly sinkFor?: SinkFor
}

const MAX_RETRIES = 3
/** A connection that answers nothing for so long may be dead, though the server is well. */
const MAX_SILENCE_MS = 5_000
const MAX_RETRY_WAIT_MS = 10_000
const ERROR_BODY_BYTES = 64 * 1024
const unzip = promisify(gunzip)
/** Why a deadline needs no longer be watched. Named, as the error that an abort makes by itself costs more than all else here. */
const OVER = 'the call ended'

const neverTrouble = (): boolean => false

/** Carries requests to one API server: credentials, TLS, connections, deadline, rate, retries, breaker. */
export class Transport implements AsyncDisposable {
  readonly endpoint: string
  readonly clock: Clock
  readonly random: () => number
  readonly breaker: Breaker
  readonly #access: ClusterAccess
  readonly #origin: string
  readonly #prefix: string
  readonly #options: KubeClientOptions
  readonly #timeoutMs: number
  readonly #maxBytes: number
  readonly #gzip: boolean
  readonly #limit: RateLimit
  readonly #credentials: CredentialSource
  readonly #closing = new AbortController()
  #lines: Lines | undefined
  #active = 0
  #hasServed = false
  /** what waits to open a stream again, as the last one found nobody */
  readonly #resting = new Set<AbortController>()
  #isAway = false
  #isRetired = false
  #lastUsedAt: number

  /** @throws KubeError `invalid` where the address cannot be used. */
  constructor(access: ClusterAccess, options: KubeClientOptions = {}) {
    const url = parseServer(access)
    this.#access = access
    this.#origin = url.origin
    this.#prefix = url.pathname.replace(/\/+$/, '')
    this.endpoint = url.origin + this.#prefix
    this.#options = options
    this.clock = options.clock ?? steadyClock
    this.random = options.random ?? Math.random
    this.breaker = options.breaker ?? new Breaker({ clock: this.clock, recoveryMs: options.recoveryMs })
    this.#timeoutMs = options.timeoutMs ?? 30_000
    this.#maxBytes = options.maxAnswerBytes ?? 64 * 1024 * 1024
    this.#gzip = options.gzip ?? (!options.local && isFar(url.hostname))
    this.#limit = new RateLimit({ perSecond: options.qps ?? 100, burst: options.burst ?? 200, clock: this.clock })
    this.#credentials = credentialSource(access, this.clock)
    this.#lastUsedAt = this.clock.now()
  }

  /** when the last call ended, ms; now, while one runs */
  get lastUsedAt(): number {
    return this.#active > 0 ? this.clock.now() : this.#lastUsedAt
  }

  /**
   * One call within one deadline, retries included. Waiting for our own rate limit comes before and does not count.
   * @param read takes what it wants of the answer at once: the memory of the body is used again when it returns.
   * @throws KubeError for any answer of 400 and above and any trouble; the signal's reason where the caller ended it.
   */
  async call<T>(call: Call, read: (answer: Answer) => T): Promise<T> {
    return this.#used(async () => {
      await this.#limit.take(call.signal)
      const attempts = () => this.#withDeadline(call, (signal) => this.#attempts(call, read, signal))
      if (call.anyway) {
        const answer = await this.breaker.runAnyway(attempts)
        this.#isBack()
        return answer
      }
      return call.isolated ? this.breaker.run(attempts, isConnectionTrouble) : this.breaker.run(attempts)
    })
  }

  /**
   * Opens a stream; the deadline ends with its head. The caller's signal ends the stream. One that fails opens no breaker: the many
   * streams of a cluster all fail in the moment in which its server starts anew, and each makes pauses of its own.
   */
  async stream(call: Call & { signal: AbortSignal }): Promise<AnswerStream> {
    const signal = AbortSignal.any([call.signal, this.#closing.signal])
    return this.#used(async () => {
      await this.#limit.take(signal)
      try {
        const answer = await this.breaker.run(() => this.#open(call, signal), neverTrouble)
        this.#isBack()
        return answer
      } catch (error) {
        if (isUnanswered(error)) this.#isAway = true
        throw error
      }
    })
  }

  /** Once after each time in which no stream could be opened: of a server that ends what it opened, none would ever rest. */
  #isBack(): void {
    if (!this.#isAway) return
    this.#isAway = false
    for (const one of this.#resting) one.abort(OVER)
  }

  /**
   * The pause before a stream is opened again that found no server, ms: it ends early when another one is answered, so that a server that
   * was away is followed as a whole once the first has tried.
   */
  async rest(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    this.#resting.add(woken)
    try {
      await this.clock.sleep(ms, AbortSignal.any([signal, woken.signal]))
    } finally {
      this.#resting.delete(woken)
    }
  }

  async #open(call: Call, signal: AbortSignal): Promise<AnswerStream> {
    const what = describeCall(call.method, call.path)
    const headPassed = new AbortController()
    const both = new AbortController()
    const end = () => both.abort(signal.reason)
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
    const giveUp = this.clock.sleep(call.timeoutMs ?? this.#timeoutMs, headPassed.signal).then(() => {
      if (!headPassed.signal.aborted) both.abort(this.#timeout(what, call.timeoutMs))
    })
    try {
      const [request, lines] = await this.#prepare(call, both.signal, false)
      const { local } = this.#options
      const answer = local
        ? await local(request, both.signal)
        : await openStream(lines().streams, this.#origin, request, both.signal)
      if (answer.status < 300) return answer
      if (answer.status === 401) this.#credentials.refuse()
      const body = errorBody(answer.headers, await startOf(answer))
      throw errorOfAnswer(what, answer.status, body, retryAfterMs(answer.headers, this.clock))
    } catch (error) {
      signal.removeEventListener('abort', end)
      if (signal.aborted) throw signal.reason
      throw errorOfConnection(what, this.endpoint, error)
    } finally {
      headPassed.abort(OVER)
      await giveUp
    }
  }

  async #attempts<T>(call: Call, read: (answer: Answer) => T, signal: AbortSignal): Promise<T> {
    const what = describeCall(call.method, call.path)
    let renewed = false
    let broke = false
    for (let retry = 0; ; ) {
      let answer: BorrowedAnswer
      try {
        const [request, lines] = await this.#prepare(call, signal, this.#gzip)
        answer = await this.#answer(call, request, lines, signal)
      } catch (error) {
        if (signal.aborted) throw signal.reason
        this.#closing.signal.throwIfAborted()
        if (call.method === 'GET' && !broke && isBrokenConnection(error)) {
          broke = true
          continue
        }
        throw errorOfConnection(what, this.endpoint, error)
      }
      let error: KubeError
      try {
        const plain = await this.#unzipped(what, answer, this.#bytesOf(call))
        if (answer.status < 300) return read(plain)
        const body = errorBody(answer.headers, plain.body)
        error = errorOfAnswer(what, answer.status, body, retryAfterMs(answer.headers, this.clock))
      } finally {
        answer.release()
      }
      if (answer.status === 401 && !renewed && this.#credentials.refuse()) {
        renewed = true
        continue
      }
      if (retry >= MAX_RETRIES || !mayRepeat(call, error)) throw error
      const waitMs = (error.retryAfterMs ?? 0) + backoffMs(retry++, { fromMs: 500, toMs: 4000, random: this.random })
      if (waitMs > MAX_RETRY_WAIT_MS) throw error
      await this.clock.sleep(waitMs, signal)
      if (signal.aborted) throw signal.reason
    }
  }

  async #answer(call: Call, request: WireRequest, lines: () => Lines, signal: AbortSignal): Promise<BorrowedAnswer> {
    const { local } = this.#options
    if (local) return gathered(await local(request, signal), { maxBytes: this.#bytesOf(call), sinkFor: call.sinkFor })
    return lines().requests.run((line, other) => this.#exchange(call, request, line, other, signal), signal)
  }

  #bytesOf({ maxBytes = this.#maxBytes }: Call): number {
    return Math.min(maxBytes, this.#maxBytes)
  }

  /** Reading on a connection that served before has a second try beside it: that connection may have died without a word. */
  async #exchange(
    call: Call,
    request: WireRequest,
    line: Dispatcher,
    other: () => Dispatcher,
    signal: AbortSignal,
  ): Promise<BorrowedAnswer> {
    const on = (dispatcher: Dispatcher) => (ended: AbortSignal, onProgress?: () => void) =>
      exchange(dispatcher, this.#origin, request, {
        maxBytes: this.#bytesOf(call),
        signal: ended,
        sinkFor: call.sinkFor,
        ...(onProgress && { onProgress }),
      })
    const mayHedge = call.method === 'GET' && this.#hasServed
    const answer = mayHedge
      ? await hedged({
          first: on(line),
          second: (ended) => on(other())(ended),
          afterMs: Math.min(MAX_SILENCE_MS, (call.timeoutMs ?? this.#timeoutMs) / 3),
          clock: this.clock,
          signal,
        })
      : await on(line)(signal)
    this.#hasServed = true
    return answer
  }

  async #prepare(call: Call, signal: AbortSignal, gzip: boolean): Promise<[WireRequest, () => Lines]> {
    const credential = await this.#credentials.get(signal)
    const headers: WireRequest['headers'] = {
      accept: call.accept ?? 'application/json',
      'user-agent': this.#options.userAgent ?? 'clusterpulse',
    }
    if (gzip) headers['accept-encoding'] = 'gzip'
    if (call.body !== undefined) headers['content-type'] = call.contentType ?? 'application/json'
    if (credential.authorization !== undefined) headers.authorization = credential.authorization
    const as = call.as ?? this.#access.as
    if (as) Object.assign(headers, impersonationHeaders(as))
    const request: WireRequest = {
      method: call.method,
      path: this.#prefix + call.path,
      headers,
      ...(call.body === undefined ? {} : { body: call.body }),
    }
    return [request, () => this.#linesFor(credential)]
  }

  /** The connections for this credential: another client certificate needs other connections. */
  #linesFor(credential: Credential): Lines {
    const lines = this.#lines
    if (lines && lines.cert === credential.certificate?.cert) return lines
    const next = openLines({
      access: this.#access,
      origin: this.#origin,
      certificate: credential.certificate,
      connections: this.#options.connections ?? 4,
      keptConnections: this.#options.keptConnections ?? 1,
      clock: this.clock,
      outbound: this.#options.outbound,
    })
    this.#lines = next
    // What runs on the old ones may finish there.
    if (lines) closeLines(lines)
    return next
  }

  async #unzipped(what: string, answer: Answer, maxBytes: number): Promise<Answer> {
    const encoding = answer.headers['content-encoding']
    if (encoding === undefined || encoding === 'identity') return answer
    if (encoding !== 'gzip') throw new KubeError('protocol', `${what}: the answer is encoded as ${String(encoding)}`)
    try {
      return { ...answer, body: await unzip(answer.body, { maxOutputLength: maxBytes }) }
    } catch (cause) {
      if (cause instanceof RangeError) throw new AnswerTooLargeError(maxBytes)
      throw new KubeError('protocol', `${what}: the answer's compression is broken`, { cause })
    }
  }

  async #withDeadline<T>(call: Call, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const abort = new AbortController()
    const done = new AbortController()
    const end = () => abort.abort(call.signal?.reason)
    if (call.signal?.aborted) end()
    call.signal?.addEventListener('abort', end, { once: true })
    const deadline = this.clock.sleep(call.timeoutMs ?? this.#timeoutMs, done.signal).then(() => {
      if (!done.signal.aborted) abort.abort(this.#timeout(describeCall(call.method, call.path), call.timeoutMs))
    })
    try {
      return await work(abort.signal)
    } finally {
      call.signal?.removeEventListener('abort', end)
      done.abort(OVER)
      await deadline
    }
  }

  #timeout(what: string, timeoutMs = this.#timeoutMs): KubeError {
    return new KubeError('timeout', `${what}: ${timeoutText(this.endpoint, timeoutMs)}`)
  }

  async #used<T>(work: () => Promise<T>): Promise<T> {
    this.#closing.signal.throwIfAborted()
    this.#active++
    try {
      return await work()
    } finally {
      this.#ended()
    }
  }

  #ended(): void {
    this.#active--
    this.#lastUsedAt = this.clock.now()
    if (this.#isRetired) this.#rest()
  }

  /**
   * Keeps no connection open between calls from now on. Whoever still works with the client ends in peace, however many calls
   * that takes; nobody need know when the last one is done.
   */
  retire(): void {
    this.#isRetired = true
    this.#rest()
  }

  #rest(): void {
    if (this.#active > 0 || !this.#lines) return
    closeLines(this.#lines)
    this.#lines = undefined
  }

  /** Aborted, with the error to throw, once the client is closed. */
  get closed(): AbortSignal {
    return this.#closing.signal
  }

  /** Marks the client as in use, as by a watch, until the returned function is called. */
  hold(): () => void {
    this.#active++
    return () => this.#ended()
  }

  /** Ends streams at once, and gives running calls five seconds. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new KubeError('closed', `the client of ${this.endpoint} is closed`))
    const lines = this.#lines
    if (!lines) return
    await lines.streams.destroy()
    // Without a running call there is nothing to wait for; a connection that never shook hands would keep us.
    if (this.#active === 0) return lines.requests.destroy()
    const grace = new AbortController()
    const closed = lines.requests.close().finally(() => grace.abort())
    await this.clock.sleep(5000, grace.signal)
    if (!grace.signal.aborted) await lines.requests.destroy()
    await orAborted(closed)
  }
}

function parseServer(access: ClusterAccess): URL {
  let url: URL
  try {
    url = new URL(access.server)
  } catch {
    throw new KubeError('invalid', `${JSON.stringify(access.server)} is no address; write it as https://host:port`)
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new KubeError('invalid', `the address of ${url.host} may hold scheme, host, port and path only`)
  }
  // What goes to the loopback by way of a proxy goes over a network first.
  const clear = access.allowHttp === true || (isLoopback(url.hostname) && access.proxyUrl === undefined)
  if (url.protocol === 'https:' || (url.protocol === 'http:' && clear)) return url
  throw new KubeError(
    'invalid',
    `${url.protocol}//${url.host} would carry credentials in the clear; use https, or set insecureSkipTLSVerify`,
  )
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

function isFar(hostname: string): boolean {
  return !(
    isLoopback(hostname) ||
    hostname === 'kubernetes.default.svc' ||
    hostname.startsWith('kubernetes.default.svc.')
  )
}

/** A request that was refused for load may be repeated; a server's own trouble only on reading, and when it says until when. */
function mayRepeat(call: Call, error: KubeError): boolean {
  if (error.reason === 'throttled') return true
  return error.httpStatus === 503 && error.retryAfterMs !== undefined && call.method === 'GET'
}

function retryAfterMs(headers: Answer['headers'], clock: Clock): number | undefined {
  const value = headers['retry-after']
  if (typeof value !== 'string') return undefined
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - clock.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

async function startOf(answer: AnswerStream): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of answer.chunks) {
    chunks.push(chunk)
    size += chunk.length
    if (size >= ERROR_BODY_BYTES) break
  }
  return Buffer.concat(chunks)
}

/** A server that was asked for protobuf may complain in protobuf. */
function errorBody(headers: Answer['headers'], body: Buffer): unknown {
  if (!isProtobuf(headers)) return body.toString('utf8', 0, ERROR_BODY_BYTES)
  try {
    return readStatus(unwrap(body))
  } catch {
    return undefined // The HTTP status alone must do.
  }
}
