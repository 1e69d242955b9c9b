import { isKubeError, type KubeClient, outcomeOf } from '#kube'
import { type CustomPart, FleetError, type Outcome, type SourceId, seconds } from '#model'
import type { ResourceDescriptor, SourceLoopOptions } from '../types.ts'
import { type Collection, collect } from './collect-source.ts'
import { Delivery } from './delivery.ts'
import { endingWith } from './ending.ts'
import { follow } from './follow.ts'
import { type LoopCounts, loopCounts } from './loop-metrics.ts'
import { failedPart, saidOf } from './part.ts'
import { jitterMs, nextDue } from './schedule.ts'

/** How a source stands on one cluster. */
export interface SourceStanding {
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
  readonly source: ResourceDescriptor
  readonly abort: AbortController
  readonly done: Promise<void>
  standing: SourceStanding
}

interface Following {
  readonly kube: KubeClient
  readonly seen: NonNullable<Collection['seen']>
}

/** The first collections of a loop are spread over this at most, those of sources that come later over less: somebody waits. */
const FIRST_SPREAD_MS = seconds(5)
const LATER_SPREAD_MS = 500

/**
 * Collects the sources of one cluster, each by its own interval, and hands on what they saw. Sources do not wait for each
 * other. Nothing of a source is handed on once it was replaced or left out.
 */
export class SourceLoop implements AsyncDisposable {
  readonly #options: SourceLoopOptions
  readonly #random: () => number
  readonly #delivery: Delivery
  readonly #counts: LoopCounts
  readonly #jobs = new Map<SourceId, Job>()
  readonly #ending = new Set<Promise<void>>()
  #isPlanned = false
  #isStopped = false

  constructor(options: SourceLoopOptions) {
    this.#options = options
    this.#random = options.random ?? Math.random
    this.#delivery = new Delivery(options)
    this.#counts = loopCounts(options.metrics)
  }

