import { isKubeError, type KubeClient, outcomeOf } from '#kube'
import {
  type Batch,
  type Clock,
  type ClusterName,
  FleetError,
  type Outcome,
  type Source,
  type SourceId,
  seconds,
} from '#model'
import type { Logger, Metrics } from '#runtime'
import { type CollectedOne, collectOne } from './collect-one.ts'
import { nothingOf, saidOf, type WholePart } from './collection.ts'
import { Delivery } from './delivery.ts'
import { endingWith } from './ending.ts'
import { follow } from './follow.ts'
import { type LoopCounts, loopCounts } from './loop-metrics.ts'
import { jitterMs, nextDue } from './schedule.ts'
import { stepOf } from './steps.ts'
import type { OwnCollector } from './types.ts'

/** How a source stands on one cluster. */
export interface SourceStatus {
  readonly source: SourceId
  /** of the last collection; undefined before the first */
  readonly outcome: Outcome | undefined
  readonly rows: number
  /** namespaces that could not be read */
  readonly errorCount: number
  /** a watch follows it now */
  readonly isFollowed: boolean
}

interface Job {
  readonly collector: OwnCollector
  readonly abort: AbortController
  readonly done: Promise<void>
  status: SourceStatus
}

export interface CollectorLoopOptions {
  readonly cluster: ClusterName
  /** of what is handed over */
  readonly source: Source
  /** the cluster's client; asked for each collection; undefined: there is no way in now */
  readonly kube: () => Promise<KubeClient | undefined>
  /**
   * Takes what was collected by one or several collectors, as a step between two rounds whose sequence is 0 still; the next
   * collection of these waits for it. `collectedAt` is when the oldest of them began.
   * @param signal aborts when the loop is stopped
   */
  readonly onBatch: (batch: Batch, signal: AbortSignal) => Promise<void>
  readonly clock: Clock
  readonly random?: () => number
  /** shared by many loops: bounds the collections that read at once */
  readonly turn?: <T>(read: () => Promise<T>) => Promise<T>
  readonly logger: Logger
  readonly metrics?: Metrics
}

/** The first collections of a loop are spread over this at most, those of sources that come later over less: somebody waits. */
const FIRST_SPREAD_MS = seconds(5)
const LATER_SPREAD_MS = 500

/**
 * Reads one cluster for collectors of their own times, each by its own interval, and hands on what they saw. They do not wait for
 * each other. Nothing of one is handed on once it was replaced or left out.
 */
export class CollectorLoop implements AsyncDisposable {
  readonly #options: CollectorLoopOptions
  readonly #random: () => number
  readonly #delivery: Delivery
  readonly #counts: LoopCounts
  readonly #jobs = new Map<SourceId, Job>()
  readonly #ending = new Set<Promise<void>>()
  #isPlanned = false
  readonly #stopping = new AbortController()

