import type { Logger } from '#runtime'
import { placeText, type SinkPlace } from '../sink-place.ts'

/** Why a sink did not take what it was given. */
export interface Trouble {
  /** one word, such as Transient or WriterConflict */
  readonly reason: string
  /** a sentence without any part of a credential */
  readonly message: string
}

export interface SinkHealthOptions {
  readonly logger: Logger
  /** ms since 1970 */
  readonly now: () => number
  /** A sink failed, or works again: what was found when it was looked at may not hold any more. Must neither wait nor throw. */
  readonly onDoubt: (place: SinkPlace) => void
}

/** What is known of one sink. */
interface State {
  hasTaken: boolean
  failingSince: number
  /** by inventory: why it is refused */
  readonly failing: Map<string, string>
}

/**
 * What deliveries of all inventories say of each sink. Its log tells when a sink first takes something, when it fails for a reason that is
 * new, and when it takes everything again: once each, however many inventories and deliveries there are.
 */
export class SinkHealth {
  readonly #options: SinkHealthOptions
  readonly #sinks = new Map<string, State>()

  constructor(options: SinkHealthOptions) {
    this.#options = options
  }

  /** The sink took something of this inventory. */
  took(place: SinkPlace, inventory: string, rows: number): void {
    const { logger, onDoubt } = this.#options
    const state = this.#of(place)
    const wasFailing = state.failing.delete(inventory)
    const sink = placeText(place)
    if (!state.hasTaken) logger.info({ sink, inventory, rows }, 'a sink took its first export')
    state.hasTaken = true
    if (!wasFailing || state.failing.size > 0) return
    logger.info({ sink, inventory, failedSince: textOf(state.failingSince) }, 'a sink takes what it is given again')
    onDoubt(place)
  }

  /** The sink did not take something of this inventory. */
  refused(place: SinkPlace, inventory: string, { reason, message }: Trouble): void {
    const { logger, now, onDoubt } = this.#options
    const state = this.#of(place)
    if (state.failing.size === 0) state.failingSince = now()
    const isNews = ![...state.failing.values()].includes(reason)
    state.failing.set(inventory, reason)
    const since = textOf(state.failingSince)
    if (isNews) logger.warn({ sink: placeText(place), inventory, reason, since, why: message }, 'a sink fails')
    onDoubt(place)
  }

  /** What is said of the sink may be another by now. */
  doubt(place: SinkPlace): void {
    this.#options.onDoubt(place)
  }

  /** The inventory is not written there any more. */
  left(place: SinkPlace, inventory: string): void {
    this.#sinks.get(placeText(place))?.failing.delete(inventory)
  }

  /** The sink is gone. */
  forget(place: SinkPlace): void {
    this.#sinks.delete(placeText(place))
  }

  #of(place: SinkPlace): State {
    const text = placeText(place)
    const state = this.#sinks.get(text) ?? { hasTaken: false, failingSince: 0, failing: new Map() }
    this.#sinks.set(text, state)
    return state
  }
}

const textOf = (ms: number): string => new Date(ms).toISOString()
