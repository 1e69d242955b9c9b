import { FleetError } from '#model'

class InvalidTimeError extends FleetError {
  override readonly name = 'InvalidTimeError'
  readonly code = 'invalid_time'
  readonly retryable = false

  constructor(at: string) {
    super(`--at ${at} is no time; write it like 2026-12-24T18:00:00Z`)
  }
}

/** ms since the Unix epoch; now where none is given. @throws InvalidTimeError */
export function timeOf(at: string | undefined): number {
  const ms = at === undefined ? Date.now() : Date.parse(at)
  if (Number.isNaN(ms)) throw new InvalidTimeError(at ?? '')
  return ms
}
