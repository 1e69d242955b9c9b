import { once } from 'node:events'
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import { Agent, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { type Clock, systemClock } from '#model'

/** How an API server can fail the one who asks it. */
export type Fault = (
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** takes the request and never answers */
  | { readonly kind: 'hang' }
  /** half of the body, then silence on an open connection */
  | { readonly kind: 'hang-mid-body' }
  /** the connection is reset before the answer, or in its middle */
  | { readonly kind: 'reset'; readonly when?: 'before' | 'mid-body' }
  /** half of the body, then the end: as a broken connection, or as if that were all (`looksWhole`) */
  | { readonly kind: 'half-page'; readonly looksWhole?: boolean }
  /** an answer of this code with a Status object, such as 401, 403, 410, 429, 500, 503 */
  | { readonly kind: 'status'; readonly code: number; readonly retryAfterSeconds?: number; readonly message?: string }
  /** another body in place of the true one, with the headers of the true answer, but for `contentType` */
  | { readonly kind: 'rewrite'; readonly change: (body: Buffer) => Buffer; readonly contentType?: string }
) & {
  /** only requests for this resource (`pods`); default: all */
  readonly resource?: string
  /** heals after so many requests; default: never by itself */
  readonly times?: number
}

/** Which simulated fleet the faults stand in front of. */
export interface FaultProxyOptions {
  /** the listener of a simulated fleet, with the path before the names of its clusters */
  readonly upstream: { readonly url: string; readonly caPem: string }
  readonly clock?: Clock
}

const LOOPBACK = '127.0.0.1'

/**
 * Stands before the listener of a simulated fleet and fails requests on purpose, cluster by cluster; everything else
 * passes. Plain HTTP on the loopback: for tests.
 */
export class FaultProxy implements AsyncDisposable {
  /** such as http://127.0.0.1:40123; the paths behind it are those of the fleet */
  readonly url: string
  readonly #upstream: URL
  readonly #agent: Agent
  readonly #clock: Clock
  readonly #server: ReturnType<typeof createServer>
  readonly #faults = new Map<string, Fault & { left: number }>()
  readonly #stopped = new AbortController()
  readonly #counts = new Map<string, number>()

  private constructor({ upstream, clock = systemClock }: FaultProxyOptions, server: ReturnType<typeof createServer>) {
    this.#upstream = new URL(upstream.url)
    this.#agent = new Agent({ ca: upstream.caPem, keepAlive: true, maxSockets: 64 })
    this.#clock = clock
    this.#server = server
    this.url = `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`
    server.on('request', (asked: IncomingMessage, answer: ServerResponse) => {
      this.#answer(asked, answer).catch((error: unknown) => answer.destroy(error instanceof Error ? error : undefined))
    })
  }

  static async open(options: FaultProxyOptions): Promise<FaultProxy> {
    const server = createServer()
    server.listen(0, LOOPBACK)
    await once(server, 'listening')
    return new FaultProxy(options, server)
  }

  /** From now on requests to this cluster fail so. One fault per cluster: a new one takes the place of the old. */
  set(cluster: string, fault: Fault): void {
    this.#faults.set(cluster, { ...fault, left: fault.times ?? Number.POSITIVE_INFINITY })
  }

  heal(cluster: string): void {
    this.#faults.delete(cluster)
  }

  /** Requests to this cluster so far, failed ones included. */
  requests(cluster: string): number {
    return this.#counts.get(cluster) ?? 0
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort()
    this.#server.closeAllConnections()
    this.#agent.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #answer(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const path = asked.url ?? '/'
    const cluster = clusterOf(path)
    this.#counts.set(cluster, this.requests(cluster) + 1)
    const fault = this.#take(cluster, path)
    if (fault?.kind === 'hang') return
    if (fault?.kind === 'slow') await this.#clock.sleep(fault.delayMs, this.#stopped.signal)
    if (fault?.kind === 'status') return refuse(answer, fault)
    if (fault?.kind === 'reset' && fault.when !== 'mid-body') return reset(asked)
    const reply = await this.#ask(asked, path)
    if (!fault || fault.kind === 'slow') return pass(reply, answer)
    if (fault.kind === 'rewrite') return rewrite(fault, reply, answer)
    await spoil(fault, reply, answer)
  }

  #take(cluster: string, path: string): Fault | undefined {
    const fault = this.#faults.get(cluster)
    if (!fault || (fault.resource !== undefined && !path.split(/[/?]/).includes(fault.resource))) return undefined
    fault.left--
    if (fault.left <= 0) this.#faults.delete(cluster)
    return fault
  }

  async #ask(asked: IncomingMessage, path: string): Promise<IncomingMessage> {
    const { hostname, port } = this.#upstream
    const headers = { ...asked.headers, host: this.#upstream.host }
    const call = request({ agent: this.#agent, hostname, port, path, method: asked.method ?? 'GET', headers })
    asked.on('close', () => {
      if (!asked.complete) call.destroy()
    })
    // Whoever waits for the reply hears of it by `once`; later it shows in the reply itself.
    call.on('error', () => asked.destroy())
    asked.pipe(call)
    const [reply] = (await once(call, 'response')) as [IncomingMessage]
    return reply
  }
}

/** `/clusters/staging/api/v1/pods` and `/staging/api/v1/pods` both are of `staging`. */
function clusterOf(path: string): string {
  const parts = path.split(/[/?]/).filter((part) => part !== '')
  return (parts[0] === 'clusters' ? parts[1] : parts[0]) ?? ''
}

function pass(reply: IncomingMessage, answer: ServerResponse): void {
  answer.writeHead(reply.statusCode ?? 502, endToEnd(reply))
  answer.flushHeaders()
  answer.on('close', () => reply.destroy())
  reply.on('error', () => answer.destroy())
  reply.pipe(answer)
}

async function rewrite(
  { change, contentType }: Extract<Fault, { kind: 'rewrite' }>,
  reply: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of reply as AsyncIterable<Buffer>) chunks.push(chunk)
  const body = change(Buffer.concat(chunks))
  const headers = { ...endToEnd(reply), 'content-length': body.length }
  answer.writeHead(reply.statusCode ?? 502, contentType ? { ...headers, 'content-type': contentType } : headers)
  answer.end(body)
}

/** Sends half of what came, then ends badly. Of a watch, which never ends, half of its first piece. */
async function spoil(fault: Fault, reply: IncomingMessage, answer: ServerResponse): Promise<void> {
  const body = await halfOf(reply)
  const headers = endToEnd(reply)
  if (fault.kind === 'half-page' && fault.looksWhole) {
    answer.writeHead(reply.statusCode ?? 502, { ...headers, 'content-length': body.length })
    answer.end(body)
    return
  }
  answer.writeHead(reply.statusCode ?? 502, headers)
  await new Promise<void>((resolve) => answer.write(body, () => resolve()))
  if (fault.kind === 'reset') answer.socket?.resetAndDestroy()
  else if (fault.kind === 'half-page') answer.socket?.destroySoon()
}

async function halfOf(reply: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  const isWatch = reply.headers['content-length'] === undefined && reply.headers['transfer-encoding'] === 'chunked'
  for await (const chunk of reply as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    // A list that comes in chunks is cut in its first one too: that is in its middle.
    if (isWatch) break
  }
  const body = Buffer.concat(chunks)
  return body.subarray(0, Math.ceil(body.length / 2))
}

function refuse(answer: ServerResponse, fault: Extract<Fault, { kind: 'status' }>): void {
  const headers: OutgoingHttpHeaders = { 'content-type': 'application/json' }
  if (fault.retryAfterSeconds !== undefined) headers['retry-after'] = String(fault.retryAfterSeconds)
  answer.writeHead(fault.code, headers)
  answer.end(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Status',
      metadata: {},
      status: 'Failure',
      message: fault.message ?? `refused on purpose: ${fault.code}`,
      reason: REASONS[fault.code] ?? 'InternalError',
      code: fault.code,
    }),
  )
}

const REASONS: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  410: 'Expired',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
}

function reset(asked: IncomingMessage): void {
  asked.socket.resetAndDestroy()
}

/** Headers that are not about one connection only. */
function endToEnd(reply: IncomingMessage): OutgoingHttpHeaders {
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...headers } = reply.headers
  return headers
}
