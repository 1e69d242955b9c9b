import { invariant, ownerOf, type SequenceRange } from '#model'
import type { Log, Logger, LogRecord } from '#runtime'
import { HISTORY, isFor } from './audience.ts'
import { dividedBooks } from './ledger.ts'
import { LEDGER, LedgerFile } from './ledger-file.ts'
import { decodeLogEntry, type LogEntry, narrowedLogEntry } from './log-record.ts'

/** A log as a former division left it. Nobody else has it open. */
export interface FormerLog {
  readonly log: Log
  /**
   * Index of its last record that each store has, by the name of the consumer; -1: none. What is not kept any more, such as
   * history where it is off, has all. Of consumers that are not named here the log's checkpoint counts.
   */
  readonly positions: Readonly<Record<string, number>>
}

export interface DivisionOptions {
  readonly from: readonly FormerLog[]
  /**
   * New and empty, in the order of their owners: what a division left that did not end is to be deleted first. Each has room
   * for whatever all former logs hold, or the division ends with LogFullError.
   */
  readonly to: readonly Log[]
  readonly logger: Logger
  readonly signal?: AbortSignal
}

/** What was carried over, for logs. */
export interface Divided {
  readonly clusters: number
  /** that a store had not taken yet */
  readonly records: number
  /** of the former logs that could not be read; they are named in the log of the process */
  readonly unreadable: number
}

interface Former {
  readonly log: Log
  /** of every consumer of any of the logs */
  readonly positions: ReadonlyMap<string, number>
  readonly file: LedgerFile
}

/** Copies on their way to the disks at a time. */
const GROUP = { records: 4096, bytes: 8 * 2 ** 20 }

/**
 * Divides logs anew among owners: what was received of each cluster goes to the log of its owner (`ownerOf`), and with it the
 * records that state or history has not taken, each for whom it lacks. All of it is synced when this resolves. The former
 * logs stay as they are: until the new ones are put in their place, nothing has happened.
 *
 *   former logs ─► ledgers, up to their ends ──────────────► books by owner ─► ledger of each new log
 *             └──► records that somebody lacks, narrowed ──► new log of the owner, in their order
 *
 * @throws LogFullError, LogWriteError when a new log does not take it; the reason of the signal
 */
export async function divideLogs({ from, to, logger, signal }: DivisionOptions): Promise<Divided> {
  invariant(to.length > 0, 'somebody owns the clusters')
  invariant(
    to.every((log) => log.firstIndex() > log.lastIndex()),
    'a new log holds nothing',
  )
  const formers: Former[] = []
  const names = consumersOf(from)
  for (const { log, positions } of from) {
    const known = log.checkpoints()
    formers.push({
      log,
      positions: new Map(names.map((name) => [name, positions[name] ?? known.get(name) ?? -1])),
      file: await LedgerFile.open(log, logger, () => undefined),
    })
  }
  const copies = new Copies(to, signal)
  const first = 1 + Math.max(-1, ...formers.flatMap(positionsOf))
  for (const log of to) {
    // While the stores have read nothing, nothing may be deleted, however much it is.
    for (const name of names) log.checkpoint(name)
    // Whatever was heard later has a higher index, also across the division.
    log.advance(first)
  }
  let unreadable = 0
  for (const former of formers) unreadable += await carryOver(former, copies, logger, signal)
  await copies.synced()
  const closed = (cluster: string, origin: string, hole: SequenceRange) =>
    logger.error({ cluster, origin, hole }, 'too many holes in the sequences of an agent: the oldest one is given up')
  const snapshots = formers.map(({ file }) => file.ledger.snapshot())
  const incomplete = formers.some(({ file }) => file.found !== 'whole')
  const divided = dividedBooks(snapshots, to.length, closed)
  for (const [i, log] of to.entries()) {
    signal?.throwIfAborted()
    // Its copies are in the books already: each was noted where it was read.
    await LedgerFile.write(log, { position: log.lastIndex(), books: divided[i] ?? new Map(), incomplete })
  }
  return { clusters: divided.reduce((sum, books) => sum + books.size, 0), records: copies.count, unreadable }
}

