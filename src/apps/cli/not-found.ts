import { FleetError } from '#model'

/** What was asked for by its name is not there, or not for the caller to see. */
export class NotFoundError extends FleetError {
  override readonly name = 'NotFoundError'
  readonly code = 'not_found'
  readonly retryable = false
}
