import { FleetError } from '#model'

/** What should be a certificate request is none, or its signature is not made with its key. */
export class CertificateRequestError extends FleetError {
  override readonly name = 'CertificateRequestError'
  readonly code = 'certificate_request_invalid'
  readonly retryable = false
}

/** The hub's CA cannot be used as it is kept or given: nothing is signed, and no other one is made by itself. */
export class AuthorityUnusableError extends FleetError {
  override readonly name = 'AuthorityUnusableError'
  readonly code = 'authority_unusable'
  readonly retryable = false
}

/** Another process wrote the CA meanwhile; read it again and try once more. */
export class AuthorityChangedError extends FleetError {
  override readonly name = 'AuthorityChangedError'
  readonly code = 'authority_changed'
  readonly retryable = true

  constructor() {
    super("another process changed the hub's CA at the same time")
  }
}
