import { FleetError } from '#model'

/**
 * A patch that cannot be applied. `status` is the HTTP code the API answers with: 400 where the patch itself is no
 * patch, 413 where it does too much, 422 where it does not fit the object.
 */
export class PatchError extends FleetError {
  override readonly name = 'PatchError'
  readonly code = 'patch_not_applicable'
  readonly retryable = false
  readonly status: 400 | 413 | 422

  constructor(status: 400 | 413 | 422, message: string) {
    super(message)
    this.status = status
  }
}
