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
