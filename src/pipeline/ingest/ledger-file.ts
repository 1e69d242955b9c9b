import type { ClusterName, SequenceRange } from '#model'
import type { Log, Logger } from '#runtime'
import { decodeSnapshot, encodeSnapshot, Ledger, type Snapshot } from './ledger.ts'

/** Its consumer of the log. */
export const LEDGER = 'ledger'
const WARN_EVERY_MS = 10_000

/**
 * The ledger beside the log it was read from: a snapshot of one moment; the log keeps what came after it. Lost or damaged
 * it is built again from what the log still holds.
 */
export class LedgerFile {
  readonly #log: Log
  readonly #logger: Logger
  readonly ledger: Ledger
  /** a snapshot was found: all that is missing is in the log; `in part`: or in state, as of before the snapshot */
  readonly found: 'whole' | 'in part' | 'not'
  #safe: number
  #writing: Promise<void> | undefined
  #warnedAt = Number.NEGATIVE_INFINITY

  private constructor(log: Log, logger: Logger, ledger: Ledger, found: LedgerFile['found']) {
    this.#log = log
    this.#logger = logger
    this.ledger = ledger
    this.found = found
    this.#safe = ledger.position()
  }

  static async open(log: Log, logger: Logger, onHoleClosed: () => void): Promise<LedgerFile> {
    const file = await log.kept(LEDGER)
    const snapshot = file === undefined ? undefined : decodeSnapshot(file, log.id)
    const before = log.checkpoint(LEDGER)
    if (!snapshot && before >= 0) {
      logger.error({}, 'what was received of each agent cannot be read: it is built again from the log')
    }
    const closed = (cluster: ClusterName, origin: string, hole: SequenceRange) => {
      onHoleClosed()
      logger.error({ cluster, origin, hole }, 'too many holes in the sequences of an agent: the oldest one is given up')
    }
    const found = !snapshot ? 'not' : snapshot.incomplete ? 'in part' : 'whole'
    return new LedgerFile(log, logger, new Ledger(closed, snapshot), found)
  }

  /** Puts this into a log as if it had been read from it. @throws LogFullError, LogWriteError */
  static async write(log: Log, snapshot: Snapshot): Promise<void> {
    await log.keep(LEDGER, encodeSnapshot(snapshot, log.id))
    // An index that is told nowhere else is known by this: the next records come behind it.
    await log.setCheckpoint(LEDGER, snapshot.position)
  }

  /** Writes what changed since the last time. A failure is logged: the log keeps more until the next try. */
  keep(now: number): Promise<void> {
    this.#writing ??= this.#keep(now).finally(() => {
      this.#writing = undefined
    })
    return this.#writing
  }

  async #keep(now: number): Promise<void> {
    const position = this.ledger.position()
    if (position <= this.#safe) return
    try {
      await this.#log.keep(LEDGER, encodeSnapshot(this.ledger.snapshot(), this.#log.id))
      await this.#log.setCheckpoint(LEDGER, position)
      this.#safe = position
    } catch (error) {
      if (now - this.#warnedAt < WARN_EVERY_MS) return
      this.#warnedAt = now
      this.#logger.warn({ error }, 'what was received of each agent could not be written: trying again')
    }
  }
}
