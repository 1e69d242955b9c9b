import type { HoleCause, Loss } from '#model'
import { HUB_ORIGIN } from './origins.ts'

export interface Round {
  readonly sequence: number
  /** collection time, ms */
  readonly at: number
  readonly durationMs: number
  /** history takes numbers of it */
  readonly hasSamples: boolean
}

export interface Hub {
  readonly intervalMs: number
  /** when this process began to take batches, ms */
  readonly startedAt: number
}

/**
 * What history has nothing of, of one cluster that the hub reads itself: from the last round that left samples to the next
 * one, told with its cause as far as it is known, so that a range without samples and without a span is of a time in which
 * nobody was to collect.
 */
export class Holes {
  /** up to here there are samples, or it was told why there are none; undefined: nobody was to collect yet */
  #coveredTo: number | undefined
  #lastDurationMs = 0
  /** the last round left no samples */
  #isOpen = false
  /** why a round since then was not kept */
  #refusal: HoleCause | undefined

  constructor(coveredTo?: number) {
    this.#coveredTo = coveredTo
  }

  /** A round was refused by the hub. */
  refused(cause: HoleCause): void {
    this.#refusal ??= cause
  }

  /** @returns what is to be told before this round is; undefined: nothing is missing */
  before({ sequence, at, durationMs, hasSamples }: Round, { intervalMs, startedAt }: Hub): Loss | undefined {
    const from = this.#coveredTo
    if (from === undefined || at <= from) return undefined
    const isLate = at - from > 2 * intervalMs + Math.max(durationMs, this.#lastDurationMs)
    if (hasSamples && !this.#isOpen && !isLate) return undefined
    const missed = Math.round((at - from) / Math.max(1, intervalMs)) - (hasSamples ? 1 : 0)
    return {
      origin: HUB_ORIGIN,
      sequence,
      lost: [],
      from,
      to: at,
      cause: isLate && from < startedAt ? 'hub_down' : this.#causeNow(hasSamples),
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

  #causeNow(hasSamples: boolean): HoleCause {
    if (this.#refusal) return this.#refusal
    return !hasSamples || this.#isOpen ? 'unreachable' : 'not_kept'
  }
}
