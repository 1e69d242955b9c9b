import type { DuckDBConnection } from '@duckdb/node-api'
import pLimit from 'p-limit'
import { type Clock, FleetError, invariant, minutes, StoreUnavailableError, systemClock } from '#model'
import { type Logger, lockDirectory, silentLogger } from '#runtime'
import type { Availability } from '#state'
import { limitOf, type OpenFile, openFile, READERS, setAside } from './duckdb-file.ts'
import { Reads } from './duckdb-query.ts'
import { type Family, families, tableOf } from './duckdb-tables.ts'
import { Upkeep } from './duckdb-upkeep.ts'
import { RecordWriter } from './duckdb-writer.ts'
import { LateCount } from './late-count.ts'
import type { HistoryRecord, HistorySpan, HistoryStore, RangeAnswer, RangeQuery } from './types.ts'

const day = 86_400_000

export interface DuckDbHistoryOptions {
  /** made where missing; one process at a time */
  readonly directory: string
  /** samples older than this are removed; default 30 days */
  readonly retentionMs?: number
  /** samples younger than this are kept as they came, older ones as means of 5 minutes; default 7 days */
  readonly rawMs?: number
  /** of the database, bytes; beyond it work spills to the directory; default 256 MiB */
  readonly memoryBytes?: number
  /** of the database; default 2 */
  readonly threads?: number
  /** how often samples are sorted, rolled up and removed; default 10 minutes */
  readonly upkeepMs?: number
  /**
   * Rows of one table that are sorted at once, at least; an eighth of what is sorted already where that is more, up to a
   * million. Default 122 880, a block of the database.
   */
  readonly sortRows?: number
  readonly clock?: Clock
  readonly logger?: Logger
}

const STORE = 'embedded history'
/** Questions that may wait for a reader; one more is refused. */
const MAX_WAITING = 256
const MOST_SORTED = 1_000_000
/** A transaction of more leaves many megabytes with the allocator. */
const MANY_ROWS = 10_000

/**
 * History in a DuckDB file. The position in the hub's log is written in the transaction of the samples: what was offered
 * before is skipped, and a crash loses nothing that `position` covers.
 *
 * Samples are kept as they came for `rawMs` (about 2 to 3 bytes each), then as means of 5 minutes with their number, until
 * `retentionMs`. Samples that arrive later than that are rolled up like the others and count by their number.
 *
 * One connection writes, in turn; two read. A file that cannot be read is put aside under another name and a new one begun:
 * `position` is then -1, so that the log offers again what it still has.
 */
export class DuckDbHistory implements HistoryStore {
  readonly driver = 'duckdb'
  readonly #options: Required<DuckDbHistoryOptions>
  readonly #lock: AsyncDisposable
  readonly #turn = pLimit(1)
  readonly #reading = pLimit(READERS)
  readonly #late = new LateCount()
  readonly #closing = new AbortController()
  /** rows that came to `recent` since it was sorted */
  readonly #unsorted = new Map<Family, number>()
  /** questions under way, and the connections they use */
  readonly #asking = new Map<Promise<unknown>, DuckDBConnection>()
  #file: OpenFile
  #unavailable: { since: number; reason: string } | undefined
  #mustReopen = false
  #isDamaged = false
  #loop: Promise<void> | undefined

  private constructor(options: Required<DuckDbHistoryOptions>, lock: AsyncDisposable, file: OpenFile) {
    this.#options = options
    this.#lock = lock
    this.#file = file
  }

