import { randomUUID } from 'node:crypto'
import pLimit from 'p-limit'
import { type Clock, FleetError, StoreUnavailableError, seconds, systemClock } from '#model'
import { type Logger, lockDirectory, silentLogger } from '#runtime'
import type { Availability } from '#state'
import { decodeSamples, encodeSamples } from './encoding.ts'
import { ReadOnlyHistoryError, SamplesRefusedError } from './errors.ts'
import { LateCount } from './late-count.ts'
import { type Mark, type Noted, newNoted, readNoted, writeNoted } from './position-file.ts'
import type { HistoryRecord, HistorySpan, HistoryStore, PromQl, RangeAnswer, RangeQuery } from './types.ts'
import { ContactLostError, STORE, VictoriaClient } from './victoria-client.ts'
import { type Line, linesOf, seriesId } from './victoria-lines.ts'
import { keys, newestRound, promQl, range, spans } from './victoria-query.ts'

export interface VictoriaHistoryOptions {
  /** such as http://victoria-metrics:8428 */
  readonly endpoint: string
  /** of the position; made where missing, one process at a time. Absent: the store is for reading only. */
  readonly directory?: string
  /** what was imported is surely on VictoriaMetrics' disk so long after; it flushes about every 5 s. Default 15 s */
  readonly durableAfterMs?: number
  /** how often it is asked whether it still is the process that took what is not on disk yet; default 5 s */
  readonly settleEveryMs?: number
  /** body of one import; default 8 MiB */
  readonly maxBodyBytes?: number
  /** imported but perhaps not on its disk yet; beyond it append refuses for a while. Default 64 MiB, about 15 million values */
  readonly maxUnsettledBytes?: number
  /** of one import; default 10 s */
  readonly importTimeoutMs?: number
  /** compresses imports; default false */
  readonly gzip?: boolean
  readonly clock?: Clock
  readonly logger?: Logger
}

type Options = Required<Omit<VictoriaHistoryOptions, 'directory'>>

const READERS = 4
const NEVER = Number.NEGATIVE_INFINITY
const MAX_WAITING = 256
/** Positions noted ahead as perhaps sent, so that not every import writes a file. */
const SENT_AHEAD = 5_000
/** A position in the log at the time when all up to it was sent. */
const MARKER = 'clusterpulse_history_position'
/** What builds without positions wrote: that this is the store we know. */
const FORMER_MARKER = 'clusterpulse_history_store'
const MARK_EVERY_MS = 6 * 3_600_000
/** Looks for marks begin with so long a time, and double it. */
const MARKS_AT_ONCE_MS = 3_600_000
/** Of records that are verified by one export. */
const WINDOW_MS = 300_000
/** What holding a record costs beside its bytes. */
const HELD_BYTES = 200
const MARKER_LOOKBACK_MS = 30 * 86_400_000

interface HowToSend {
  /** of the last record */
  readonly position: number
  readonly mustVerify: boolean
}

/** A record as it is held: samples packed, which is a hundredth of their objects. */
type Held = Buffer | Extract<HistoryRecord, { kind: 'lost' }>

/** Imported, but a crash of VictoriaMetrics may still take it. */
interface Unsettled {
  readonly records: readonly Held[]
  readonly position: number
  readonly bytes: number
  readonly sentAt: number
  /** the run of VictoriaMetrics that was asked last before it was sent */
  readonly run: string
  /** sent behind them */
  readonly mark: Mark
}

/**
 * History in VictoriaMetrics, by the documented names and lines.
 *
 * VictoriaMetrics keeps a sample twice that is imported twice, and loses the last seconds when it is killed. So:
 * - `position` follows what was sent after `durableAfterMs`, once the process there is still the one that took it. It is
 *   noted in a file of ours, with how far was perhaps sent.
 * - What was sent and is not settled is kept here; where the process there is another one, it is sent again, verified.
 * - Where it is not certain whether an import was taken (no answer, a crash of ours), the next one is verified: what is
 *   there is exported for its clusters and times, and only the missing is sent.
 * - With what is sent goes a mark that names the position. Where the newest one there is older than the newest that was
 *   surely on its disk, VictoriaMetrics came back as an older copy, and without any, empty: `position` falls back to what
 *   that copy surely has, and append fails once, so that the hub's log offers again what it still has.
 */
