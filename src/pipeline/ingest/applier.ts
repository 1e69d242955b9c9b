import type { EventBus } from '#events'
import type { Change, Clock } from '#model'
import { FleetError } from '#model'
import type { Logger, Metrics, SegmentLog } from '#runtime'
import type { StateRecord, StateStore } from '#state'
import { decodeLogRecord } from './log-record.ts'

export interface Pending {
  readonly index: number
  readonly record: StateRecord
  readonly bytes: number
}

export interface ApplierOptions {
  readonly log: SegmentLog
  readonly state: StateStore
  readonly events: EventBus
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly maxPendingBytes: number
  /** ms to wait before this retry; 0 is the first */
  readonly backoff: (attempt: number) => number
}

const CONSUMER = 'state'
const GROUP_RECORDS = 256
const GROUP_BYTES = 8 * 2 ** 20
const CHECKPOINT_EVERY_MS = 1_000
const WARN_EVERY_MS = 10_000

/**
 * Carries records from the log into state, in order, then tells what changed. New records come straight from memory; when
 * more waits than memory may hold (a store that is down), the rest stays in the log and is read from there.
 */
export class Applier implements AsyncDisposable {
  readonly #options: ApplierOptions
  readonly #stop = new AbortController()
  readonly #count: { applied(records: number): void; failed(): void; skipped(): void }
  #pending: Pending[] = []
  #pendingBytes = 0
  /** index from which records are to be read from the log; undefined: all that wait are in memory */
  #logFrom: number | undefined
  /** index of the newest record that is applied and published */
  #done = -1
  #wake: (() => void) | undefined
  #waiters: { readonly index: number; readonly resolve: () => void }[] = []
  #loop: Promise<void> | undefined
  #checkpointAt = 0
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(options: ApplierOptions) {
    this.#options = options
    const { metrics } = options
    const applied = metrics?.counter(
      'clusterpulse_ingest_records_applied_total',
      'Records of the log applied to state.',
    )
    const failed = metrics?.counter('clusterpulse_ingest_apply_failures_total', 'Tries to apply records that failed.')
    const skipped = metrics?.counter(
      'clusterpulse_ingest_records_skipped_total',
      'Records of the log that no try can apply.',
    )
    metrics?.gauge('clusterpulse_ingest_backlog_records', 'Records in the log, not yet in state.', [], (gauge) =>
      gauge.set(this.backlog()),
    )
    this.#count = {
      applied: (records) => applied?.inc(records),
      failed: () => failed?.inc(),
      skipped: () => skipped?.inc(),
    }
  }

  /** Begins with this index of the log. */
  start(from: number): void {
    const { log } = this.#options
    log.checkpoint(CONSUMER)
    this.#done = from - 1
    if (from <= log.lastIndex()) this.#logFrom = from
    this.#loop = this.#run()
  }

  /** A record that the log has just taken; in the order of its indices. */
  add(pending: Pending): void {
    if (pending.index <= this.#done) return // read from the log in the meantime
    const fits = this.#pendingBytes + pending.bytes <= this.#options.maxPendingBytes || this.#pending.length === 0
    if (this.#logFrom === undefined && fits) {
      this.#pending.push(pending)
      this.#pendingBytes += pending.bytes
    } else {
      this.#logFrom ??= pending.index
    }
    this.#wake?.()
  }

  /** Resolves when everything up to this index is applied and published, or the applier was closed. */
  reached(index: number): Promise<void> {
    if (this.#done >= index) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.push({ index, resolve }))
  }

  backlog(): number {
    return Math.max(0, this.#options.log.lastIndex() - this.#done)
  }

  /** Notes in the log how far state is safe, so that it may delete what nobody needs. The store's own position is the truth. */
  async keepCheckpoint(): Promise<void> {
    const { log, state, logger, clock } = this.#options
    try {
      await log.setCheckpoint(CONSUMER, state.position())
    } catch (error) {
      if (clock.now() - this.#warnedAt < WARN_EVERY_MS) return // a full disk would fill the log of the process as well
      this.#warnedAt = clock.now()
      logger.warn({ error }, "the hub's log could not note how far state got")
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#wake?.()
    await this.#loop
    await this.keepCheckpoint()
    for (const { resolve } of this.#waiters.splice(0)) resolve()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      if (this.#pending.length > 0) await this.#applyPending()
      else if (this.#logFrom !== undefined) await this.#applyFromLog(this.#logFrom)
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  async #applyPending(): Promise<void> {
    let bytes = 0
    const group: Pending[] = []
    for (const pending of this.#pending) {
      if (group.length >= GROUP_RECORDS || (group.length > 0 && bytes + pending.bytes > GROUP_BYTES)) break
      bytes += pending.bytes
      group.push(pending)
    }
    await this.#applyGroup(group)
    if (this.#stop.signal.aborted) return
    this.#pending.splice(0, group.length)
    this.#pendingBytes -= bytes
  }

  async #applyFromLog(from: number): Promise<void> {
    const { log, logger, clock } = this.#options
    let group: Pending[] = []
    let bytes = 0
    let last = from - 1
    const apply = async () => {
      await this.#applyGroup(group)
      group = []
      bytes = 0
    }
    try {
      for await (const { index, payload } of log.read(from, this.#stop.signal)) {
        const record = decodeLogRecord(payload)
        last = index
        if (record) group.push({ index, record, bytes: payload.length })
        else this.#skip(index, 'it is of a form this version does not know')
        bytes += payload.length
        if (group.length >= GROUP_RECORDS || bytes > GROUP_BYTES) await apply()
        if (this.#stop.signal.aborted) return
      }
      if (group.length > 0) await apply()
    } catch (error) {
      if (this.#stop.signal.aborted) return
      logger.error({ error }, "the hub's log could not be read: trying again")
      await clock.sleep(this.#options.backoff(5), this.#stop.signal)
      this.#logFrom = this.#done + 1
      return
    }
    if (this.#stop.signal.aborted) return
    // What came while we read is in the log as well; none came since the last step, because nothing waited since.
    this.#logFrom = last < log.lastIndex() && last >= from ? last + 1 : undefined
    if (this.#logFrom === undefined) this.#finish(log.lastIndex())
  }

  // Tries until state took it. A record that no try can apply is named, counted and left out, so that the rest goes on.
  async #applyGroup(group: readonly Pending[]): Promise<void> {
    const { state, logger, clock, backoff } = this.#options
    const { signal } = this.#stop
    const last = group.at(-1)
    if (!last) return
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        const records = group.map(({ record }) => record)
        const changes = await state.apply(records, last.index, signal)
        this.#count.applied(records.length)
        await this.#publish(changes)
        this.#finish(last.index)
        await this.#checkpointNowAndThen()
        return
      } catch (error) {
        if (signal.aborted) return
        this.#count.failed()
        if (!(error instanceof FleetError && error.retryable)) {
          if (group.length === 1) return this.#skip(last.index, error)
          for (const single of group) await this.#applyGroup([single])
          return
        }
        const waitMs = backoff(attempt)
        logger.warn(
          { error: error.message, attempt, waitMs, backlog: this.backlog() },
          'state does not take records yet',
        )
        await clock.sleep(waitMs, signal)
      }
    }
  }

  async #publish(changes: readonly Change[]): Promise<void> {
    try {
      await this.#options.events.publish(changes)
    } catch (error) {
      // They are in state: whoever follows takes a new snapshot. Applying them again would tell nothing.
      this.#options.logger.error({ error }, 'changes could not be published')
    }
  }

  #skip(index: number, why: unknown): void {
    this.#count.skipped()
    this.#options.logger.error({ index, error: why }, "a record of the hub's log cannot be applied: left out")
    this.#finish(index)
  }

  #finish(index: number): void {
    this.#done = Math.max(this.#done, index)
    if (this.#waiters.length === 0) return
    const ready = this.#waiters.filter((waiter) => waiter.index <= this.#done)
    this.#waiters = this.#waiters.filter((waiter) => waiter.index > this.#done)
    for (const { resolve } of ready) resolve()
  }

  async #checkpointNowAndThen(): Promise<void> {
    const now = this.#options.clock.now()
    if (now - this.#checkpointAt < CHECKPOINT_EVERY_MS) return
    this.#checkpointAt = now
    await this.keepCheckpoint()
  }
}