  /**
   * @throws DirectoryLockedError while another process holds the directory
   * @throws StoreUnavailableError where the file cannot be opened for a reason that is not its content
   */
  static async open(given: DuckDbHistoryOptions): Promise<DuckDbHistory> {
    const options: Required<DuckDbHistoryOptions> = {
      retentionMs: 30 * day,
      rawMs: 7 * day,
      memoryBytes: 256 * 2 ** 20,
      threads: 2,
      upkeepMs: minutes(10),
      sortRows: 122_880,
      clock: systemClock,
      logger: silentLogger,
      ...given,
    }
    const lock = await lockDirectory(options.directory)
    try {
      const store = new DuckDbHistory(options, lock, await openFile(options))
      store.#loop = store.#keepUp()
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
    return this.#file.position
  }

  append(records: readonly HistoryRecord[], position: number, signal?: AbortSignal): Promise<void> {
    return this.#turn(async () => {
      signal?.throwIfAborted()
      this.#refuseWhenClosed()
      await this.#mend()
      const file = this.#file
      if (position <= file.position) return
      const writer = new RecordWriter(file.writer, file.words, file.layout)
      await this.#transaction(async () => {
        await writer.write(records)
        await file.words.write(file.writer)
        await file.writer.run(`UPDATE meta SET value = ${position} WHERE name = 'position'`)
      })
      file.position = position
      this.#late.add(records)
      if (writer.skipped > 0) {
        this.#options.logger.warn({ skipped: writer.skipped }, 'samples without a possible time were left out')
      }
      await this.#sortMany(writer.rows)
      if (Math.max(...writer.rows.values()) > MANY_ROWS) await this.#giveBack()
    })
  }

  lateRecords(cluster: string): number {
    return this.#late.of(cluster)
  }

  /** @throws InvalidRangeError, TooManySeriesError, StoreUnavailableError */
  range(query: RangeQuery, signal?: AbortSignal): Promise<RangeAnswer> {
    return this.#read((reads) => reads.range(query), signal)
  }

  spans(query: Parameters<HistoryStore['spans']>[0]): Promise<readonly HistorySpan[]> {
    return this.#read((reads) => reads.spans(query))
  }

  keys(query: Parameters<HistoryStore['keys']>[0]): Promise<readonly string[]> {
    return this.#read((reads) => reads.keys(query))
  }

  newestRound(cluster: string, until: number): Promise<number | undefined> {
    return this.#read((reads) => reads.newestRound(cluster, until))
  }

  /** Sorts, rolls up and removes what is due, and writes the file whole. Runs by itself every `upkeepMs`. */
  upkeep(): Promise<void> {
    return this.#turn(async () => {
      this.#refuseWhenClosed()
      await this.#mend()
      const { writer, words } = this.#file
      const upkeep = this.#upkeepOf(this.#file)
      await upkeep.expire(this.#options.clock.now())
      for (const family of families) await this.#sortIfOld(family)
      if (await upkeep.forgetWords(words.size)) await words.load(writer)
      await this.#guard(() => writer.run('CHECKPOINT'))
      await this.#giveBack()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.#loop
    await this.#turn(async () => {
      await this.#idle()
      await this.#file.writer.run('CHECKPOINT').catch((error: unknown) => {
        // The next opening reads the same from the log beside the file.
        this.#options.logger.warn({ error }, 'history was not written whole at the end')
      })
      this.#file.close()
    })
    await this.#lock[Symbol.asyncDispose]()
  }

  #upkeepOf({ writer }: OpenFile): Upkeep {
    return new Upkeep(writer, (work) => this.#transaction(work), this.#options)
  }

  async #read<T>(ask: (reads: Reads) => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    if (this.#reading.pendingCount >= MAX_WAITING) throw new StoreUnavailableError(STORE, 'too many questions wait')
    if (this.#mustReopen) await this.#turn(() => this.#mend())
    return this.#reading(async () => {
      signal?.throwIfAborted()
      this.#refuseWhenClosed()
      if (this.#mustReopen) throw new StoreUnavailableError(STORE, 'it is being opened anew')
      const { readers, words } = this.#file
      const reader = readers.pop()
      invariant(reader, 'as many may read as there are connections')
      const interrupt = (): void => reader.interrupt()
      signal?.addEventListener('abort', interrupt, { once: true })
      const asked = this.#guard(() => ask(new Reads(reader, words)))
      this.#asking.set(asked, reader)
      try {
        return await asked
      } catch (error) {
        signal?.throwIfAborted()
        throw error
      } finally {
        this.#asking.delete(asked)
        signal?.removeEventListener('abort', interrupt)
        readers.push(reader)
      }
    })
  }

  /** One transaction: all of it or nothing. */
  async #transaction(work: () => Promise<void>): Promise<void> {
    const { writer, words } = this.#file
    await this.#guard(async () => {
      try {
        await writer.run('BEGIN')
        await work()
        await writer.run('COMMIT')
        words.committed()
      } catch (error) {
        words.rolledBack()
        await writer.run('ROLLBACK').catch((cause: unknown) => {
          // No transaction is open any more, or the database is lost: the next call opens it anew.
          this.#options.logger.debug({ error: cause }, 'a transaction of history ended by itself')
          this.#mustReopen = true
        })
        throw error
      }
    })
    this.#unavailable = undefined
  }

  /** Turns what the database says into what a caller can act on. */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof FleetError) throw error
      const reason = error instanceof Error ? error.message : String(error)
      if (/INTERRUPT/.test(reason)) throw new StoreUnavailableError(STORE, 'the question was ended', { cause: error })
      if (/FATAL|INTERNAL|invalidated|corrupt|checksum/i.test(reason)) {
        this.#mustReopen = true
        this.#isDamaged ||= /corrupt|checksum/i.test(reason)
      }
      this.#unavailable ??= { since: this.#options.clock.now(), reason }
      throw new StoreUnavailableError(STORE, reason, { cause: error })
    }
  }

  async #mend(): Promise<void> {
    if (!this.#mustReopen) return
    await this.#idle()
    this.#file.close()
    let wentBack = false
    try {
      if (this.#isDamaged) await setAside(this.#options)
      const before = this.#file.position
      this.#file = await openFile(this.#options)
      wentBack = this.#file.position < before
    } catch (error) {
      this.#unavailable ??= { since: this.#options.clock.now(), reason: String(error) }
      throw error
    }
    this.#mustReopen = false
    this.#isDamaged = false
    this.#unavailable = undefined
    this.#unsorted.clear()
    if (wentBack) throw new StoreUnavailableError(STORE, 'it was begun anew: offer again what the log still has')
  }

  /** Ends the questions under way and waits until they are over. */
  async #idle(): Promise<void> {
    for (const reader of this.#asking.values()) reader.interrupt()
    await Promise.allSettled(this.#asking.keys())
  }

  #refuseWhenClosed(): void {
    if (this.#closing.signal.aborted) throw new StoreUnavailableError(STORE, 'it is closed')
  }

  async #sortMany(rows: ReadonlyMap<Family, number>): Promise<void> {
    const { sortRows } = this.#options
    for (const [family, count] of rows) {
      const total = (this.#unsorted.get(family) ?? 0) + count
      this.#unsorted.set(family, total)
      if (total < sortRows) continue
      const [[sorted = 0] = []] = await this.#ask(`SELECT count(*)::DOUBLE FROM ${tableOf(family, 'raw')}`)
      // Pieces that grow with the whole: a chart reads few of them, and what they leave free in the file stays small.
      if (total >= Math.min(Number(sorted) / 8, MOST_SORTED)) await this.#sort(family)
    }
  }

  /** Hands what is free to the system, which the allocator of C would keep: DuckDB does so whenever its limit is set. */
  async #giveBack(): Promise<void> {
    const { memoryBytes, logger } = this.#options
    await this.#file.writer.run(`SET memory_limit = '${limitOf(memoryBytes)}'`).catch((error: unknown) => {
      logger.debug({ error }, 'history did not give memory back')
    })
  }

  async #sortIfOld(family: Family): Promise<void> {
    const [[oldest] = []] = await this.#ask(`SELECT min(t)::DOUBLE FROM ${tableOf(family, 'recent')}`)
    if (typeof oldest === 'number' && oldest < this.#options.clock.now() - day) await this.#sort(family)
  }

  async #sort(family: Family): Promise<void> {
    this.#unsorted.set(family, 0)
    try {
      await this.#upkeepOf(this.#file).sort(family)
      // Frees the blocks of what was moved before the next rows ask for some: else the file grows by as many again.
      await this.#file.writer.run('CHECKPOINT')
    } catch (error) {
      // The samples are safe where they are; sorting them only makes charts faster.
      this.#options.logger.warn({ error, table: family.name }, 'recent samples were not sorted')
    }
  }

  /** of the writer */
  #ask(sql: string): Promise<readonly (readonly unknown[])[]> {
    return this.#guard(async () => (await this.#file.writer.runAndReadAll(sql)).getColumns())
  }

  async #keepUp(): Promise<void> {
    const { clock, upkeepMs, logger } = this.#options
    const { signal } = this.#closing
    while (!signal.aborted) {
      await clock.sleep(upkeepMs, signal)
      if (signal.aborted) return
      await this.upkeep().catch((error: unknown) => logger.error({ error }, 'upkeep of history failed: trying later'))
    }
  }
}
