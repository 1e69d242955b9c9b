import { FleetError } from '#model'

/** Objects that were stored can be read in neither copy: what is left may lack access policies, so nothing is served. */
export class ObjectsLostError extends FleetError {
  override readonly name = 'ObjectsLostError'
  readonly code = 'objects_lost'
  readonly retryable = false

  /** @param writes that can be read in no copy; `all`: nothing is there or can be read */
  constructor(dir: string, writes: number | 'all', left: number) {
    super(
      (writes === 'all'
        ? `all objects stored under ${dir} are gone or cannot be read: clusters, access policies and credentials among them. `
        : `${writes} of the writes stored under ${dir} can be read in neither of their two copies: ${left} objects are left, and access policies ` +
          'may be missing or old among them. ') +
        'Put the folder back from a backup, or start once with --accept-loss to go on with what is left',
    )
  }
}

/** Objects are there and whole, and sealed with a key that is not at hand. */
export class ObjectsSealedError extends FleetError {
  override readonly name = 'ObjectsSealedError'
  readonly code = 'encryption_key_missing'
  readonly retryable = false

  /** @param unknown ids of the keys that are missing. @param known ids of those at hand */
  constructor(dir: string, unknown: readonly string[], known: readonly string[]) {
    super(
      `objects stored under ${dir} are sealed with ${unknown.length === 1 ? 'the key' : 'the keys'} ${unknown.join(', ')}, and ` +
        `${known.length === 0 ? 'no key is at hand' : `only ${known.join(', ')} is at hand`}. Nothing is lost: give that key with ENCRYPTION_KEY_FILE, ` +
        'on a line below the one in force, or put back the file encryption.key that was saved with the folder. Where it is lost for good, put back a backup ' +
        'whose key is there, or start once with --accept-loss: everything that is sealed with it is gone then',
    )
  }
}