const consumersOf = (from: readonly FormerLog[]): readonly string[] => [
  ...new Set(
    from
      .flatMap(({ log, positions }) => [...Object.keys(positions), ...log.checkpoints().keys()])
      .filter((name) => name !== LEDGER),
  ),
]

const positionsOf = ({ log, positions, file }: Former): number[] => [
  log.lastIndex(),
  ...positions.values(),
  file.ledger.position(),
]

/** @returns how many records could not be read */
async function carryOver(former: Former, copies: Copies, logger: Logger, signal?: AbortSignal): Promise<number> {
  const { log, positions, file } = former
  const from = Math.min(file.ledger.position(), ...positions.values()) + 1
  let unreadable = 0
  for await (const { index, payload } of log.read(from, signal)) {
    const entry = decodeLogEntry(payload, 'head')
    if (!entry) {
      unreadable++
      logger.error({ log: log.id, index }, "a record of the hub's log cannot be read: it is not carried over")
      continue
    }
    file.ledger.note(entry, index)
    const copy = copyFor(former, { index, payload }, entry)
    if (copy) await copies.add(clusterOf(entry), copy)
  }
  const { damagedPlaces, damagedBytes } = log.stats()
  if (damagedPlaces === 0) return unreadable
  const damage = { log: log.id, places: damagedPlaces, bytes: damagedBytes }
  logger.error(damage, "places of the hub's log are damaged: what they held is not carried over")
  return unreadable + damagedPlaces
}

/** What of a record is for those who lack it; undefined: nothing. */
function copyFor({ positions }: Former, { index, payload }: LogRecord, entry: LogEntry): Buffer | undefined {
  const readers = [...positions.keys()].filter((name) => isRead(entry, name))
  const lacking = readers.filter((name) => index > (positions.get(name) ?? -1))
  if (lacking.length > 0 && lacking.length === readers.length) return payload
  return narrowedLogEntry(payload, new Set(lacking))
}

/** Whether a record was for this consumer when it was taken. */
function isRead({ record, audience }: LogEntry, consumer: string): boolean {
  if (record.kind === 'lost' && record.loss.count === 0) return false
  if (consumer === HISTORY && record.kind !== 'batch' && record.kind !== 'lost') return false
  return isFor(audience, consumer)
}

const clusterOf = ({ record }: LogEntry) => (record.kind === 'batch' ? record.batch.cluster : record.cluster)

/** Records on their way into the new logs: few at a time, in the order they are given. */
class Copies {
  readonly #to: readonly Log[]
  readonly #signal: AbortSignal | undefined
  #appending: Promise<void>[] = []
  #bytes = 0
  #failure: { readonly reason: unknown } | undefined
  count = 0

  constructor(to: readonly Log[], signal: AbortSignal | undefined) {
    this.#to = to
    this.#signal = signal
  }

  async add(cluster: string, payload: Uint8Array): Promise<void> {
    const isFull = this.#appending.length >= GROUP.records || this.#bytes + payload.length > GROUP.bytes
    if (isFull) await this.synced()
    const log = this.#to[ownerOf(cluster, this.#to.length) - 1]
    invariant(log, 'every owner has a log')
    this.count++
    this.#bytes += payload.length
    const appended = log.append(payload).then(
      () => undefined,
      (reason: unknown) => {
        this.#failure ??= { reason } // whoever waits next hears of it
      },
    )
    this.#appending.push(appended)
  }

  /** Resolves when all that was added is safe on disk. */
  async synced(): Promise<void> {
    await Promise.all(this.#appending)
    this.#appending = []
    this.#bytes = 0
    if (this.#failure) throw this.#failure.reason
    this.#signal?.throwIfAborted()
  }
}
