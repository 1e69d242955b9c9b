import { FleetError } from '#model'

/** The hub said no, or the folder belongs to another membership: why, and what would do. */
export class JoinError extends FleetError {
  override readonly name = 'JoinError'
  readonly code: 'join_refused' | 'join_denied' | 'other_membership' | 'no_membership'
  readonly retryable = false

  constructor(code: JoinError['code'], message: string) {
    super(message)
    this.code = code
  }
}
