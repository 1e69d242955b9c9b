import { FleetError } from '#model'

/**
 * Which policies are in force cannot be known now, so nobody may be answered: never an open door, never an empty fleet.
 * Requests fail with 503; the same call may succeed a little later.
 */
export class PoliciesUnavailableError extends FleetError {
  override readonly name = 'PoliciesUnavailableError'
  readonly code = 'policies_unavailable'
  readonly retryable = true
  readonly reason: string

  constructor(reason: string, options?: ErrorOptions) {
    super(`the access policies cannot be read: ${reason}`, options)
    this.reason = reason
  }
}
