import { FleetError } from '#model'

/** The files of a listener's certificate are missing or no pair. */
export class ServerTlsError extends FleetError {
  override readonly name = 'ServerTlsError'
  readonly code = 'server_tls'
  readonly retryable = false

  constructor(file: string, why: string, options?: ErrorOptions) {
    super(`the TLS files of the agents' listener cannot be used: ${file}: ${why}`, options)
  }
}
