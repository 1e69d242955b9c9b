import type { HoleCause, Loss } from '#model'
import { HUB_ORIGIN } from './origins.ts'

export interface Round {
  readonly sequence: number
  /** collection time, ms */
  readonly at: number
  readonly durationMs: number
  /** there are numbers in it */
  readonly hasSamples: boolean
  /** the hub reads the cluster; an agent, or a collector of the original, sends the round */
  readonly reader: 'hub' | 'sender'
  /** an agent has numbered batches before it that are not here: what is missing may come, or be declared */
  readonly isAwaited: boolean
}

export interface Hub {
  /** that rounds of this reader keep */
  readonly intervalMs: number
  /** when this process began to take batches, ms */
  readonly startedAt: number
}

/**
 * What history has nothing of, of one cluster: from the last live round that left samples to the next one, whoever sends it, told
 * with its cause as far as it is known, so that a range without samples and without a span is of a time in which nobody was to
 * collect. What an agent delivers of that time later takes the place of it where history is read.
 */
export class Holes {
  /** up to here there are samples, or it was told why there are none; undefined: nobody was to collect yet */
  #coveredTo: number | undefined
  #lastDurationMs = 0
  /** the last round left no samples */
  #isOpen = false
  /** why a round since then was not kept */
  #refusal: HoleCause | undefined

  /** a hub that did not run is why nothing was received */
  readonly #hubWasReading: boolean

  constructor(coveredTo?: number, hubWasReading = true) {
    this.#coveredTo = coveredTo
    this.#hubWasReading = hubWasReading
  }

  /** A round was refused by the hub. */
  refused(cause: HoleCause): void {
    this.#refusal ??= cause
  }

  /** @returns what is to be told before this round is; undefined: nothing is missing */
  before(round: Round, { intervalMs, startedAt }: Hub): Loss | undefined {
    const { sequence, at, durationMs, hasSamples } = round
    const from = this.#coveredTo
    if (from === undefined || at <= from) return undefined
    const isLate = at - from > 2 * intervalMs + Math.max(durationMs, this.#lastDurationMs)
    const isMissing = round.isAwaited ? isLate : isLate || !hasSamples || this.#isOpen
    if (!isMissing) return undefined
    const missed = Math.round((at - from) / Math.max(1, intervalMs)) - (hasSamples ? 1 : 0)
    return {
      origin: HUB_ORIGIN,
      sequence,
      lost: [],
      from,
      to: at,
      cause: this.#cause(round, isLate && from < startedAt && this.#hubWasReading),
      count: Math.max(1, missed),
      keptEveryMs: 0,
    }
  }

  /** The round is kept. */
  after({ at, durationMs, hasSamples }: Round): void {
    this.#coveredTo = Math.max(this.#coveredTo ?? at, at)
    this.#lastDurationMs = durationMs
    this.#isOpen = !hasSamples
    this.#refusal = undefined
  }

  #cause({ hasSamples, reader, isAwaited }: Round, hubWasDown: boolean): HoleCause {
    if (isAwaited) return 'not_received'
    if (hubWasDown) return 'hub_down'
    if (this.#refusal) return this.#refusal
    if (!hasSamples || this.#isOpen) return 'unreachable'
    return reader === 'hub' ? 'not_kept' : 'not_received'
  }
}
