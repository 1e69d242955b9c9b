import { FleetError, type Outcome } from '#model'
import { AddressRefusedError } from '#outbound'
import { CONNECT_TIMEOUT_MS } from './connector.ts'

/**
 * Why a call to a cluster's API ended badly. `unreachable`, `timeout`, `tls` and `server` are about the cluster and count
 * for the circuit breaker; `closed` is about us, who ended the client; the others are answers.
 */
export type KubeErrorReason =
  | 'not_found'
  | 'forbidden'
  | 'unauthorized'
  | 'conflict'
  | 'already_exists'
  | 'expired'
  | 'throttled'
  | 'timeout'
  | 'unreachable'
  | 'invalid'
  | 'tls'
  | 'breaker_open'
  | 'server'
  | 'protocol'
  | 'closed'

interface KubeErrorFacts {
  readonly httpStatus?: number
  /** How long the server asks us to wait, ms. */
  readonly retryAfterMs?: number
  /** The message of the API's Status object. */
  readonly apiMessage?: string
  readonly cause?: unknown
}

const RETRYABLE: ReadonlySet<KubeErrorReason> = new Set<KubeErrorReason>([
  'conflict',
  'expired',
  'throttled',
  'timeout',
  'unreachable',
  'breaker_open',
  'server',
  'protocol',
  'closed',
])

/** A call to a cluster's API did not succeed. The message is one sentence with the cause and the next step; never a secret. */
export class KubeError extends FleetError {
  override readonly name = 'KubeError'
  /** `kube_` and the reason; of `breaker_open` that of the trouble which opened it: what people and programs outside are told */
  readonly code: `kube_${KubeErrorReason}`
  readonly reason: KubeErrorReason
  readonly retryable: boolean
  /** of the answer, where there was one */
  readonly httpStatus?: number
  /** how long the server (or the open breaker) asks us to wait, ms */
  readonly retryAfterMs?: number
  /** what the API itself said, where it did */
  readonly apiMessage?: string

  constructor(reason: KubeErrorReason, message: string, facts: KubeErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.reason = reason
    this.code = reason === 'breaker_open' && facts.cause instanceof KubeError ? facts.cause.code : `kube_${reason}`
    this.retryable = RETRYABLE.has(reason)
    if (facts.httpStatus !== undefined) this.httpStatus = facts.httpStatus
    if (facts.retryAfterMs !== undefined) this.retryAfterMs = facts.retryAfterMs
    if (facts.apiMessage !== undefined) this.apiMessage = facts.apiMessage
  }
}

/**
 * The error of a call that was not made, to spare a cluster in trouble: it reads as that trouble, so that a pause hides no cause. Which
 * call met it is left out: that was another's.
 */
export function pausedAfter(trouble: KubeError | undefined, retryAfterMs: number): KubeError {
  const why = trouble?.message.replace(/^[A-Z]+ \/\S*: /, '') ?? 'the cluster was in trouble a moment ago'
  return new KubeError('breaker_open', why, { retryAfterMs, cause: trouble })
}

/** Whether an error is a KubeError, of this reason where one is given. */
export function isKubeError(error: unknown, reason?: KubeErrorReason): error is KubeError {
  return error instanceof KubeError && (reason === undefined || error.reason === reason)
}

/**
 * How a read that ended with this error counts in a batch: not found is `absent`, refused is `forbidden`.
 * @throws the error itself where we closed the client: nothing is known then, and nothing may be said of the cluster
 */
export function outcomeOf(error: unknown): Exclude<Outcome, 'complete'> {
  throwOwnClose(error)
  if (!(error instanceof KubeError)) return 'unreachable'
  if (error.reason === 'not_found') return 'absent'
  return error.reason === 'forbidden' || error.reason === 'unauthorized' ? 'forbidden' : 'unreachable'
}

/** Throws the error where it is only that we closed the client: no fault of the cluster. Every place that blames one asks this first. */
export function throwOwnClose(error: unknown): void {
  if (isKubeError(error, 'closed')) throw error
}

/** Whether this says that the cluster itself is in trouble, rather than our call. */
export function isClusterTrouble(error: unknown): boolean {
  return error instanceof KubeError && ['unreachable', 'timeout', 'tls', 'server'].includes(error.reason)
}