  constructor(options: CollectorLoopOptions) {
    this.#options = options
    this.#random = options.random ?? Math.random
    const { cluster, source, onBatch } = options
    this.#delivery = new Delivery({
      ...options,
      onParts: (parts, collectedAt) => onBatch(stepOf({ cluster, source, collectedAt }, parts), this.#stopping.signal),
    })
    this.#counts = loopCounts(options.metrics)
  }

  /** Collects exactly these from now on. One whose hash and interval are the same goes on undisturbed; others begin at once. */
  replan(collectors: readonly OwnCollector[]): void {
    if (this.#stopping.signal.aborted) return
    const wanted = new Map(collectors.map((collector) => [collector.rows.id, collector]))
    for (const [id, job] of this.#jobs) {
      if (!isSame(wanted.get(id), job.collector)) this.#end(id, job)
    }
    for (const [id, collector] of wanted) if (!this.#jobs.has(id)) this.#begin(collector)
    this.#isPlanned = true
  }

  /** Sorted by source. */
  statuses(): readonly SourceStatus[] {
    return [...this.#jobs.values()].map(({ status }) => status).sort((a, b) => (a.source < b.source ? -1 : 1))
  }

  /** Ends what runs; its results are thrown away. Resolves when nothing runs any more. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    this.#delivery.hurry()
    for (const [id, job] of this.#jobs) this.#end(id, job)
    await Promise.all(this.#ending)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #begin(collector: OwnCollector): void {
    const { id } = collector.rows
    const abort = new AbortController()
    const status = { source: id, outcome: undefined, rows: 0, errorCount: 0, isFollowed: false }
    const job: Job = { collector, abort, status, done: Promise.resolve().then(() => this.#run(job)) }
    this.#jobs.set(id, job)
  }

  #end(id: SourceId, job: Job): void {
    this.#jobs.delete(id)
    job.abort.abort()
    const ended: Promise<void> = job.done.finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  async #run(job: Job): Promise<void> {
    const { clock } = this.#options
    const { signal } = job.abort
    const { intervalMs } = job.collector.own
    const spreadMs = this.#isPlanned ? LATER_SPREAD_MS : FIRST_SPREAD_MS
    let due = clock.now() + this.#random() * Math.min(spreadMs, intervalMs / 2)
    // Somebody waits for the first; the others take a place of their own, or a fleet that began together would be read in one moment for ever.
    const anchor = due + this.#random() * intervalMs
    while (!signal.aborted) {
      await this.#sleepUntil(due, intervalMs, signal)
      if (!signal.aborted) due = await this.#collect(job, anchor)
    }
    this.#counts.rows(job.status.source, -job.status.rows)
  }

  /** A clock that was set back must not keep us from reading for ever. */
  #sleepUntil(due: number, intervalMs: number, signal: AbortSignal): Promise<void> {
    const waitMs = Math.min(due - this.#options.clock.now(), 1.5 * intervalMs)
    return waitMs > 0 ? this.#options.clock.sleep(Math.ceil(waitMs), signal) : Promise.resolve()
  }

  /** One collection, and what follows it. @returns when the next is due */
  async #collect(job: Job, anchor: number): Promise<number> {
    const { turn = (read) => read(), clock, logger, cluster } = this.#options
    const { signal } = job.abort
    const { collector } = job
    const { intervalMs } = collector.own
    let startedAt = clock.now()
    const dueAfter = (failed: boolean) =>
      nextDue({ anchor, intervalMs, startedAt, endedAt: clock.now(), failed }) + jitterMs(intervalMs, this.#random)
    try {
      const kube = await this.#options.kube()
      if (!kube || signal.aborted) return dueAfter(true)
      // A cluster that is away must not keep others from their turn for as long as we are patient with it.
      if (!isKnownToAnswer(job)) await answers(kube, signal)
      const collected = await turn(async () => {
        startedAt = clock.now()
        // Not wanted any more, perhaps, when its turn comes.
        return signal.aborted ? undefined : collectOne({ collector, kube, signal, clock, random: this.#random })
      })
      if (signal.aborted || !collected) return dueAfter(true)
      await this.#hand(job, collected.part, startedAt)
      const due = dueAfter(isFailure(collected.part))
      if (isFollowed(collector) && !signal.aborted) await this.#follow(job, kube, collected, due)
      return due
    } catch (error) {
      // A client that we closed says nothing of the cluster.
      if (signal.aborted || isKubeError(error, 'closed')) return dueAfter(true)
      logger.debug(
        { source: job.status.source, cluster, err: FleetError.from(error) },
        'a source could not be collected',
      )
      const { tables } = nothingOf(collector, saidOf(error), Math.max(0, clock.now() - startedAt))
      for (const part of tables) await this.#hand(job, part, startedAt)
      return dueAfter(true)
    }
  }

  async #hand(job: Job, part: WholePart, collectedAt: number): Promise<void> {
    this.#counts.collected(part.source, part.outcome, part.durationMs)
    this.#note(job, part)
    await this.#delivery.deliver(part, collectedAt, job.abort.signal)
  }

  #note(job: Job, part: WholePart): void {
    const isWhole = part.outcome === 'complete'
    const rows = isWhole ? part.rows.size : job.status.rows
    this.#counts.rows(part.source, rows - job.status.rows)
    const errorCount = isWhole ? part.errorCount : 0
    job.status = { ...job.status, outcome: part.outcome, rows, errorCount }
  }

  /** Until the next collection is due, or as long as it goes. */
  async #follow(job: Job, kube: KubeClient, { collection, ends }: CollectedOne, due: number): Promise<void> {
    if (!ends) return
    const { clock, logger, cluster } = this.#options
    const { abort, status, collector } = job
    const { end, release } = endingWith(abort.signal)
    const timer = this.#sleepUntil(due, collector.own.intervalMs, end.signal).then(() => end.abort())
    job.status = { ...job.status, isFollowed: true }
    const trouble = await follow({
      kube,
      collection,
      ends,
      signal: end.signal,
      clock,
      onPart: async (part, collectedAt) => {
        this.#counts.followed(part.source)
        this.#note(job, part)
        await this.#delivery.deliver(part, collectedAt, abort.signal)
      },
    })
    job.status = { ...job.status, isFollowed: false }
    if (trouble)
      logger.debug({ source: status.source, cluster, err: trouble }, 'a watch ended; the next collection follows')
    end.abort()
    await timer
    release()
  }
}

const isSame = (wanted: OwnCollector | undefined, { rows, own }: OwnCollector): boolean =>
  wanted?.rows.hash === rows.hash && wanted.own.intervalMs === own.intervalMs

const isFollowed = ({ reads }: OwnCollector) => reads.every(({ verbs }) => verbs.includes('watch'))

const isKnownToAnswer = ({ status: { outcome } }: Job) => outcome !== undefined && outcome !== 'unreachable'

/** @throws what keeps us from the cluster; that we may not do this is an answer */
async function answers(kube: KubeClient, signal: AbortSignal): Promise<void> {
  try {
    await kube.ping(signal)
  } catch (error) {
    if (signal.aborted || outcomeOf(error) === 'unreachable') throw error
  }
}

/** Worth another try sooner. That a cluster does not serve a kind is no failure, nor that some namespaces are not for us. */
function isFailure(part: WholePart): boolean {
  if (part.outcome !== 'complete') return part.outcome !== 'absent'
  return part.errors.some(({ outcome }) => outcome === 'unreachable')
}
