import { FleetError } from '#model'

/** No room for another record: the disk is full, or the log is at its own bound. Nothing was kept; ask again later. */
export class LogFullError extends FleetError {
  override readonly name = 'LogFullError'
  readonly code = 'log_full'
  readonly retryable = true
  readonly directory: string

  constructor(directory: string, reason: string, options?: ErrorOptions) {
    super(`the log in ${directory} is full: ${reason}`, options)
    this.directory = directory
  }
}

/** The disk did not take the record. Nothing was acknowledged; ask again later. */
export class LogWriteError extends FleetError {
  override readonly name = 'LogWriteError'
  readonly code = 'log_write_failed'
  readonly retryable = true
  readonly directory: string

  constructor(directory: string, reason: string, options?: ErrorOptions) {
    super(`the log in ${directory} could not be written: ${reason}`, options)
    this.directory = directory
  }
}

/** A record above the log's `maxRecordBytes`: never taken. */
export class RecordTooLargeError extends FleetError {
  override readonly name = 'RecordTooLargeError'
  readonly code = 'record_too_large'
  readonly retryable = false
  readonly sizeBytes: number

  constructor(sizeBytes: number, maximumBytes: number) {
    super(`a record of ${sizeBytes} bytes is above the log's maximum of ${maximumBytes} bytes`)
    this.sizeBytes = sizeBytes
  }
}

/** Another living process works in this directory. */
export class DirectoryLockedError extends FleetError {
  override readonly name = 'DirectoryLockedError'
  readonly code = 'directory_locked'
  readonly retryable = false
  readonly directory: string
  readonly holder: string

  constructor(directory: string, holder: string) {
    super(
      `${directory} is in use by ${holder}: stop that process or choose another directory (--data-dir of a hub, --buffer-dir of an agent)`,
    )
    this.directory = directory
    this.holder = holder
  }
}

/** The system's error of a disk that has no room. */
export function isDiskFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOSPC' || code === 'EDQUOT'
}