/** Whether this says that nobody was reached at all. */
export function isConnectionTrouble(error: unknown): boolean {
  return error instanceof KubeError && ['unreachable', 'tls'].includes(error.reason)
}

/** Whether nothing came back: nobody was reached, or asked, as it was in trouble a moment ago. */
export function isUnanswered(error: unknown): boolean {
  return isConnectionTrouble(error) || isKubeError(error, 'timeout') || isKubeError(error, 'breaker_open')
}

/** What a call was, for messages: the method and the path without its query. */
export function describeCall(method: string, path: string): string {
  return `${method} ${path.split('?', 1)[0]}`
}

interface ApiStatus {
  readonly reason?: string
  readonly message?: string
  readonly retryAfterMs?: number
}

/** The error for an HTTP answer of 300 and above. `body` is a Status object, or whatever text came. */
export function errorOfAnswer(call: string, httpStatus: number, body: unknown, retryAfterMs?: number): KubeError {
  const status = typeof body === 'string' ? parseStatus(body) : readStatus(body)
  return errorOfStatus(call, httpStatus, status, retryAfterMs ?? status.retryAfterMs)
}

/** The error for a Status object met inside a stream. */
export function errorOfStatusObject(call: string, object: unknown): KubeError {
  const status = readStatus(object)
  const code = isRecord(object) && typeof object.code === 'number' ? object.code : 500
  return errorOfStatus(call, code, status, status.retryAfterMs)
}

function errorOfStatus(call: string, httpStatus: number, status: ApiStatus, retryAfterMs?: number): KubeError {
  const reason = reasonOf(httpStatus, status.reason)
  const said = status.message ? `: ${status.message}` : ''
  return new KubeError(reason, `${call}: ${sentence(reason, httpStatus)}${said}`, {
    httpStatus,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(status.message === undefined ? {} : { apiMessage: status.message }),
  })
}

function reasonOf(httpStatus: number, apiReason: string | undefined): KubeErrorReason {
  if (apiReason === 'Expired' || apiReason === 'Gone' || httpStatus === 410) return 'expired'
  if (apiReason === 'AlreadyExists') return 'already_exists'
  switch (httpStatus) {
    case 401:
      return 'unauthorized'
    case 403:
      return 'forbidden'
    case 404:
      return 'not_found'
    case 409:
      return 'conflict'
    case 429:
      return 'throttled'
    default:
      // An API server sends nobody elsewhere: what does is none, and has not looked at our credentials.
      return httpStatus >= 500 || httpStatus < 400 ? 'server' : 'invalid'
  }
}

function sentence(reason: KubeErrorReason, httpStatus: number): string {
  switch (reason) {
    case 'unauthorized':
      return 'the cluster does not accept our credentials (401); renew the token or certificate'
    case 'forbidden':
      return 'the account may not do this (403); give it a role that allows it'
    case 'not_found':
      return 'not found (404)'
    case 'conflict':
      return 'the object has changed in between (409); read it again and repeat'
    case 'already_exists':
      return 'it exists already (409)'
    case 'expired':
      return 'the version asked for is too old (410); list again'
    case 'throttled':
      return 'the cluster asks for fewer requests (429)'
    case 'server':
      return httpStatus < 400
        ? `it sends elsewhere (${httpStatus}), which is not followed; give the address of the API itself`
        : `the cluster's API failed (${httpStatus})`
    default:
      return `the cluster refuses the request (${httpStatus})`
  }
}

function parseStatus(body: string): ApiStatus {
  try {
    return readStatus(JSON.parse(body))
  } catch {
    // Proxies and load balancers answer in their own words: the start of them helps a person.
    const text = body
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim()
      .slice(0, 200)
    return text ? { message: text } : {}
  }
}

