import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Clock, FleetError } from '#model'
import type { Log, Logger, Metrics } from '#runtime'
import { isFor } from './audience.ts'
import type { Known, Offered } from './choose-use.ts'
import { decodeLogEntry, type LogEntry } from './log-record.ts'

/** A consumer of the hub's log: what it takes, where it keeps it, and how far it got. */
export interface LogSink<Item> {
  /** of its own among all; also of its checkpoint in the log, and in metrics */
  readonly name: string
  /** `samples`: does without the parts of batches, which are not read for it then */
  readonly want: 'record' | 'samples'
  /** Whether a batch is for it: asked once, when the batch is taken, and kept with it. Absent: every batch is. */
  wants?(known: Known, offered: Offered): boolean
  /** undefined: nothing of this entry is for us */
  take(entry: LogEntry): Item | undefined
  /**
   * Keeps the items, in order.
   * @throws FleetError that is retryable, or an error of the system, such as a full disk: they are offered again; anything
   * else: they are offered one by one
   */
  apply(items: readonly Item[], position: number, signal: AbortSignal): Promise<void>
  /** index of the last record that is safe there; -1 before the first */
  position(): number
  /** what is applied in one step; default 256 records, 8 MiB */
  readonly group?: { readonly records: number; readonly bytes: number }
  /** how long records wait for others, so that they share a step, unless somebody waits for them, ms; default 0 */
  readonly gatherMs?: number
  /** the position may fall, where what was safe was lost there: what the log still has is offered again */
  readonly fallsBack?: boolean
  /**
   * What tells of records that the sink had not got when the log had to delete them, or lost since: given to it in their place.
   * @param until when the first record that the log still has was taken, ms
   */
  missed?(until: number): Promise<readonly Item[]>
  /** the item that no try can apply is left out */
  leftOut?(item: Item): void
}

export interface LogConsumerOptions<Item> {
  readonly log: Log
  readonly sink: LogSink<Item>
  readonly clock: Clock
  readonly logger: Logger
  readonly metrics?: Metrics
  readonly maxPendingBytes: number
  /** ms to wait before this retry; 0 is the first */
  readonly backoff: (attempt: number) => number
}

/** Without an item there is nothing to do but to move on. `at`: when the hub took the record, ms. */
interface Pending<Item> {
  readonly index: number
  readonly item: Item | undefined
  readonly bytes: number
  readonly at: number
}

const GROUP = { records: 256, bytes: 8 * 2 ** 20 }
/** Steps remembered until they are safe: of more that wait, the time of the oldest is enough. */
const MAX_STEPS = 1_000
const CHECKPOINT_EVERY_MS = 1_000
const WARN_EVERY_MS = 10_000

/**
 * Carries records from the log to where they belong, in order, however long that place is away. New records come straight
 * from memory; when more waits than memory may hold, the rest stays in the log and is read from there. One that no try
 * can apply is named, counted and left out.
 */