  /** Collects exactly these from now on. A source whose hash is the same goes on undisturbed; others begin at once. */
  replan(sources: readonly ResourceDescriptor[]): void {
    if (this.#isStopped) return
    const wanted = new Map(sources.map((source) => [source.id, source]))
    for (const [id, job] of this.#jobs) {
      if (wanted.get(id)?.hash !== job.source.hash) this.#end(id, job)
    }
    for (const [id, source] of wanted) if (!this.#jobs.has(id)) this.#begin(source)
    this.#isPlanned = true
  }

  /** Collects these once more, soon; those that are not collected are passed over. */
  again(ids: Iterable<SourceId>): void {
    for (const id of [...ids]) {
      const job = this.#jobs.get(id)
      if (!job || this.#isStopped) continue
      this.#end(id, job)
      this.#begin(job.source)
    }
  }

  /** Sorted by source. */
  standings(): readonly SourceStanding[] {
    return [...this.#jobs.values()].map(({ standing }) => standing).sort((a, b) => (a.source < b.source ? -1 : 1))
  }

  /** Ends what runs; its results are thrown away. Resolves when nothing runs any more. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#delivery.hurry()
    for (const [id, job] of this.#jobs) this.#end(id, job)
    await Promise.all(this.#ending)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  #begin(source: ResourceDescriptor): void {
    const abort = new AbortController()
    const standing = { source: source.id, outcome: undefined, rows: 0, errorCount: 0, isFollowed: false }
    const job: Job = { source, abort, standing, done: Promise.resolve().then(() => this.#run(job)) }
    this.#jobs.set(source.id, job)
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
    const { intervalMs } = job.source.collection
    const spreadMs = this.#isPlanned ? LATER_SPREAD_MS : FIRST_SPREAD_MS
    const anchor = clock.now() + this.#random() * Math.min(spreadMs, intervalMs / 2)
    let due = anchor
    while (!signal.aborted) {
      await this.#sleepUntil(due, intervalMs, signal)
      if (!signal.aborted) due = await this.#collect(job, anchor)
    }
    this.#counts.rows(job.source.id, -job.standing.rows)
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
    const { id, collection } = job.source
    const { intervalMs } = collection
    let startedAt = clock.now()
    const dueAfter = (failed: boolean) =>
      nextDue({ anchor, intervalMs, startedAt, endedAt: clock.now(), failed }) + jitterMs(intervalMs, this.#random)
    try {
      const kube = await this.#options.kube()
      if (!kube || signal.aborted) return dueAfter(true)
      // A cluster that is away must not keep others from their turn for as long as we are patient with it.
      if (!isKnownToAnswer(job)) await answers(kube, signal)
      const { part, following } = await turn(() => {
        startedAt = clock.now()
        return this.#read(job, kube)
      })
      if (signal.aborted || !part) return dueAfter(true)
      await this.#hand(job, part, startedAt)
      const due = dueAfter(isFailure(part))
      if (following && !signal.aborted) await this.#follow(job, following, due)
      return due
    } catch (error) {
      // A client that we closed says nothing of the cluster.
      if (signal.aborted || isKubeError(error, 'closed')) return dueAfter(true)
      logger.debug({ source: id, cluster, err: FleetError.from(error) }, 'a source could not be collected')
      const part = failedPart(job.source, clock.now() - startedAt, saidOf(error))
      await this.#hand(job, part, startedAt)
      return dueAfter(true)
    }
  }

  /** Without a part: the source is not wanted any more. */
  async #read(
    { source, abort }: Job,
    kube: KubeClient,
  ): Promise<{ readonly part?: CustomPart; readonly following?: Following }> {
    const { clock } = this.#options
    const { signal } = abort
    if (signal.aborted) return {}
    const { part, seen } = await collect({ kube, source, signal, clock, random: this.#random })
    return { part, ...(source.collection.watch && seen && { following: { kube, seen } }) }
  }

  async #hand(job: Job, part: CustomPart, collectedAt: number): Promise<void> {
    const { id } = job.source
    this.#counts.collected(id, part.outcome === 'changed' ? 'complete' : part.outcome, part.durationMs)
    this.#note(job, part)
    await this.#delivery.deliver(part, collectedAt, job.abort.signal)
  }

  #note(job: Job, part: CustomPart): void {
    const isWhole = part.outcome === 'complete'
    const rows = isWhole ? part.rows.size : job.standing.rows
    this.#counts.rows(job.source.id, rows - job.standing.rows)
    const errorCount = isWhole ? part.errorCount : 0
    const outcome = part.outcome === 'changed' ? 'complete' : part.outcome
    job.standing = { ...job.standing, outcome, rows, errorCount }
  }

  /** Until the next collection is due, or as long as it goes. */
  async #follow(job: Job, { seen, kube }: Following, due: number): Promise<void> {
    const { clock, logger, cluster } = this.#options
    const { source, abort } = job
    const { end, release } = endingWith(abort.signal)
    const timer = this.#sleepUntil(due, source.collection.intervalMs, end.signal).then(() => end.abort())
    job.standing = { ...job.standing, isFollowed: true }
    const trouble = await follow({
      kube,
      source,
      seen,
      signal: end.signal,
      clock,
      onPart: async (part, collectedAt) => {
        this.#counts.followed(source.id)
        this.#note(job, part)
        await this.#delivery.deliver(part, collectedAt, abort.signal)
      },
    })
    job.standing = { ...job.standing, isFollowed: false }
    if (trouble)
      logger.debug({ source: source.id, cluster, err: trouble }, 'a watch ended; the next collection follows')
    end.abort()
    await timer
    release()
  }
}

const isKnownToAnswer = ({ standing: { outcome } }: Job) => outcome !== undefined && outcome !== 'unreachable'

/** @throws what keeps us from the cluster; that we may not do this is an answer */
async function answers(kube: KubeClient, signal: AbortSignal): Promise<void> {
  try {
    await kube.ping(signal)
  } catch (error) {
    if (signal.aborted || outcomeOf(error) === 'unreachable') throw error
  }
}

/** Worth another try sooner. That a cluster does not serve a kind is no failure, nor that some namespaces are not for us. */
function isFailure(part: CustomPart): boolean {
  if (part.outcome === 'complete' || part.outcome === 'changed')
    return part.errors.some(({ outcome }) => outcome === 'unreachable')
  return part.outcome !== 'absent'
}
