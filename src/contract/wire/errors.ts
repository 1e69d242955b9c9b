import { FleetError } from '#model'

/**
 * A message or a body that is not of this protocol, or (`base_mismatch`) a difference to something other than the base at hand.
 * The first never succeeds later; after the second a complete frame does.
 */
export class WireError extends FleetError {
  override readonly name = 'WireError'
  readonly code: 'malformed_message' | 'base_mismatch'
  readonly retryable: boolean

  constructor(why: string, options?: ErrorOptions & { readonly code?: WireError['code'] }) {
    super(why, options)
    this.code = options?.code ?? 'malformed_message'
    this.retryable = this.code === 'base_mismatch'
  }
}