export class VictoriaHistory implements HistoryStore {
  readonly driver = 'victoria'
  readonly promql: PromQl
  readonly #options: Options
  readonly #client: VictoriaClient
  readonly #directory: string | undefined
  readonly #lock: AsyncDisposable | undefined
  readonly #turn = pLimit(1)
  readonly #reading = pLimit(READERS)
  readonly #late = new LateCount()
  readonly #closing = new AbortController()
  #noted: Noted
  /** of the last append that resolved */
  #accepted: number
  /** appends that begin at or below it are verified */
  #verifyUntil: number
  #unsettled: Unsettled[] = []
  #unsettledBytes = 0
  /** the process there, as it was last known; undefined: to be asked */
  #run: string | undefined
  #lastRun: string | undefined
  /** connections that broke: each may mean a restart, also where the process does not say when it began */
  #lostContacts = 0
  #markedAt = NEVER
  #mustMark = true
  /** samples from before this time are verified: what was noted of them is lost */
  readonly #verifyBefore: number
  #unavailable: { readonly since: number; readonly reason: string } | undefined
  #loop: Promise<void> | undefined

  private constructor(
    options: Options,
    opened: { directory: string | undefined; lock: AsyncDisposable | undefined; noted: Noted; verifyBefore: number },
  ) {
    const { directory, lock, noted, verifyBefore } = opened
    this.#options = options
    this.#client = new VictoriaClient(options.endpoint, options)
    this.#directory = directory
    this.#lock = lock
    this.#noted = noted
    this.#accepted = noted.safe
    this.#verifyUntil = noted.sent
    this.#verifyBefore = verifyBefore
    const passed = promQl(this.#client)
    this.promql = { ask: (path, parameters, signal) => this.#read(() => passed.ask(path, parameters, signal)) }
  }

  /** Opens whether or not VictoriaMetrics answers. @throws DirectoryLockedError */
  static async open({ directory, ...given }: VictoriaHistoryOptions): Promise<VictoriaHistory> {
    const options: Options = {
      durableAfterMs: seconds(15),
      settleEveryMs: seconds(5),
      maxBodyBytes: 8 * 2 ** 20,
      maxUnsettledBytes: 64 * 2 ** 20,
      importTimeoutMs: seconds(10),
      gzip: false,
      clock: systemClock,
      logger: silentLogger,
      ...given,
    }
    if (directory === undefined) {
      return new VictoriaHistory(options, { directory, lock: undefined, noted: newNoted(), verifyBefore: NEVER })
    }
    const lock = await lockDirectory(directory)
    try {
      const read = await readNoted(directory)
      const isDamaged = read === 'damaged'
      if (isDamaged) {
        const reason =
          'what was noted of VictoriaMetrics is damaged: what the log still has is offered again and compared'
        options.logger.error({ directory }, reason)
      }
      const noted = read === undefined || isDamaged ? newNoted() : read
      const verifyBefore = isDamaged ? options.clock.now() : NEVER
      const store = new VictoriaHistory(options, { directory, lock, noted, verifyBefore })
      store.#loop = store.#keepSettling()
      return store
    } catch (error) {
      await lock[Symbol.asyncDispose]()
      throw error
    }
  }

  availability(): Availability {
    return this.#unavailable ? { state: 'unavailable', ...this.#unavailable } : { state: 'available' }
  }

  position(): number {
    return this.#noted.safe
  }

  /**
   * @throws ReadOnlyHistoryError, SamplesRefusedError
   * @throws StoreUnavailableError offer again, from `position() + 1` where that went back
   */
  lateRecords(cluster: string): number {
    return this.#late.of(cluster)
  }

  append(records: readonly HistoryRecord[], position: number, signal?: AbortSignal): Promise<void> {
    return this.#turn(() =>
      this.#watched(async () => {
        signal?.throwIfAborted()
        if (this.#directory === undefined) throw new ReadOnlyHistoryError()
        if (this.#closing.signal.aborted) throw new StoreUnavailableError(STORE, 'it is closed')
        if (position <= this.#accepted) return
        await this.#meet(signal)
        const held = records.map((record) => (record.kind === 'lost' ? record : encodeSamples(record.samples)))
        const bytes = held.reduce((sum, one) => sum + (Buffer.isBuffer(one) ? one.length : 0) + HELD_BYTES, 0)
        if (this.#unsettledBytes + bytes > this.#options.maxUnsettledBytes && this.#unsettled.length > 0) {
          await this.#settle(signal)
          if (this.#unsettledBytes + bytes > this.#options.maxUnsettledBytes && this.#unsettled.length > 0) {
            throw new StoreUnavailableError(STORE, 'what was sent is not on its disk yet')
          }
        }
        const mustVerify = this.#accepted < this.#verifyUntil || records.some(this.#isFromBefore)
        if (position > this.#noted.sent) await this.#note({ sent: position + SENT_AHEAD })
        const run = this.#run ?? ''
        // Whatever happens to this try, the next one must look.
        const before = this.#verifyUntil
        this.#verifyUntil = Math.max(before, position)
        const mark = await this.#sendSurely(records, { position, mustVerify }, signal)
        this.#late.add(records)
        this.#verifyUntil = before
        this.#accepted = position
        this.#unsettled.push({ records: held, position, bytes, sentAt: this.#options.clock.now(), run, mark })
        this.#unsettledBytes += bytes
      }),
    )
  }

  /** @throws InvalidRangeError, TooManySeriesError, StoreUnavailableError */
  range(query: RangeQuery, signal?: AbortSignal): Promise<RangeAnswer> {
    return this.#read(() => range(this.#client, query, signal))
  }

  spans(query: Parameters<HistoryStore['spans']>[0]): Promise<readonly HistorySpan[]> {
    return this.#read(() => spans(this.#client, query))
  }

  keys(query: Parameters<HistoryStore['keys']>[0]): Promise<readonly string[]> {
    return this.#read(() => keys(this.#client, query))
  }

  newestRound(cluster: string, until: number): Promise<number | undefined> {
    return this.#read(() => newestRound(this.#client, cluster, until))
  }

  /** What was sent long enough ago is safe, if the process there is still the same. Runs by itself. */
  settle(): Promise<void> {
    return this.#turn(() => this.#watched(() => this.#settle()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.#loop
    await this.#turn(() => Promise.resolve())
    await this.#lock?.[Symbol.asyncDispose]()
  }

  /**
   * Samples are called refused only where others are taken before and after: a server, or a proxy in front of it, that
   * refuses everything is one that is away.
   */
  async #sendSurely(records: readonly HistoryRecord[], how: HowToSend, signal?: AbortSignal): Promise<Mark> {
    try {
      return await this.#send(records, how, signal)
    } catch (error) {
      if (!(error instanceof SamplesRefusedError)) throw error
      await this.#mark(signal)
      return await this.#send(records, { ...how, mustVerify: true }, signal)
    }
  }

  /** Says that this is the store we know. */
  async #mark(signal?: AbortSignal): Promise<void> {
    try {
      await this.#client.import(`${this.#lineOf(this.#nextMark(this.#accepted))}\n`, signal)
    } catch (error) {
      if (error instanceof SamplesRefusedError) throw new StoreUnavailableError(STORE, error.reason, { cause: error })
      throw error
    }
    this.#mustMark = false
  }

  #nextMark(position: number): Mark {
    this.#markedAt = Math.max(Math.floor(this.#options.clock.now()), this.#markedAt + 1)
    return { at: this.#markedAt, position }
  }

  #lineOf({ at, position }: Mark): string {
    return `${MARKER}{store="${this.#noted.store}"} ${position} ${at}`
  }

