import { stepOf } from '#collect'
import type { BuiltInResource } from '#metricsource'
import { type Batch, type Clock, type ClusterName, FleetError, type RowFeed, type RowsPart } from '#model'
import type { Logger } from '#runtime'

/** Between two steps, ms: what changes meanwhile goes together. */
const PAUSE_MS = 200
/** However little a step costs others: one that took long to make is followed by a longer pause. */
const PAUSE_PER_COST = 4

export interface FeedingOptions {
  readonly cluster: ClusterName
  readonly feed: RowFeed
  /** what the rows are */
  readonly kind: Pick<BuiltInResource, 'id' | 'hash' | 'aggregate' | 'collection'>
  /** there is a hub that asked for them, and takes steps */
  readonly isWanted: () => boolean
  /** Resolves when the hub has answered, or there is no stream to wait for. */
  readonly hand: (step: Batch) => Promise<void>
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Tells a hub of rows that somebody else of this process keeps: all of them when a stream begins, what differs when they change, and once
 * in an interval that they are as they were. One step at a time: a hub that is slow gets the latest, and keeps nobody waiting.
 */
export class Feeding {
  readonly #options: FeedingOptions
  #isDue = true
  #woken = new AbortController()

  constructor(options: FeedingOptions) {
    this.#options = options
  }

  /** All is told anew soon: a stream or a plan is another. */
  wake(): void {
    this.#isDue = true
    this.#woken.abort()
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { feed, kind, isWanted, clock, logger } = this.#options
    const off = feed.onChange(() => this.wake())
    try {
      let toldAt = Number.NEGATIVE_INFINITY
      while (!signal.aborted) {
        const leftMs = toldAt + kind.collection.intervalMs - clock.now()
        // A clock that was set back must not make anybody wait longer than an interval.
        const isOver = leftMs <= 0 || leftMs > kind.collection.intervalMs
        if (!isWanted() || !(this.#isDue || isOver)) {
          this.#woken = new AbortController()
          const waitMs = isOver ? kind.collection.intervalMs : leftMs
          await clock.sleep(Math.ceil(waitMs), AbortSignal.any([signal, this.#woken.signal]))
          continue
        }
        this.#isDue = false
        toldAt = clock.now()
        const costMs = await this.#tell(signal).catch((error: unknown) => {
          logger.error({ source: feed.source, err: FleetError.from(error) }, 'rows could not be told to the hub')
          return 0
        })
        await clock.sleep(Math.max(PAUSE_MS, PAUSE_PER_COST * costMs), signal)
      }
    } finally {
      off()
    }
  }

  /** @returns what it cost to make, ms */
  async #tell(signal: AbortSignal): Promise<number> {
    const { cluster, hand, clock } = this.#options
    const collectedAt = clock.now()
    const beganAt = performance.now()
    const part = this.#part()
    const costMs = performance.now() - beganAt
    const step = stepOf({ cluster, source: 'push', collectedAt }, [{ ...part, durationMs: Math.round(costMs) }])
    const { end, release } = endOf(signal)
    await Promise.race([hand(step), end])
    release()
    return costMs
  }

  #part(): RowsPart {
    const { feed, kind } = this.#options
    const head = { source: kind.id, hash: kind.hash, durationMs: 0 }
    const read = feed.read()
    if (read.outcome !== 'complete') return { ...head, ...read }
    return { ...head, ...read, aggregations: kind.aggregate(read.rows), reports: [] }
  }
}

/** A hub that does not answer keeps nobody from stopping. */
function endOf(signal: AbortSignal): { readonly end: Promise<void>; readonly release: () => void } {
  let release: () => void = () => undefined
  const end = new Promise<void>((resolve) => {
    const ended = () => resolve()
    signal.addEventListener('abort', ended, { once: true })
    release = () => signal.removeEventListener('abort', ended)
  })
  return { end, release }
}
