import type { IncomingHttpHeaders } from 'node:http'
import { TLSSocket } from 'node:tls'
import type { FastifyRequest } from 'fastify'
import { UnsafeConfigurationError } from '#identity'
import { hostName, isLoopback } from '#runtime'
import { RefusedError } from './problem.ts'
import type { ApiConfig } from './types.ts'

/** What every answer carries, whoever asks. */
export const securityHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
}

/** For the page: its own files and its own API, nothing inline, no frame around it. */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Refuses requests that a foreign page's name led here. A browser sends the name it resolved: a site that points its own
 * name at 127.0.0.1 is shown by that name (DNS rebinding), and on a server without sign-in that is all there is to see.
 */
export function hostCheck({ host, identity, allowedHosts = [] }: ApiConfig): (headers: IncomingHttpHeaders) => void {
  if (!identity.localAdministrator) return () => undefined
  if (!isLoopback(host))
    throw new UnsafeConfigurationError(
      `without a sign-in method the server listens on loopback only, not on API_HOST=${host}: configure one, such as TRUSTED_PROXIES or OIDC_ISSUER, or set API_HOST=127.0.0.1`,
    )
  const names = new Set(allowedHosts.map((name) => name.trim().toLowerCase()))
  return (headers) => {
    const name = hostName(headers.host ?? '')
    if (isLoopback(name) || names.has(name)) return
    throw new RefusedError('host_refused', `this server answers on localhost only, not as ${JSON.stringify(name)}`)
  }
}

/** Of a request, what tells where it came from; `principal` is null as long as nobody has been recognised. */
export type Asked = Pick<FastifyRequest, 'headers' | 'principal'>

/** Which origins may read answers from another site. */
export interface Cors {
  /** our own page's, also where a proxy in front of us changes the host */
  readonly isOwn: (request: Asked) => boolean
  readonly allows: (origin: string) => boolean
  readonly credentials: boolean
}

export function cors({ corsOrigins = [], identity }: ApiConfig): Cors {
  const origins = corsOrigins.map((origin) => origin.trim()).filter(Boolean)
  if (origins.includes('*') && identity.localAdministrator)
    throw new UnsafeConfigurationError(
      'CORS_ORIGINS is "*" without a sign-in method, so every web site could read the fleet: name the origins in CORS_ORIGINS, as https://portal.example.com, or configure a sign-in method, such as OIDC_ISSUER',
    )
  // Beside others it would hand the cookies of people to every site.
  if (origins.includes('*') && origins.length > 1)
    throw new UnsafeConfigurationError(
      'CORS_ORIGINS has "*" beside other origins: name the origins, or leave "*" alone',
    )
  const patterns = origins.map(originPattern)
  const publicUrl = publicUrlOf(identity)
  const hosts = publicUrl === undefined ? [] : [new URL(publicUrl).host]
  return {
    isOwn: (request) => {
      const { origin = '', host = '' } = request.headers
      if (!URL.canParse(origin)) return false
      const { protocol, host: from } = new URL(origin)
      // A port that goes without saying may be said in one and not in the other.
      const said = (text: string) => text.toLowerCase().replace(protocol === 'https:' ? /:443$/ : /:80$/, '')
      return from === said(host) || from === said(forwardedHeader(request, 'x-forwarded-host')) || hosts.includes(from)
    },
    allows: (origin) => patterns.some((pattern) => pattern.test(origin)),
    credentials: !origins.includes('*'),
  }
}

/** As people reach us, where that is known. */
export const publicUrlOf = ({ publicUrl, oidc }: ApiConfig['identity']): string | undefined =>
  publicUrl ?? oidc?.publicUrl

/** What a proxy we trust says of the request as it got it; empty from anybody else. A list of proxies is no answer. */
function forwardedHeader({ headers, principal }: Asked, name: 'x-forwarded-host' | 'x-forwarded-proto'): string {
  const text = principal?.method === 'trusted-proxy' ? headers[name] : undefined
  return typeof text === 'string' ? text.trim() : ''
}

/** A proxy says so: ours by what it is, any other by the address under which people reach us. Who lies, lies to itself. */
export function cameByTls(request: FastifyRequest, publicHttps: boolean): boolean {
  if (request.raw.socket instanceof TLSSocket) return true
  return (
    (publicHttps ? request.headers['x-forwarded-proto'] : forwardedHeader(request, 'x-forwarded-proto')) === 'https'
  )
}

/** One `*` stands for any text without a slash. */
function originPattern(origin: string): RegExp {
  if (origin === '*') return /^/
  const [head = '', ...tail] = origin.split('*').map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  if (tail.length > 1)
    throw new UnsafeConfigurationError(
      `CORS_ORIGINS names ${JSON.stringify(origin)}, which has more than one "*": leave one, or name the origins`,
    )
  return new RegExp(`^${[head, ...tail].join('[^/]*')}$`)
}

export const corsHeaders: Readonly<Record<string, string>> = {
  'access-control-allow-methods': 'GET, POST, OPTIONS',
  'access-control-allow-headers': 'Origin, Accept, Authorization, Content-Type',
  'access-control-max-age': '300',
}

/**
 * A POST comes from our own page, from a listed origin, or from no page at all (a command line sends no Origin).
 * @throws RefusedError
 */
export function requireSameSite(request: Asked, allowed: Cors): void {
  const { headers } = request
  const { origin } = headers
  if (headers['sec-fetch-site'] === 'cross-site' && !(origin && allowed.credentials && allowed.allows(origin)))
    throw new RefusedError('cross_site_refused', 'this request came from another web site')
  if (!origin || allowed.allows(origin) || allowed.isOwn(request)) return
  throw new RefusedError('cross_site_refused', `origin ${JSON.stringify(origin.slice(0, 200))} may not do this`)
}

/** What our client sends with every POST, and a form or an image of another site cannot. */
const intentHeader = 'x-clusterpulse-request'

/**
 * A cookie travels by itself, so it proves who asks but not that they meant to: whoever stands on one comes from our own
 * origin, listed ones not included, and says so in a header that needs a preflight from anywhere else.
 *
 * Where `browserSuffices`, the browser's own word for it does as well: `Sec-Fetch-Site: same-origin`, or an `Origin` that is
 * ours and as safe as the way the request came. No page can set either.
 * @throws RefusedError `csrf_refused`
 */
export function requireIntent(request: Asked & { readonly byTls: boolean }, { isOwn }: Cors, browserSuffices = false) {
  const { origin, 'sec-fetch-site': site, [intentHeader]: intent } = request.headers
  if (site !== undefined && site !== 'same-origin')
    throw new RefusedError('csrf_refused', 'this request did not come from our own page')
  if (origin !== undefined && !isOwn(request))
    throw new RefusedError('csrf_refused', 'this request came from another origin')
  if (intent === '1') return
  // A page that came in the clear could have been written by anybody on the way.
  const isSafe = (own: string) => own.startsWith('https:') || (own.startsWith('http:') && !request.byTls)
  if (browserSuffices && (site !== undefined || (origin !== undefined && isSafe(origin)))) return
  throw new RefusedError(
    'csrf_refused',
    'a POST that a browser could send by itself needs the header X-ClusterPulse-Request: 1; one with a bearer token needs none',
  )
}

/** From an https page the browser never goes back to http; over http it ignores this. */
export const strictTransport = 'max-age=31536000; includeSubDomains'
