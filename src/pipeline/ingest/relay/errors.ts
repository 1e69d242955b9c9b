import { FleetError } from '#model'

/** The directory of the sockets between processes cannot be used: others could reach them, or there is none. */
export class RelayDirectoryError extends FleetError {
  override readonly name = 'RelayDirectoryError'
  readonly code = 'relay_directory'
  readonly retryable = false
  readonly directory: string

  constructor(directory: string, why: string, options?: ErrorOptions) {
    super(`the directory ${directory} of the sockets between processes cannot be used: ${why}`, options)
    this.directory = directory
  }
}
