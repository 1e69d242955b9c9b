import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { OutboundGuard } from '#outbound'
import { UnsafeConfigurationError } from './errors.ts'

/** How far we trust a provider with our time and memory. */
export interface OutboundLimits {
  /** PEM of the CA where the system does not know it */
  readonly ca?: string
  /** addresses and ranges that may be asked although they are link-local, of a metadata service or unspecified */
  readonly allow?: readonly string[]
  /** of the whole exchange, ms; default 5 s */
  readonly timeoutMs?: number
  /** of the answer; default 1 MiB */
  readonly maxBytes?: number
}

export interface OutboundRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

export type Fetch = (url: string, options?: OutboundRequest) => Promise<Response>

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i

/** https anywhere, http on the loopback: whatever else carries keys and codes could be changed on the way. */
export function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username || password) return false
  return protocol === 'https:' || (protocol === 'http:' && loopback.test(hostname))
}

/** @throws UnsafeConfigurationError for an address that `isSafeUrl` refuses */
export function requireSafeUrl(what: string, text: string): void {
  if (isSafeUrl(text)) return
  throw new UnsafeConfigurationError(
    `${what} must be an https address (http on the loopback only): ${text.slice(0, 200)}`,
  )
}

/** One exchange, within the limits. Redirects are answers like any other: a provider's keys are where it said they are. */
export function boundedFetch({ ca, allow = [], timeoutMs = 5000, maxBytes = 2 ** 20 }: OutboundLimits = {}): Fetch {
  const guard = new OutboundGuard({ use: 'sign-in', allow })
  return (url, { method = 'GET', headers = {}, body, signal } = {}) => {
    if (!isSafeUrl(url))
      return Promise.reject(new Error('the provider named an address that is neither https nor loopback'))
    try {
      guard.check(new URL(url).hostname)
    } catch (error) {
      return Promise.reject(error)
    }
    const limit = AbortSignal.timeout(timeoutMs)
    const options = {
      method,
      lookup: guard.lookup,
      headers: { ...headers, 'accept-encoding': 'identity' },
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    }
    const content = bodyText(body)
    return new Promise((resolve, reject) => {
      const receive = (answer: IncomingMessage): void => {
        collect(answer, maxBytes).then((bytes) => resolve(responseOf(answer, bytes)), reject)
      }
      const request = url.startsWith('https:')
        ? httpsRequest(url, ca === undefined ? options : { ...options, ca }, receive)
        : httpRequest(url, options, receive)
      request.on('error', reject)
      request.end(content)
    })
  }
}

function bodyText(body: unknown): string | Uint8Array | undefined {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string' || body instanceof Uint8Array) return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('only text, bytes and forms are sent to a provider')
}

async function collect(answer: IncomingMessage, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of answer as AsyncIterable<Buffer>) {
    size += part.length
    // Leaving the loop destroys the connection.
    if (size > maxBytes) throw new Error(`the provider's answer is larger than ${maxBytes} bytes`)
    parts.push(part)
  }
  return new Uint8Array(Buffer.concat(parts))
}

function responseOf(answer: IncomingMessage, bytes: Uint8Array<ArrayBuffer>): Response {
  const headers = new Headers()
  for (const [name, value] of Object.entries(answer.headers))
    for (const one of [value ?? []].flat()) headers.append(name, one)
  const status = answer.statusCode ?? 500
  const empty = [101, 204, 205, 304].includes(status)
  return new Response(empty ? null : bytes, { status, headers })
}
