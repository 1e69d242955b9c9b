import { type Collector, failureOf, nextOnGrid, Pulses, Rounds, type RoundsOptions, silentRound } from '#collect'
import { isKubeError, type KubeClient } from '#kube'
import type { Batch, Clock, ClusterName, Plan } from '#model'
import type { Logger } from '#runtime'
import type { Monotonic } from './boot.ts'

export interface CollectLoopOptions {
  readonly cluster: ClusterName
  /** the client to use, with this limit of one request, ms */
  readonly kube: (timeoutMs: number) => KubeClient
  readonly collectors: readonly Collector[]
  /** of rows, which the plan asks for; default none */
  readonly rows?: () => readonly Collector[]
  readonly plan: () => Plan
  /** takes what moves between two rounds; absent: nothing is followed */
  readonly live?: RoundsOptions['live']
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
 * passes during a round is skipped. Whether there is a stream does not matter here. A round that fails is a batch that says so;
 * one of a cluster that falls silent between two ticks, or during a round, comes at once.
 */
export class CollectLoop {
  readonly #options: CollectLoopOptions
  readonly #rounds: Rounds
  #health: CollectionHealth = {
    rounds: 0,
    failedRounds: 0,
    skippedTicks: 0,
    lastDurationMs: 0,
    lastAt: undefined,
    lastFailure: undefined,
  }
  readonly #pulses: Pulses
  #isRunning = false
  #isAsked = false
  #replanned = new AbortController()
  #reading = new AbortController()

  constructor(options: CollectLoopOptions) {
    this.#options = options
    const { cluster, collectors, clock, logger, live } = options
    this.#rounds = new Rounds({ cluster, source: 'push', collectors, clock, logger, ...(live && { live }) })
    this.#pulses = new Pulses({
      onTrouble: () => {
        this.#reading.abort()
        this.replan()
      },
      onRecovered: () => {
        this.#isAsked = true
        this.replan()
      },
      clock,
    })
  }

  get isRunning(): boolean {
    return this.#isRunning
  }

  get health(): CollectionHealth {
    return this.#health
  }

  /** Reads that could be followed, and are polled: which and why, for people. */
  polled(): readonly string[] {
    return this.#rounds.polled()
  }

  /** The plan changed: the next tick is computed anew. */
  replan(): void {
    this.#replanned.abort()
    this.#replanned = new AbortController()
  }

  /** A round comes at once, and reads everything. */
  again(): void {
    this.#rounds.forget()
    this.#isAsked = true
    this.replan()
  }

  /** Ends when `stop` aborts, after the round that runs; `giveUp` ends that one too. */
  async run(stop: AbortSignal, giveUp: AbortSignal): Promise<void> {
    this.#pulses.start()
    try {
      await this.#ticks(stop, giveUp)
    } finally {
      await Promise.all([this.#pulses.stop(), this.#rounds.leave()])
    }
  }

  async #ticks(stop: AbortSignal, giveUp: AbortSignal): Promise<void> {
    const { cluster, clock, monotonic, plan } = this.#options
    const beganAt = monotonic.now()
    let due = beganAt
    while (!stop.aborted) {
      const now = monotonic.now()
      if (now < due && !this.#isAsked && !this.#pulses.hasTrouble(cluster)) {
        // A timer may fire a little early, and the plan may change: both are looked at again.
        await clock.sleep(Math.max(1, Math.ceil(due - now)), AbortSignal.any([stop, this.#replanned.signal]))
        const { intervalMs } = plan()
        due = Math.min(due, nextOnGrid(beganAt, intervalMs, monotonic.now() - 1))
        continue
      }
      this.#isRunning = true
      this.#isAsked = false
      await this.#round(giveUp)
      this.#isRunning = false
      const { intervalMs } = plan()
      const after = nextOnGrid(beganAt, intervalMs, monotonic.now())
      const skipped = Math.max(0, Math.round((after - due) / intervalMs) - 1)
      this.#health = { ...this.#health, skippedTicks: this.#health.skippedTicks + skipped }
      due = after
    }
  }

  async #round(giveUp: AbortSignal): Promise<void> {
    const { cluster, monotonic, clock, logger, onBatch } = this.#options
    const stamp = monotonic.now()
    const collectedAt = clock.now()
    const trouble = this.#pulses.takeTrouble(cluster)
    const reading = new AbortController()
    this.#reading = reading
    let batch: Batch
    try {
      batch = trouble
        ? silentRound({ cluster, source: 'push' }, collectedAt, trouble)
        : await this.#collect(stamp, collectedAt, AbortSignal.any([giveUp, reading.signal]))
    } catch (error) {
      // We close the cluster's client when we stop: that is no news of the cluster. One that fell silent has its round now.
      if (giveUp.aborted || reading.signal.aborted || isKubeError(error, 'closed')) return
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
    this.#rounds.handedIn()
  }

  async #collect(stamp: number, collectedAt: number, signal: AbortSignal): Promise<Batch> {
    const { cluster, plan, rows, monotonic } = this.#options
    const times = plan()
    const kube = this.#options.kube(times.timeoutMs)
    const batch = await this.#rounds.collect({ kube, times, rows: rows?.() ?? [], at: stamp, signal })
    if (!batch.failure) this.#pulses.follow(cluster, kube)
    this.#rounds.kept(batch, stamp)
    // The clock may have jumped during the round.
    return { ...batch, collectedAt, durationMs: Math.max(0, Math.round(monotonic.now() - stamp)) }
  }

  #failed(collectedAt: number, durationMs: number, error: unknown): Batch {
    const { cluster } = this.#options
    const failure = failureOf('the round failed: ', error)
    return { cluster, sequence: 0, source: 'push', collectedAt, durationMs: Math.round(durationMs), parts: [], failure }
  }
}
