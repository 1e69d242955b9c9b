import { FleetError } from '#model'

/** Something is sealed with a key that is not at hand. Nothing is wrong with it: with that key it opens. */
export class UnknownKeyError extends FleetError {
  override readonly name = 'UnknownKeyError'
  readonly code = 'encryption_key_missing'
  readonly retryable = false
  readonly keyId: string
  readonly known: readonly string[]

  /** @param known ids of the keys at hand */
  constructor(keyId: string, known: readonly string[], what = 'something') {
    super(
      `${what} is sealed with the key ${keyId}, which is not at hand (${known.length === 0 ? 'no key is' : `only ${known.join(', ')}`}): ` +
        'give that key with ENCRYPTION_KEY_FILE, on a line below the one in force',
    )
    this.keyId = keyId
    this.known = known
  }
}

/** What was sealed is not what it was, or belongs to another place. */
export class SealBrokenError extends FleetError {
  override readonly name = 'SealBrokenError'
  readonly code = 'seal_broken'
  readonly retryable = false

  constructor(what: string, reason: string, options?: ErrorOptions) {
    super(`${what} cannot be opened: ${reason}. Put it back from a backup`, options)
  }
}