  async #send(
    records: readonly HistoryRecord[],
    { position, mustVerify }: HowToSend,
    signal?: AbortSignal,
  ): Promise<Mark> {
    const lines = mustVerify ? await this.#missing(records, signal) : records.flatMap(linesOf)
    const mark = this.#nextMark(position)
    let body: string[] = []
    let length = 0
    for (const text of [...lines.map((line) => line.text), this.#lineOf(mark)]) {
      if (length + text.length > this.#options.maxBodyBytes && body.length > 0) {
        await this.#client.import(`${body.join('\n')}\n`, signal)
        body = []
        length = 0
      }
      body.push(text)
      length += text.length + 1
    }
    await this.#client.import(`${body.join('\n')}\n`, signal)
    return mark
  }

  /** The lines of these records that VictoriaMetrics does not have. */
  async #missing(records: readonly HistoryRecord[], signal?: AbortSignal): Promise<readonly Line[]> {
    await this.#client.forceFlush(signal)
    const lines = records.flatMap(linesOf)
    const missing: Line[] = []
    for (const [cluster, ofCluster] of groupBy(lines, (line) => line.cluster)) {
      for (const window of windowsOf(ofCluster)) {
        const known = await this.#known(cluster, window, signal)
        for (const line of window) if (!known.get(line.id)?.has(line.at)) missing.push(line)
      }
    }
    return missing
  }

  async #known(
    cluster: string,
    window: readonly Line[],
    signal?: AbortSignal,
  ): Promise<ReadonlyMap<string, ReadonlySet<number>>> {
    const times = new Set(window.map(({ at }) => at))
    const match = `{__name__=~"clusterpulse_.+",cluster=${JSON.stringify(cluster)},${neverAsked()}}`
    const known = new Map<string, Set<number>>()
    const limits = { signal, timeoutMs: seconds(30), maxBytes: 2 ** 30 }
    const [from, to] = [Math.min(...times), Math.max(...times)]
    for await (const { metric, timestamps } of this.#client.export(match, from, to, limits)) {
      const { __name__: name = '', cluster: _, ...labels } = metric
      const [[label, key] = []] = Object.entries(labels)
      const id = seriesId(name, label ?? null, key ?? '')
      // A series may come in several lines.
      const found = known.get(id) ?? new Set<number>()
      known.set(id, found)
      for (const at of timestamps) if (times.has(at)) found.add(at)
    }
    return known
  }

  /** Knows whom we talk to before anything is sent. @throws StoreUnavailableError when it came back empty */
  async #meet(signal?: AbortSignal): Promise<void> {
    if (this.#run === undefined) {
      const run = `${await this.#client.startedAt(signal)} ${this.#lostContacts}`
      if (run !== this.#lastRun) await this.#check(signal)
      this.#run = run
      this.#lastRun = run
    }
    if (this.#unsettled.some((one) => one.run !== this.#run)) await this.#resend(signal)
    const isDue = this.#mustMark || this.#options.clock.now() - this.#markedAt >= MARK_EVERY_MS
    if (isDue) await this.#mark(signal)
  }

  /** Another process than before, or the first: does it hold what we noted? */
  async #check(signal?: AbortSignal): Promise<void> {
    const { store, safe, mark } = this.#noted
    this.#mustMark = true // a killed one may lose the mark as well
    if (safe < 0) return
    await this.#client.forceFlush(signal)
    if (mark === undefined) {
      const now = this.#options.clock.now()
      const match = `${FORMER_MARKER}{store="${store}",${neverAsked()}}`
      const found = this.#client.export(match, now - MARKER_LOOKBACK_MS, now + MARK_EVERY_MS, { signal })
      const isKnown = !(await found.next()).done
      await found.return(undefined)
      if (!isKnown) await this.#fallBack(undefined)
      return
    }
    // Newer ones prove nothing: they may have been sent to this process before we asked who it is.
    const from = mark.at - MARKER_LOOKBACK_MS
    const newest = await this.#newestMark(from, mark.at, signal)
    if (newest?.at === mark.at && newest.position === mark.position) return
    // A copy that was made while samples came may have a mark and not yet all that it stands for.
    await this.#fallBack(newest && (await this.#newestMark(from, newest.at - this.#options.durableAfterMs, signal)))
  }

  async #newestMark(from: number, until: number, signal?: AbortSignal): Promise<Mark | undefined> {
    const match = `${MARKER}{store="${this.#noted.store}",${neverAsked()}}`
    let newest: Mark | undefined
    for (let to = until, stepMs = MARKS_AT_ONCE_MS; !newest && to > from; to -= stepMs, stepMs *= 2) {
      for await (const { values, timestamps } of this.#client.export(match, to - stepMs, to, { signal })) {
        for (const [i, at] of timestamps.entries()) {
          const position = values[i]
          if (typeof position === 'number' && at >= (newest?.at ?? NEVER)) newest = { at, position }
        }
      }
    }
    return newest
  }

  /** @throws StoreUnavailableError so that the log begins again behind the position */
  async #fallBack(mark: Mark | undefined): Promise<never> {
    const position = mark?.position ?? -1
    const { endpoint, logger } = this.#options
    logger.error(
      { endpoint, position, was: this.#noted.safe },
      `VictoriaMetrics came back ${position < 0 ? 'without our samples' : 'as an older copy'}: what the log still has is taken again`,
    )
    const sent = Math.max(this.#accepted, this.#verifyUntil)
    this.#unsettled = []
    this.#unsettledBytes = 0
    this.#accepted = position
    this.#verifyUntil = sent
    await this.#note({ safe: position, sent, ...(mark && { mark }) })
    throw new StoreUnavailableError(STORE, 'it came back without samples: offer again what the log still has')
  }

  readonly #isFromBefore = (record: HistoryRecord): boolean =>
    (record.kind === 'lost' ? record.loss.from : record.samples.at) <= this.#verifyBefore

  /** The process that took these was killed, perhaps before they were on its disk. */
  async #resend(signal?: AbortSignal): Promise<void> {
    const run = this.#run ?? ''
    for (const [i, one] of this.#unsettled.entries()) {
      if (one.run === run) continue
      let { mark } = one
      try {
        mark = await this.#sendSurely(one.records.map(recordOf), { position: one.position, mustVerify: true }, signal)
      } catch (error) {
        // It took them once. What comes behind them must not be taken for refused.
        if (!(error instanceof SamplesRefusedError)) throw error
        this.#options.logger.error({ error }, 'samples it took before are refused now: left out')
        mark = this.#nextMark(one.position)
        await this.#client.import(`${this.#lineOf(mark)}\n`, signal)
      }
      this.#unsettled[i] = { ...one, run, mark, sentAt: this.#options.clock.now() }
    }
  }

  async #settle(signal: AbortSignal = this.#closing.signal): Promise<void> {
    const { clock, durableAfterMs } = this.#options
    const due = clock.now() - durableAfterMs
    const [first] = this.#unsettled
    if (!first || first.sentAt > due) return
    // Asked anew: the same run now as when it was sent means that it lived all the time between.
    this.#run = undefined
    await this.#meet(signal)
    let settled: Unsettled | undefined
    while (this.#unsettled[0] && this.#unsettled[0].sentAt <= due && this.#unsettled[0].run === this.#run) {
      settled = this.#unsettled.shift()
      this.#unsettledBytes -= settled?.bytes ?? 0
    }
    if (settled) await this.#note({ safe: settled.position, mark: settled.mark })
  }

  async #note(change: Partial<Noted>): Promise<void> {
    const noted = { ...this.#noted, ...change }
    if (this.#directory !== undefined) {
      await writeNoted(this.#directory, noted).catch((cause: unknown) => {
        const why = cause instanceof Error ? cause.message : String(cause)
        throw new StoreUnavailableError('the note of how far history is', why, { cause })
      })
    }
    this.#noted = noted
  }

  async #read<T>(work: () => Promise<T>): Promise<T> {
    if (this.#reading.pendingCount >= MAX_WAITING) throw new StoreUnavailableError(STORE, 'too many questions wait')
    return this.#reading(() => this.#watched(work))
  }

  /** Notes whether it answers. */
  async #watched<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work()
      this.#unavailable = undefined
      return result
    } catch (error) {
      if (error instanceof StoreUnavailableError) {
        if (error instanceof ContactLostError) this.#lostContacts++
        this.#run = undefined
        this.#unavailable ??= { since: this.#options.clock.now(), reason: error.reason }
      } else if (error instanceof FleetError) {
        this.#unavailable = undefined
      }
      throw error
    }
  }

  async #keepSettling(): Promise<void> {
    const { clock, settleEveryMs, logger } = this.#options
    const { signal } = this.#closing
    while (!signal.aborted) {
      await clock.sleep(settleEveryMs, signal)
      if (signal.aborted) return
      // Also finds out that it answers again: nobody may have anything to append.
      const work = this.#unavailable ? () => this.#meet(signal) : () => this.#settle(signal)
      await this.#turn(() => this.#watched(work)).catch((error: unknown) => {
        if (!signal.aborted) logger.debug({ error }, 'VictoriaMetrics was not asked whether samples are safe')
      })
    }
  }
}

/**
 * A matcher that every series passes, and that was in no question before. For ten seconds VictoriaMetrics answers a question
 * it knows by the series of the last time, also when new ones have come and were flushed since.
 */
const neverAsked = (): string => `asked!="${randomUUID()}"`

/** Lines of one cluster in stretches of time that are cheap to look at. */
function windowsOf(lines: readonly Line[]): readonly (readonly Line[])[] {
  const byTime = [...groupBy(lines, (line) => line.at)].sort(([left], [right]) => left - right)
  const windows: Line[][] = []
  let end = Number.NEGATIVE_INFINITY
  for (const [at, ofTime] of byTime) {
    const last = windows.at(-1)
    if (last && at < end) for (const line of ofTime) last.push(line)
    else {
      windows.push(ofTime)
      end = at + WINDOW_MS
    }
  }
  return windows
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group) group.push(item)
    else groups.set(keyOf(item), [item])
  }
  return groups
}

const recordOf = (held: Held): HistoryRecord =>
  Buffer.isBuffer(held) ? { kind: 'samples', samples: decodeSamples(held) } : held
