import { FleetError } from '#model'

/** A question would be answered with more series than the caller takes. */
export class TooManySeriesError extends FleetError {
  override readonly name = 'TooManySeriesError'
  readonly code = 'too_many_series'
  readonly retryable = false
  readonly maximum: number

  constructor(maximum: number) {
    super(`the answer would have more than ${maximum} series: ask for fewer metrics or name the keys`)
    this.maximum = maximum
  }
}

/** A range that ends before it begins, or has no step, no metric, or too many points. */
export class InvalidRangeError extends FleetError {
  override readonly name = 'InvalidRangeError'
  readonly code = 'invalid_range'
  readonly retryable = false
}

/** The backend read what we sent and will never take it. `reason` is its own sentence. */
export class SamplesRefusedError extends FleetError {
  override readonly name = 'SamplesRefusedError'
  readonly code = 'samples_refused'
  readonly retryable = false
  readonly store: string
  readonly reason: string

  constructor(store: string, reason: string) {
    super(`${store} refuses these samples: ${reason}`)
    this.store = store
    this.reason = reason
  }
}

/** The store was opened for reading only. */
export class ReadOnlyHistoryError extends FleetError {
  override readonly name = 'ReadOnlyHistoryError'
  readonly code = 'history_read_only'
  readonly retryable = false

  constructor() {
    super('this history was opened for reading only')
  }
}
