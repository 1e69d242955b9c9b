/**
 * The base of every error we throw on purpose: a code for programs, a sentence for people, facts as fields.
 * `code` is stable snake_case; `retryable` says whether the same call may succeed later without a change.
 */
export abstract class FleetError extends Error {
  abstract readonly code: string
  abstract readonly retryable: boolean

  /** Wraps an unknown value once, at a boundary; a FleetError passes through. */
  static from(value: unknown): FleetError {
    if (value instanceof FleetError) return value
    return new UnexpectedError(value instanceof Error ? value.message : String(value), { cause: value })
  }
}

/** What a command says of it: the sentence with the code that the documentation has it under, before the lines that point at a place in a text. */
export const codedMessage = ({ message, code }: FleetError): string => message.replace(/(?=\n|$)/, ` (${code})`)

/** Something we did not foresee: always a reason to look at the log. */
export class UnexpectedError extends FleetError {
  override readonly name = 'UnexpectedError'
  readonly code = 'unexpected'
  readonly retryable = false
}

/** A text that is no DNS name of Kubernetes where one is needed. */
export class InvalidNameError extends FleetError {
  override readonly name = 'InvalidNameError'
  readonly code = 'invalid_name'
  readonly retryable = false

  constructor(what: string, text: string) {
    super(`${JSON.stringify(text.slice(0, 80))} is no ${what} name: use lower case letters, digits, "-" and "."`)
  }
}

/** A store (Redis, a disk, VictoriaMetrics) did not take or give what was asked; nothing was written. */
export class StoreUnavailableError extends FleetError {
  override readonly name = 'StoreUnavailableError'
  readonly code = 'store_unavailable'
  readonly retryable = true
  readonly store: string
  readonly reason: string

  constructor(store: string, reason: string, options?: ErrorOptions) {
    super(`${store} is not available: ${reason}`, options)
    this.store = store
    this.reason = reason
  }
}

/** A promise of our own code is broken: fails loudly, never handled. */
export function invariant(condition: unknown, why: string): asserts condition {
  if (!condition) throw new Error(`invariant broken: ${why}`)
}