export class LogConsumer<Item> implements AsyncDisposable {
  readonly #options: LogConsumerOptions<Item>
  readonly #stop = new AbortController()
  readonly #count: { applied(records: number): void; failed(): void; skipped(): void }
  #pending: Pending<Item>[] = []
  #pendingBytes = 0
  /** index from which records are to be read from the log; undefined: all that wait are in memory */
  #logFrom: number | undefined
  /** index of the newest record that is applied */
  #done = -1
  /** index of the newest record that the sink was given */
  #given = -1
  /** highest position the sink told since it last fell back */
  #safest = -1
  /** what was safe in the sink was lost since it began */
  #hasFallen = false
  /** steps that are applied and may not be safe yet, with the time their first record was taken */
  readonly #unsafe: { readonly index: number; readonly at: number }[] = []
  /** when the oldest record that waits was taken */
  #behindSince: number | undefined
  #wake: (() => void) | undefined
  #waiters: { readonly index: number; readonly resolve: () => void }[] = []
  #loop: Promise<void> | undefined
  #keeping: Promise<void> | undefined
  /** ends the wait for company; undefined: nobody waits */
  #gathered: AbortController | undefined
  #checkpointAt = 0
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(options: LogConsumerOptions<Item>) {
    this.#options = options
    const { metrics, sink } = options
    const consumer = sink.name
    const counter = (name: string, help: string) =>
      metrics?.counter(`clusterpulse_ingest_${name}_total`, help, ['consumer'])
    const applied = counter('records_applied', "Records of the hub's log that a consumer applied.")
    const failed = counter('apply_failures', 'Tries to apply records that failed.')
    const skipped = counter('records_skipped', 'Records of the log that no try can apply.')
    this.#count = {
      applied: (records) => applied?.inc({ consumer }, records),
      failed: () => failed?.inc({ consumer }),
      skipped: () => skipped?.inc({ consumer }),
    }
  }

  get sink(): LogSink<Item> {
    return this.#options.sink
  }

  /** Begins behind what is safe in the sink. */
  start(): void {
    const { log, sink } = this.#options
    log.checkpoint(sink.name)
    const from = sink.position() + 1
    this.#done = from - 1
    this.#safest = from - 1
    if (from <= log.lastIndex()) this.#logFrom = from
    this.#loop = this.#run()
  }

  /** An entry that the log has just taken; in the order of their indices. */
  add(index: number, entry: LogEntry, bytes: number): void {
    if (index <= this.#done) return // read from the log in the meantime
    this.#behindSince ??= timeOf(entry)
    const fits = this.#pendingBytes + bytes <= this.#options.maxPendingBytes || this.#pending.length === 0
    if (this.#logFrom === undefined && fits) {
      this.#pending.push({ index, item: this.#take(entry), bytes, at: timeOf(entry) })
      this.#pendingBytes += bytes
    } else {
      this.#logFrom ??= index
    }
    this.#wake?.()
    if (this.#isGroupFull) this.#gathered?.abort()
  }

  #take(entry: LogEntry): Item | undefined {
    const { sink } = this.#options
    return isFor(entry.audience, sink.name) ? sink.take(entry) : undefined
  }

  /** Resolves when everything up to this index is applied, or the consumer was closed. */
  reached(index: number): Promise<void> {
    if (this.#done >= index) return Promise.resolve()
    this.#gathered?.abort()
    return new Promise((resolve) => this.#waiters.push({ index, resolve }))
  }

  /** records in the log that are not safe in the sink */
  backlog(): number {
    const { log } = this.#options
    // A log does not begin at 0 where others came before it.
    return Math.max(0, log.lastIndex() - Math.max(this.#safe(), log.firstIndex() - 1))
  }

  /** how long the oldest of them has waited, ms */
  lagMs(): number {
    this.#forgetSafe()
    const since = this.#unsafe[0]?.at ?? this.#behindSince
    if (this.backlog() === 0 || since === undefined) return 0
    return Math.max(0, this.#options.clock.now() - since)
  }

  // Records that hold nothing for the sink wait for nobody.
  #safe(): number {
    const position = this.#options.sink.position()
    return position >= this.#given ? Math.max(position, this.#done) : position
  }

  #forgetSafe(): void {
    const safe = this.#safe()
    while (this.#unsafe[0] && this.#unsafe[0].index <= safe) this.#unsafe.shift()
  }

  /** Notes in the log how far the sink is safe, so that it may delete what nobody needs. The sink's own position is the truth. */
  keepCheckpoint(): Promise<void> {
    // One at a time: many who find the log full at once ask for the same.
    this.#keeping ??= this.#keep().finally(() => {
      this.#keeping = undefined
    })
    return this.#keeping
  }

  async #keep(): Promise<void> {
    const { log, sink, logger, clock } = this.#options
    try {
      await log.setCheckpoint(sink.name, this.#safe())
    } catch (error) {
      if (clock.now() - this.#warnedAt < WARN_EVERY_MS) return // a full disk would fill the log of the process as well
      this.#warnedAt = clock.now()
      logger.warn({ error, consumer: sink.name }, "the hub's log could not note how far a consumer got")
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    this.#wake?.()
    this.#gathered?.abort()
    await this.#loop
    await this.#keeping
    await this.keepCheckpoint()
    for (const { resolve } of this.#waiters.splice(0)) resolve()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      if (this.#pending.length > 0) {
        await this.#gather()
        await this.#applyPending()
        await nextTurn() // whoever waits for an acknowledgement comes first
      } else if (this.#logFrom !== undefined) await this.#applyFromLog(this.#logFrom)
      else await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Waits for company, where the sink wants that. */
  async #gather(): Promise<void> {
    const { clock, sink } = this.#options
    if (!sink.gatherMs || this.#isGroupFull || this.#waiters.length > 0) return
    this.#gathered = new AbortController()
    await clock.sleep(sink.gatherMs, this.#gathered.signal)
    this.#gathered = undefined
  }

  get #isGroupFull(): boolean {
    const { records, bytes } = this.#options.sink.group ?? GROUP
    return this.#logFrom !== undefined || this.#pending.length >= records || this.#pendingBytes >= bytes
  }

  async #applyPending(): Promise<void> {
    let bytes = 0
    const group: Pending<Item>[] = []
    const { group: most = GROUP } = this.#options.sink
    for (const pending of this.#pending) {
      if (group.length >= most.records || (group.length > 0 && bytes + pending.bytes > most.bytes)) break
      bytes += pending.bytes
      group.push(pending)
    }
    const isApplied = await this.#applyGroup(group)
    if (this.#stop.signal.aborted || !isApplied) return
    this.#pending.splice(0, group.length)
    this.#pendingBytes -= bytes
    this.#behindSince = this.#pending[0]?.at
  }

  async #applyFromLog(from: number): Promise<void> {
    const { log, logger, clock, sink } = this.#options
    const { group: most = GROUP } = sink
    let group: Pending<Item>[] = []
    let bytes = 0
    let last = from - 1
    let isBegun = false
    const apply = async () => {
      const isApplied = await this.#applyGroup(group)
      group = []
      bytes = 0
      return isApplied
    }
    try {
      for await (const { index, payload } of log.read(from, this.#stop.signal)) {
        const entry = decodeLogEntry(payload, sink.want)
        if (!isBegun && entry) {
          isBegun = true
          if (!(await this.#tellMissed(from, { index, at: timeOf(entry) }))) return
        }
        last = index
        if (entry) group.push({ index, item: this.#take(entry), bytes: payload.length, at: timeOf(entry) })
        else this.#skip(index, 'it is of a form this version does not know')
        bytes += payload.length
        if ((group.length >= most.records || bytes > most.bytes) && !(await apply())) return
        if (this.#stop.signal.aborted) return
      }
      if (group.length > 0 && !(await apply())) return
    } catch (error) {
      if (this.#stop.signal.aborted) return
      logger.error({ error, consumer: sink.name }, "the hub's log could not be read: trying again")
      await clock.sleep(this.#options.backoff(5), this.#stop.signal)
      this.#logFrom = this.#done + 1
      return
    }
    if (this.#stop.signal.aborted) return
    // What came while we read is in the log as well; none came since the last step, because nothing waited since.
    this.#logFrom = last < log.lastIndex() && last >= from ? last + 1 : undefined
    if (this.#logFrom !== undefined) return
    this.#finish(log.lastIndex())
    this.#behindSince = undefined
  }

  /** @returns as `#applyGroup` does */
  async #tellMissed(from: number, first: { readonly index: number; readonly at: number }): Promise<boolean> {
    const { sink, log, logger } = this.#options
    // One that is new has missed nothing.
    if (!sink.missed || from >= log.firstIndex() || (from === 0 && !this.#hasFallen)) return true
    const items = await sink.missed(first.at)
    this.#hasFallen = false
    if (items.length === 0) return true
    logger.error(
      { consumer: sink.name, from, oldest: first.index, losses: items.length },
      'the log lacks what was lost',
    )
    const index = first.index - 1
    return this.#applyGroup(items.map((item) => ({ index, item, bytes: 0, at: first.at })))
  }

  /** Tries until the sink took it. @returns false: the sink fell back, and everything behind its position comes again */
  async #applyGroup(group: readonly Pending<Item>[]): Promise<boolean> {
    const { sink, logger, clock, backoff } = this.#options
    const { signal } = this.#stop
    const [first, last] = [group[0], group.at(-1)]
    if (!first || !last) return true
    this.#behindSince = first.at
    const given = group.filter(hasItem)
    const newest = given.at(-1)
    if (!newest) {
      this.#finish(last.index)
      return true
    }
    this.#given = newest.index
    for (let attempt = 0; !signal.aborted; attempt++) {
      if (this.#fellBack()) return false
      try {
        await sink.apply(
          given.map(({ item }) => item),
          last.index,
          signal,
        )
        this.#count.applied(given.length)
        // What a fall is told by: noted now, as the next step may be far.
        this.#safest = Math.max(this.#safest, sink.position())
        this.#finish(last.index)
        this.#forgetSafe()
        if (this.#safe() < newest.index && this.#unsafe.length < MAX_STEPS)
          this.#unsafe.push({ index: newest.index, at: first.at })
        await this.#checkpointNowAndThen()
        return true
      } catch (error) {
        if (signal.aborted) return false
        this.#count.failed()
        if (this.#fellBack()) return false
        if (!mayPass(error)) {
          if (given.length > 1) {
            for (const single of group) if (!(await this.#applyGroup([single]))) return false
            return true
          }
          sink.leftOut?.(newest.item)
          this.#skip(newest.index, error)
          this.#finish(last.index)
          return true
        }
        const waitMs = backoff(attempt)
        logger.warn(
          { error: FleetError.from(error).message, attempt, waitMs, consumer: sink.name, backlog: this.backlog() },
          'records of the log are not taken yet',
        )
        await clock.sleep(waitMs, signal)
      }
    }
    return false
  }

  /** What was safe in the sink is lost there: begins again behind what it has, as far as the log goes. */
  #fellBack(): boolean {
    const { sink, log, logger } = this.#options
    const position = sink.position()
    if (!sink.fallsBack || position >= this.#safest) {
      this.#safest = Math.max(this.#safest, position)
      return false
    }
    logger.warn(
      { consumer: sink.name, position, was: this.#safest, oldest: log.firstIndex() },
      'a consumer lost what it had: the log is read again',
    )
    this.#hasFallen = true
    this.#safest = position
    this.#done = position
    this.#given = -1
    this.#unsafe.length = 0
    this.#pending = []
    this.#pendingBytes = 0
    this.#logFrom = position + 1
    return true
  }

  #skip(index: number, why: unknown): void {
    this.#count.skipped()
    this.#options.logger.error(
      { index, error: why, consumer: this.sink.name },
      "a record of the hub's log cannot be applied: left out",
    )
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

/** A full disk, a broken one, too many open files: no fault of what is offered. */
const isOfSystem = (error: unknown): boolean => error instanceof Error && 'errno' in error && 'syscall' in error
const mayPass = (error: unknown): boolean => (error instanceof FleetError ? error.retryable : isOfSystem(error))

const timeOf = ({ record }: LogEntry) => (record.kind === 'batch' ? record.receivedAt : record.at)
const hasItem = <Item>(pending: Pending<Item>): pending is Pending<Item> & { readonly item: Item } =>
  pending.item !== undefined
