import type { StoreView } from '#http'
import type { Clock } from '#model'
import type { StateReader } from '#state'
import type { ApiOptions } from './types.ts'

interface Parts extends Pick<ApiOptions, 'readiness'> {
  readonly state: Pick<StateReader, 'availability'>
  readonly clock: Clock
}

/** Whether this hub knows its fleet and hears what is new, as streams and answers say it to anybody. */
export class StoreFacts {
  readonly #parts: Parts
  /** since when it was found to hear nothing new */
  #deafSince: number | null = null

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** To be asked now and then, so that it knows since when. */
  now(): StoreView {
    const { state, clock, readiness } = this.#parts
    const fault = faultIn(readiness)
    this.#deafSince = fault === undefined ? null : (this.#deafSince ?? clock.now())
    const availability = state.availability()
    switch (availability.state) {
      case 'unavailable': // its own words may name hosts of the inside: they are for the log
        return { state: 'unavailable', since: availability.since, reason: 'the store behind the hub does not answer' }
      case 'loading':
        return { state: 'loading', since: this.#deafSince, reason: availability.missing ?? '' }
      case 'available':
        if (fault === undefined && availability.silent) return { state: 'available', ...availability.silent }
        return { state: 'available', since: this.#deafSince, reason: fault ?? '' }
    }
  }
}

/** The first of them. */
function faultIn(checks: ApiOptions['readiness'] = {}): string | undefined {
  for (const check of Object.values(checks)) {
    const fault = check()
    if (fault !== undefined) return fault
  }
  return undefined
}
