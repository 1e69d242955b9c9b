import { FleetError } from '#model'

/** metav1.Status: how the API says that something failed (or that a deletion went through). */
export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: Record<string, unknown>
  readonly status: 'Success' | 'Failure'
  readonly message?: string
  readonly reason?: string
  readonly details?: StatusDetails
  readonly code?: number
}

export interface StatusDetails {
  readonly name?: string
  readonly group?: string
  readonly kind?: string
  readonly uid?: string
  readonly causes?: readonly StatusCause[]
  readonly retryAfterSeconds?: number
}

export interface StatusCause {
  readonly reason?: string
  readonly message?: string
  readonly field?: string
}

const CODES = {
  BadRequest: 400,
  Unauthorized: 401,
  Forbidden: 403,
  NotFound: 404,
  MethodNotAllowed: 405,
  NotAcceptable: 406,
  AlreadyExists: 409,
  Conflict: 409,
  Expired: 410,
  RequestEntityTooLarge: 413,
  UnsupportedMediaType: 415,
  Invalid: 422,
  TooManyRequests: 429,
  InternalError: 500,
  ServiceUnavailable: 503,
  Timeout: 504,
  InsufficientStorage: 507,
} as const

/** A reason of the Kubernetes API, such as NotFound; each has its HTTP status. */
export type StatusReason = keyof typeof CODES

/**
 * What the API refuses, in its own words: `reason` and `httpCode` are those of the Kubernetes API, `details` name the
 * object and the fields. Thrown by every operation on objects, answered as a Status over HTTP.
 */
export class ApiError extends FleetError {
  override readonly name = 'ApiError'
  readonly code: string
  readonly retryable: boolean
  readonly reason: StatusReason
  readonly httpCode: number
  readonly details: StatusDetails | undefined

  constructor(reason: StatusReason, message: string, details?: StatusDetails, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
    this.httpCode = CODES[reason]
    this.code = `api_${reason.replace(/[A-Z]/g, (letter, at) => (at ? '_' : '') + letter.toLowerCase())}`
    this.retryable = this.httpCode >= 500 || reason === 'Conflict' || reason === 'TooManyRequests'
    this.details = details
  }

  /** The Status a client is sent. */
  get status(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details ? { details: this.details } : {}),
      code: this.httpCode,
    }
  }
}

interface Named {
  readonly group: string
  readonly plural: string
  readonly kind: string
}

const qualified = ({ group, plural }: Named): string => (group ? `${plural}.${group}` : plural)
const groupOf = ({ group }: Named): { group?: string } => (group ? { group } : {})

export const notFound = (resource: Named, name: string): ApiError =>
  new ApiError('NotFound', `${qualified(resource)} "${name}" not found`, {
    name,
    ...groupOf(resource),
    kind: resource.plural,
  })

export const alreadyExists = (resource: Named, name: string): ApiError =>
  new ApiError('AlreadyExists', `${qualified(resource)} "${name}" already exists`, {
    name,
    ...groupOf(resource),
    kind: resource.plural,
  })

export const conflict = (resource: Named, name: string, why: string, causes?: readonly StatusCause[]): ApiError =>
  new ApiError('Conflict', `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`, {
    name,
    ...groupOf(resource),
    kind: resource.plural,
    ...(causes ? { causes } : {}),
  })

export const staleVersion = (resource: Named, name: string): ApiError =>
  conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  )

/** 422: every fault by its field, as the API prints it. */
export function invalid(
  resource: Named,
  name: string,
  faults: readonly { readonly reason: string; readonly path: string; readonly message: string }[],
): ApiError {
  const parts = faults.map((fault) => `${fault.path}: ${fault.message}`)
  const kind = resource.group ? `${resource.kind}.${resource.group}` : resource.kind
  const [first] = parts
  return new ApiError(
    'Invalid',
    `${kind} "${name}" is invalid: ${parts.length === 1 ? first : `[${parts.join(', ')}]`}`,
    {
      ...(name ? { name } : {}),
      ...groupOf(resource),
      kind: resource.kind,
      causes: faults.map((fault) => ({ reason: fault.reason, message: fault.message, field: fault.path })),
    },
  )
}

export const forbidden = (resource: Named, name: string, why: string, causes?: readonly StatusCause[]): ApiError =>
  new ApiError('Forbidden', `${qualified(resource)}${name ? ` "${name}"` : ''} is forbidden: ${why}`, {
    ...(name ? { name } : {}),
    ...groupOf(resource),
    kind: resource.plural,
    ...(causes ? { causes } : {}),
  })

/** The answer to a deletion that went through at once. */
export const deleted = (resource: Named, name: string, uid: string | undefined): Status => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details: { name, ...groupOf(resource), kind: resource.plural, ...(uid ? { uid } : {}) },
})