function readStatus(value: unknown): ApiStatus {
  if (!isRecord(value)) return {}
  const wait = isRecord(value.details) ? value.details.retryAfterSeconds : undefined
  return {
    ...(typeof value.reason === 'string' ? { reason: value.reason } : {}),
    ...(typeof value.message === 'string' ? { message: value.message.slice(0, 2000) } : {}),
    ...(typeof wait === 'number' && wait > 0 ? { retryAfterMs: wait * 1000 } : {}),
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const UNTRUSTED = new Set([
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_UNTRUSTED',
  'CERT_SIGNATURE_FAILURE',
])

/** The error for a connection that failed or broke. `endpoint` must not carry a secret. */
export function errorOfConnection(call: string, endpoint: string, cause: unknown): KubeError {
  if (cause instanceof KubeError) return cause
  const code = codeOf(cause)
  const [reason, why] = connectionTrouble(code, endpoint, cause)
  return new KubeError(reason, `${call}: ${why}`, { cause })
}

/** A name that the DNS of a cluster gives its Services. */
const OF_PODS = /^(https?:\/\/)?(kubernetes(\.default)?|[a-z0-9.-]+\.svc(\.[a-z0-9.-]+)?)(:\d+)?(\/|$)/

function connectionTrouble(code: string, endpoint: string, cause: unknown): [KubeErrorReason, string] {
  if (UNTRUSTED.has(code)) {
    return ['tls', `the certificate of ${endpoint} is not signed by a known CA; give the cluster's ca.crt (${code})`]
  }
  if (code === 'CERT_HAS_EXPIRED') return ['tls', `the certificate of ${endpoint} has expired; renew it`]
  if (code === 'CERT_NOT_YET_VALID') {
    return ['tls', `the certificate of ${endpoint} is not valid yet; compare the clocks of both sides`]
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return ['tls', `the certificate of ${endpoint} is for another name; use that name or set the TLS server name`]
  }
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/.test(code)) {
    return ['tls', `${endpoint} does not speak TLS; check scheme and port`]
  }
  if (/ALERT_(BAD_|UNKNOWN_)?(CERTIFICATE|CA)|CERTIFICATE_(REQUIRED|UNKNOWN|EXPIRED)/.test(code)) {
    return ['tls', `${endpoint} does not accept our client certificate; renew it (${code})`]
  }
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS') || code.startsWith('ERR_OSSL') || code === 'EPROTO') {
    return ['tls', `no TLS connection to ${endpoint} (${code})`]
  }
  if (cause instanceof AddressRefusedError) return ['unreachable', cause.message]
  if ((code === 'ENOTFOUND' || code === 'EAI_AGAIN') && OF_PODS.test(endpoint))
    return [
      'unreachable',
      `the name of ${endpoint} is known in the pods of its own cluster alone, and cannot be resolved here (${code}); outside of them give a kubeconfig whose server is the address by which this machine reaches the API`,
    ]
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return ['unreachable', `the name of ${endpoint} cannot be resolved (${code}); check the address and DNS`]
  }
  if (code === 'ECONNREFUSED') return ['unreachable', `nothing listens at ${endpoint}; check address and port`]
  // However far a call came within its time, what people read is the same.
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return ['timeout', timeoutText(endpoint, CONNECT_TIMEOUT_MS)]
  if (/TIMEOUT|ETIMEDOUT/.test(code)) return ['timeout', `${endpoint} did not answer in time (${code})`]
  if (code.startsWith('HPE_') || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
    return ['protocol', `${endpoint} does not answer in HTTP (${code}); check scheme, port and proxy`]
  }
  const detail = cause instanceof Error ? cause.message : String(cause)
  return ['unreachable', `the connection to ${endpoint} broke: ${detail || code}`]
}

export const timeoutText = (endpoint: string, timeoutMs: number): string =>
  `${endpoint} did not answer completely within ${timeoutMs / 1000} s; check its load and the network`

/** The most telling code of an error or of what caused it. */
function codeOf(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const code = (at as { code?: unknown }).code
    if (typeof code === 'string' && code !== 'UND_ERR') return code
  }
  return ''
}

/** Whether a connection that stood broke, so that a read may be tried once more at once (a kept-alive socket grows stale). */
export function isBrokenConnection(cause: unknown): boolean {
  return /^(ECONNRESET|EPIPE|UND_ERR_SOCKET|UND_ERR_RES_CONTENT_LENGTH_MISMATCH|HPE_INVALID_EOF_STATE)$/.test(
    codeOf(cause),
  )
}
