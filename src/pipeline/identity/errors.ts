import { FleetError } from '#model'

/** The configuration would open the fleet to people it is not meant for. Refuses the start. */
export class UnsafeConfigurationError extends FleetError {
  override readonly name = 'UnsafeConfigurationError'
  readonly code = 'unsafe_configuration'
  readonly retryable = false
}

/** Who asks cannot be found out now: a provider, the hub's Kubernetes or the store of sign-outs does not answer. */
export class IdentityUnavailableError extends FleetError {
  override readonly name = 'IdentityUnavailableError'
  readonly code = 'identity_unavailable'
  readonly retryable = true
  /** when to ask again, ms */
  readonly retryAfterMs: number = 5000
}

/** A bearer token does not count. `reason` is for the log and never holds a part of the token. */
export class TokenRefusedError extends FleetError {
  override readonly name = 'TokenRefusedError'
  readonly code = 'token_refused'
  readonly retryable = false
  readonly reason: string

  constructor(reason: string, options?: ErrorOptions) {
    super('the bearer token does not count here: get a new one from its issuer', options)
    this.reason = reason
  }
}

/** A person did not get in; the sentence says what to do. `cookies` are to be set on the answer. */
export class SignInFailedError extends FleetError {
  override readonly name = 'SignInFailedError'
  readonly code = 'sign_in_failed'
  readonly retryable: boolean = true
  readonly cookies: readonly string[]

  constructor(sentence: string, { cookies = [], ...options }: ErrorOptions & { cookies?: readonly string[] } = {}) {
    super(sentence, options)
    this.cookies = cookies
  }
}

/** Too many failed tries of this name or from this address. */
export class SignInThrottledError extends FleetError {
  override readonly name = 'SignInThrottledError'
  readonly code = 'sign_in_throttled'
  readonly retryable = true
  readonly retryAfterMs: number

  constructor(retryAfterMs: number) {
    super(`too many failed tries: wait ${Math.ceil(retryAfterMs / 1000)} s`)
    this.retryAfterMs = retryAfterMs
  }
}

/** This way to sign in is not configured. */
export class SignInOffError extends FleetError {
  override readonly name = 'SignInOffError'
  readonly code = 'sign_in_off'
  readonly retryable = false

  constructor(way: string) {
    super(`signing in by ${way} is not configured here`)
  }
}
