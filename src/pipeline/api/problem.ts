import { isProblemCode, type Problem, type ProblemCode, problemStatus } from '#http'
import { FleetError } from '#model'

/** Anything the API refuses, by its code in the catalogue. */
export class RefusedError extends FleetError {
  override readonly name = 'RefusedError'
  readonly code: ProblemCode
  readonly retryable: boolean
  readonly retryAfterSeconds: number | undefined

  constructor(code: ProblemCode, message: string, options: ErrorOptions & { retryAfterSeconds?: number } = {}) {
    super(message, options)
    this.code = code
    this.retryAfterSeconds = options.retryAfterSeconds
    this.retryable = options.retryAfterSeconds !== undefined
  }
}

/** Unknown and hidden are one answer: the difference would tell of what is hidden. */
export const clusterNotFound = (name: string): RefusedError =>
  new RefusedError('cluster_not_found', `there is no cluster ${JSON.stringify(name)} that you may see`)

export const nodeNotFound = (cluster: string, node: string): RefusedError =>
  new RefusedError('node_not_found', `cluster ${cluster} has no node ${JSON.stringify(node)} that you may see`)

/** The same for types: without a grant there is none. */
export const typeNotFound = (type: string): RefusedError =>
  new RefusedError('type_not_found', `Custom resource type '${type.slice(0, 80)}' not found`)

export const unauthenticated = (): RefusedError => new RefusedError('unauthenticated', 'authentication required')

const fastifyCodes: Readonly<Record<string, ProblemCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_HANDLER_TIMEOUT: 'request_timeout',
  FST_ERR_BAD_URL: 'bad_request',
  FST_ERR_MAX_PARAM_LENGTH: 'route_not_found',
}

interface HttpError {
  readonly statusCode?: number
  readonly code?: string
  readonly validationContext?: string
  readonly validation?: readonly SchemaFault[]
}

interface SchemaFault {
  readonly keyword?: string
  readonly instancePath: string
  readonly message?: string
  readonly params: object
}

export interface ProblemAnswer {
  readonly status: number
  readonly body: Problem
  /** our own fault: belongs into the log with its cause */
  readonly unexpected: boolean
}

/** Any thrown value as the answer to send. What we did not foresee says nothing of its inside. */
export function problemOf(thrown: unknown, requestId: string): ProblemAnswer {
  const { code, message, retryAfterSeconds } = describe(thrown)
  const body: Problem = { error: message, code, requestId }
  if (retryAfterSeconds !== undefined) body.retryAfterSeconds = retryAfterSeconds
  return { status: problemStatus[code], body, unexpected: code === 'unexpected' }
}

/** What was refused, for the audit: some errors keep their reason from the caller. */
export function refusalOf(thrown: unknown): { readonly code: ProblemCode; readonly reason: string } {
  const { code, message } = describe(thrown)
  const reason = (thrown as { readonly reason?: unknown } | undefined)?.reason
  return { code, reason: typeof reason === 'string' ? reason : message }
}

function describe(thrown: unknown): { code: ProblemCode; message: string; retryAfterSeconds?: number | undefined } {
  if (thrown instanceof RefusedError) return thrown
  // Why a token was refused helps whoever forges them: it stands in the log.
  if (thrown instanceof FleetError && thrown.code === 'token_refused')
    return { code: 'token_refused', message: 'the token was refused' }
  if (thrown instanceof FleetError && isProblemCode(thrown.code) && thrown.code !== 'unexpected') {
    return { code: thrown.code, message: thrown.message, ...(thrown.retryable && { retryAfterSeconds: pause(thrown) }) }
  }
  const error = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as HttpError
  // An empty or endless name in a path names nothing.
  if (error.validationContext === 'params') return { code: 'route_not_found', message: 'there is nothing at this path' }
  if (error.validation) return { code: 'invalid_parameter', message: validationMessage(error) }
  const known = error.code === undefined ? undefined : fastifyCodes[error.code]
  if (known) return { code: known, message: thrown instanceof Error ? thrown.message : known }
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return { code: 'bad_request', message: thrown instanceof Error ? thrown.message : 'the request cannot be read' }
  }
  return { code: 'unexpected', message: 'the server met an error it did not foresee; its log has the request id' }
}

/** Some errors know when to ask again. */
const pause = (thrown: FleetError & { readonly retryAfterMs?: unknown }): number =>
  typeof thrown.retryAfterMs === 'number' ? Math.max(1, Math.ceil(thrown.retryAfterMs / 1000)) : 5

function validationMessage({ validation = [] }: HttpError): string {
  const [first] = validation
  const { missingProperty } = (first?.params ?? {}) as { missingProperty?: string }
  const name = first?.instancePath.split('/')[1] || missingProperty || 'request'
  // Of words that it could be, each is a fault.
  const words = validation.flatMap(({ instancePath, params }) =>
    instancePath === first?.instancePath && 'allowedValue' in params ? [params.allowedValue] : [],
  )
  const fault = words.length > 0 ? `is none of ${words.join(', ')}` : first && faultText(first)
  return `query parameter ${name} ${fault ?? 'is not valid'}`
}

/** What is wrong with a value, as whoever wrote it into an address would say it. */
function faultText({ keyword = '', message = 'is not valid', params }: SchemaFault): string {
  const { limit, allowedValues } = params as { limit?: number; allowedValues?: readonly unknown[] }
  if (allowedValues) return `is none of ${allowedValues.join(', ')}`
  return limit === undefined ? message : (boundTexts[keyword]?.(limit) ?? message)
}

const boundTexts: Readonly<Record<string, (limit: number) => string>> = {
  minLength: (least) => (least === 1 ? 'is empty' : `has fewer than ${least} characters`),
  maxLength: (most) => `has more than ${most} characters`,
  maxItems: (most) => `stands there more than ${most} times`,
  minimum: (least) => `is less than ${least}`,
  maximum: (most) => `is more than ${most}`,
}
