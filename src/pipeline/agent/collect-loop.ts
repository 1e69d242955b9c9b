import { type Collector, collectRound, failureOf, roundLimitMs } from '#collect'
import { isKubeError, type KubeClient } from '#kube'
import type { Batch, Clock, ClusterName, Plan } from '#model'
import type { Logger } from '#runtime'
import type { Monotonic } from './boot.ts'

export interface CollectLoopOptions {
  readonly cluster: ClusterName
  /** the client to use, with this limit of one request, ms */
  readonly kube: (timeoutMs: number) => KubeClient
  readonly collectors: readonly Collector[]
  readonly plan: () => Plan
  /** takes the batch, whose sequence is 0 still; the next round waits for it */
  readonly onBatch: (batch: Batch, stamp: number) => Promise<void>
  readonly clock: Clock
  readonly monotonic: Monotonic
  readonly logger: Logger
}

export interface CollectionHealth {
  readonly rounds: number
  readonly failedRounds: number
  /** ticks that passed while a round was still running */
  readonly skippedTicks: number
  readonly lastDurationMs: number
  /** by our clock; undefined before the first */
  readonly lastAt: number | undefined
  readonly lastFailure: string | undefined
}

/**
 * Rounds at multiples of the interval since the start, by a clock that does not jump: no drift, one at a time; a tick that
 * passes during a round is skipped. Whether there is a stream does not matter here. A round that fails is a batch that says so.
 */
export class CollectLoop {
  readonly #options: CollectLoopOptions
  readonly #readAt = new Map<string, number>()
  #health: CollectionHealth = {
    rounds: 0,
    failedRounds: 0,
    skippedTicks: 0,
    lastDurationMs: 0,
    lastAt: undefined,
    lastFailure: undefined,
  }
  #isRunning = false
  #replanned = new AbortController()

  constructor(options: CollectLoopOptions) {
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  get health(): CollectionHealth {
    return this.#health
  }

  /** The plan changed: the next tick is computed anew. */
  replan(): void {
    this.#replanned.abort()
    this.#replanned = new AbortController()
  }

  /** Ends when `stop` aborts, after the round that runs; `giveUp` ends that one too. */
  async run(stop: AbortSignal, giveUp: AbortSignal): Promise<void> {
    const { clock, monotonic, plan } = this.#options
    const beganAt = monotonic.now()
    let due = beganAt
    while (!stop.aborted) {
      const now = monotonic.now()
      if (now < due) {
        // A timer may fire a little early, and the plan may change: both are looked at again.
        await clock.sleep(Math.max(1, Math.ceil(due - now)), AbortSignal.any([stop, this.#replanned.signal]))
        const { intervalMs } = plan()
        due = Math.min(due, nextTick(beganAt, intervalMs, monotonic.now() - 1))
        continue
      }
      this.#isRunning = true
      await this.#round(giveUp)
      this.#isRunning = false
      const { intervalMs } = plan()
      const after = nextTick(beganAt, intervalMs, monotonic.now())
      const skipped = Math.max(0, Math.round((after - due) / intervalMs) - 1)
      this.#health = { ...this.#health, skippedTicks: this.#health.skippedTicks + skipped }
      due = after
    }
  }

  async #round(giveUp: AbortSignal): Promise<void> {
    const { monotonic, clock, logger, onBatch } = this.#options
    const stamp = monotonic.now()
    const collectedAt = clock.now()
    let batch: Batch
    try {
      batch = await this.#collect(stamp, collectedAt, giveUp)
    } catch (error) {
      // We close the cluster's client when we stop: that is no news of the cluster.
      if (giveUp.aborted || isKubeError(error, 'closed')) return
      batch = this.#failed(collectedAt, monotonic.now() - stamp, error)
    }
    const { failure } = batch
    if (failure) logger.warn({ failure }, 'a round failed')
    this.#health = {
      ...this.#health,
      rounds: this.#health.rounds + 1,
      failedRounds: this.#health.failedRounds + (failure ? 1 : 0),
      lastDurationMs: monotonic.now() - stamp,
      lastAt: collectedAt,
      lastFailure: failure?.message,
    }
    await onBatch(batch, stamp)
  }

  async #collect(stamp: number, collectedAt: number, giveUp: AbortSignal): Promise<Batch> {
    const { cluster, kube, clock, logger, plan } = this.#options
    const { timeoutMs, intervalMs } = plan()
    const due = this.#due(stamp)
    const malformed = new Set<string>()
    const batch = await collectRound({
      kube: kube(timeoutMs),
      cluster,
      collectors: due,
      source: 'push',
      sequence: 0,
      signal: giveUp,
      limitMs: roundLimitMs({ intervalMs, timeoutMs }),
      clock,
      onMalformed: (text) => malformed.size < 5 && malformed.add(text.slice(0, 40)),
    })
    if (malformed.size > 0) logger.warn({ quantities: [...malformed] }, 'quantities could not be read')
    // A collector that could not get through tries again next round.
    for (const { collector, outcome } of batch.parts) if (outcome !== 'unreachable') this.#readAt.set(collector, stamp)
    // The clock may have jumped during the round.
    return { ...batch, collectedAt, durationMs: Math.max(0, Math.round(this.#options.monotonic.now() - stamp)) }
  }

  #due(stamp: number): readonly Collector[] {
    const { collectors, plan } = this.#options
    return collectors.filter((collector) => {
      const readAt = this.#readAt.get(collector.name)
      const everyMs = collector.name === 'operators' ? plan().operatorScanIntervalMs : collector.everyMs
      return readAt === undefined || stamp - readAt >= everyMs
    })
  }

  #failed(collectedAt: number, durationMs: number, error: unknown): Batch {
    const { cluster } = this.#options
    const failure = failureOf('the round failed: ', error)
    return { cluster, sequence: 0, source: 'push', collectedAt, durationMs: Math.round(durationMs), parts: [], failure }
  }
}

/** The first multiple of the interval after this moment. */
function nextTick(beganAt: number, intervalMs: number, now: number): number {
  return beganAt + (Math.floor((now - beganAt) / intervalMs) + 1) * intervalMs
}
