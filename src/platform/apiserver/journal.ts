import { existsSync, statfsSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemClock } from '#model'
import { type Log, LogFullError, type Logger, lockDirectory, openLog, silentLogger } from '#runtime'
import type { Sealer } from '#sealing'
import { chainOf, isWhole, type JournalRecord } from './journal-chain.ts'
import { ObjectsLostError, ObjectsSealedError } from './journal-errors.ts'
import { hasAllBytes, Place } from './journal-place.ts'
import { dropForged, encodeRecord, type ReadCopy, readCopy } from './journal-records.ts'
import { sealRemnants } from './journal-remnants.ts'
import { takeLmdb } from './lmdb.ts'
import { ApiError } from './status.ts'
import type { ObjectStorage, StorageFault, StoredChange } from './storage.ts'
import type { ApiObject } from './types.ts'

export interface JournalOptions {
  readonly dir: string
  /** go on with what is left where objects were lost; what was there is copied aside first */
  readonly acceptLoss?: boolean
  /** what is written is sealed, and what lies there in the clear or under a former key is sealed anew; absent: in the clear */
  readonly sealer?: Sealer
  readonly logger?: Logger
}

const COPIES = ['a', 'b'] as const
const HEAD = 'head'
const CONSUMER = 'snapshot'
const SEGMENT_BYTES = 2 ** 20
/** Written since the last snapshot, at least, before the next one; and at least so many times its size. */
const SNAPSHOT_AFTER_BYTES = 4 * 2 ** 20
const SNAPSHOT_FACTOR = 4
/** Between two of the head, which takes a file of its own each time: as much as a write of objects itself. */
const HEAD_EVERY_MS = 100
const CLOSED = 'the journal is closed'
/** Between looks whether the files are still where a start will look for them. */
const LOOK_MS = 1000
/** of one record of a snapshot, about */
const PART_BYTES = 2 ** 20

/**
 * Objects in a journal of writes, kept twice: each write is a record with a checksum in two logs, on disk in both before it is
 * answered. A start reads both, takes each record from where it is whole, and mends the other copy. What is whole in neither
 * is said before anything is served.
 * @throws DirectoryLockedError where another process has the directory open; ObjectsLostError; ObjectsSealedError
 */
export async function journalStorage(options: JournalOptions): Promise<ObjectStorage> {
  const lock = await lockDirectory(options.dir)
  const logs: Log[] = []
  try {
    let isDamaged = false
    for (const copy of COPIES) {
      // A write that was cut off by a crash was not answered.
      logs.push(await openCopy(join(options.dir, copy), (kind) => (isDamaged ||= kind === 'damaged')))
    }
    const journal = new Journal(options, logs, lock)
    await journal.read(() => isDamaged)
    journal.follow()
    return journal
  } catch (error) {
    for (const log of logs) await log[Symbol.asyncDispose]()
    await lock[Symbol.asyncDispose]()
    throw error
  }
}

const openCopy = (directory: string, onDamage: (kind: 'damaged' | 'torn') => void): Promise<Log> =>
  openLog({
    directory,
    segmentBytes: SEGMENT_BYTES,
    retainBytes: 0,
    retainMs: 0,
    maxRecordBytes: 256 * 2 ** 20,
    // A snapshot is handed over as a whole, and is in memory anyway.
    maxQueuedBytes: 2 ** 30,
    onDamage: ({ kind }) => onDamage(kind),
  })

class Journal implements ObjectStorage {
  readonly #dir: string
  readonly #acceptLoss: boolean
  readonly #sealer: Sealer | undefined
  readonly #logger: Logger
  readonly #logs: Log[]
  readonly #lock: AsyncDisposable
  readonly #objects = new Map<string, ApiObject>()
  #resourceVersion = 0
  /** number of the newest record that counts, and the next one to give */
  #last = 0
  #next = 1
  #sinceSnapshot = 0
  #snapshotBytes = 0
  /** the number that is being written down, and the one to write next */
  #head: Promise<void> | undefined
  #headWanted = 0
  readonly #closing = new AbortController()
  #turn: Promise<unknown> = Promise.resolve()
  readonly #directory: Place
  /** of each copy; undefined: it is to be made anew */
  readonly #places: (Place | undefined)[]
  #fault: StorageFault | undefined
  #looking: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(
    { dir, acceptLoss = false, sealer, logger = silentLogger }: JournalOptions,
    logs: Log[],
    lock: AsyncDisposable,
  ) {
    this.#dir = dir
    this.#acceptLoss = acceptLoss
    this.#sealer = sealer
    this.#logger = logger
    this.#logs = logs
    this.#lock = lock
    this.#directory = new Place(dir)
    this.#places = COPIES.map((copy) => new Place(join(dir, copy)))
  }

  /** Begins to look at the files, when they have been read. */
  follow(): void {
    this.#timer = setInterval(() => void this.#look(), LOOK_MS).unref()
  }

  load() {
    return { resourceVersion: this.#resourceVersion, objects: this.#objects }
  }

  async read(isDamaged: () => boolean): Promise<void> {
    const copies = await Promise.all(this.#logs.map((log) => readCopy(this.#followed(log), this.#sealer)))
    const forged = dropForged(copies)
    if (forged > 0)
      this.#logger.error(
        { dir: this.#dir, records: forged },
        'writes in the clear stand among sealed ones: whoever put them there had no key, and they do not count',
      )
    const found = new Map(copies.flatMap(({ records }) => [...records]))
    const said = await readHead(this.#dir)
    const { records, lost } = chainOf(found)
    const end = records.at(-1)?.n ?? 0
    const unopened = Math.max(...copies.map((copy) => copy.unopened))
    const missing = Math.max(0, (said ?? 0) - end, unopened)
    const isLost = lost.length > 0 || missing > 0
    if (unopened > 0 && !this.#acceptLoss) throw this.#sealedError(copies)
    for (const record of records) this.#apply(record)
    this.#last = end
    this.#next = [...found.keys()].reduce((most, n) => Math.max(most, n), said ?? 0) + 1
    if (isLost) await this.#lose(lost, missing)
    const imported =
      records.length === 0 && said === undefined ? await takeLmdb(this.#dir, this.#acceptLoss) : undefined
    for (const [key, object] of imported?.objects ?? []) this.#objects.set(key, object)
    this.#resourceVersion = Math.max(this.#resourceVersion, imported?.resourceVersion ?? 0)
    const isUneven = copies.some((copy) => !isWhole(copy.records, end))
    const isOld = this.#sealer !== undefined && copies.some(({ clear, hasFormer }) => clear.size > 0 || hasFormer)
    if (imported || isLost || isDamaged() || isUneven || isOld) {
      if (!isLost && (isDamaged() || isUneven))
        this.#logger.warn(
          { dir: this.#dir },
          'one copy of the stored objects was damaged: it is made anew from the other',
        )
      await this.#snapshot()
    }
    await imported?.done()
    if (this.#sealer) await this.#sealRest(this.#sealer, isOld)
  }

  #followed(log: Log): Log {
    log.checkpoint(CONSUMER)
    return log
  }

  #sealedError(copies: readonly ReadCopy[]): ObjectsSealedError {
    const unknown = new Set(copies.flatMap(({ unknownKeys }) => [...unknownKeys]))
    return new ObjectsSealedError(this.#dir, [...unknown], this.#sealer?.keyIds() ?? [])
  }

  async #sealRest(sealer: Sealer, isOld: boolean): Promise<void> {
    const files = await sealRemnants(this.#dir, sealer)
    if (isOld || files > 0)
      this.#logger.info(
        { dir: this.#dir, key: sealer.keyId, files },
        'stored objects are sealed with the key in force: nothing of them is left in the clear or under a former key',
      )
  }

  write(changes: readonly StoredChange[], resourceVersion: number): Promise<void> {
    return this.#inTurn(() => this.#write(changes, resourceVersion))
  }

  async fault(): Promise<StorageFault | undefined> {
    await this.#look()
    return this.#fault
  }

  /** A copy is made anew between writes, never under one. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(work)
    this.#turn = done.catch(() => undefined) // the caller has it
    return done
  }

  async #write(changes: readonly StoredChange[], resourceVersion: number): Promise<void> {
    // One turn of the event loop, in which further writes gather to share the next sync.
    await new Promise(setImmediate)
    if (!this.#isInPlace() || this.#fault === 'lost') await this.#lookNow()
    if (this.#fault === 'lost') throw lostError(this.#dir)
    const pairs = changes.map(({ key, object }) => [key, object] as const)
    const record = { n: this.#next++, after: this.#last, rv: resourceVersion, changes: pairs }
    await this.#append([record]).catch((error: unknown) => {
      this.#say(error instanceof ApiError && error.reason === 'InsufficientStorage' ? 'full' : this.#fault)
      throw error
    })
    // What was moved away meanwhile would not be found by the next start: it is not answered, and the next write leaves it out.
    if (!this.#directory.isThere()) {
      this.#say('lost')
      throw lostError(this.#dir)
    }
    this.#say(undefined)
    this.#apply(record)
    this.#keepHead()
    if (this.#sinceSnapshot < Math.max(SNAPSHOT_AFTER_BYTES, SNAPSHOT_FACTOR * this.#snapshotBytes)) return
    // The write is kept; a snapshot that fails is tried again after the next one.
    await this.#snapshot().catch((error: unknown) =>
      this.#logger.warn({ error, dir: this.#dir }, 'stored objects could not be written anew: the journal grows'),
    )
  }

  #isInPlace(): boolean {
    return this.#directory.isThere() && this.#places.every((place) => place?.isThere())
  }

  #look(): Promise<void> {
    this.#looking ??= this.#inTurn(() => this.#lookNow())
      // What could not be asked for is asked again a second later: nothing is known to be lost.
      .catch((error: unknown) => this.#logger.debug({ error, dir: this.#dir }, 'stored objects could not be looked at'))
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  /** Looks whether what is written still lies where a start will look for it. One lost copy is made anew from memory, at once. */
  async #lookNow(): Promise<void> {
    if (!this.#directory.isThere()) return this.#say('lost')
    const areThere = await Promise.all(
      this.#logs.map(async (log, i) => {
        const isThere = this.#places[i]?.isThere() === true
        return isThere && (await hasAllBytes(join(this.#dir, COPIES[i] ?? ''), log))
      }),
    )
    if (!areThere.includes(true)) return this.#say('lost')
    const lost = areThere.indexOf(false)
    if (lost >= 0 && !(await this.#remake(lost))) return
    this.#say(isFull(this.#dir) ? 'full' : undefined)
  }

  /** @returns whether both copies are whole again */
  async #remake(i: number): Promise<boolean> {
    const directory = join(this.#dir, COPIES[i] ?? '')
    const isFirst = this.#places[i] !== undefined
    this.#places[i] = undefined
    if (isFirst)
      this.#logger.warn(
        { directory },
        'a copy of the stored objects was moved or deleted: it is made anew from the other',
      )
    try {
      await this.#logs[i]?.[Symbol.asyncDispose]()
      this.#logs[i] = this.#followed(await openCopy(directory, () => undefined))
      await this.#snapshot()
      this.#places[i] = new Place(directory)
      return true
    } catch (error) {
      const reason = isFull(this.#dir) ? 'full' : 'lost'
      if (this.#fault !== reason)
        this.#logger.error({ error, directory }, 'a copy of the stored objects cannot be made anew')
      this.#say(reason)
      return false
    }
  }

  /** Once for each change: whoever writes is answered each time. */
  #say(fault: StorageFault | undefined): void {
    if (fault === this.#fault) return
    this.#fault = fault
    if (fault === undefined) this.#logger.info({ dir: this.#dir }, 'objects can be written again')
    else
      this.#logger.error({ dir: this.#dir }, (fault === 'lost' ? lostError(this.#dir) : fullError(this.#dir)).message)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    await this.#turn
    this.#closing.abort(CLOSED)
    await this.#head // it goes on until the last number stands there
    for (const log of this.#logs) await log[Symbol.asyncDispose]()
    await this.#lock[Symbol.asyncDispose]()
  }

  #apply({ n, rv, changes, part }: JournalRecord): void {
    if (part?.[0] === 0) this.#objects.clear()
    for (const [key, object] of changes) {
      if (object) this.#objects.set(key, object)
      else this.#objects.delete(key)
    }
    this.#resourceVersion = Math.max(this.#resourceVersion, rv)
    this.#last = n
  }

  /** In both copies, on disk, or an error and in the end in neither: its number stays out of the chain. */
  async #append(records: readonly JournalRecord[]): Promise<readonly number[]> {
    try {
      const payloads = await Promise.all(records.map((record) => encodeRecord(record, this.#sealer)))
      // Handed to each log in one step, so that nothing comes between the parts of a snapshot.
      const written = this.#logs.map((log) => Promise.all(payloads.map((payload) => log.append(payload))))
      const settled = await Promise.allSettled(written)
      for (const one of settled) if (one.status === 'rejected') throw one.reason
      this.#sinceSnapshot += payloads.reduce((sum, { length }) => sum + length, 0)
      return await Promise.all(written.map(async (indices) => (await indices)[0] ?? 0))
    } catch (error) {
      throw storageError(this.#dir, error)
    }
  }

  /** All objects as they are, under a data key of their own; then what came before goes, to the last byte. */
  async #snapshot(): Promise<void> {
    this.#sealer?.renewDataKey()
    for (const log of this.#logs) await log.beginSegment()
    const parts = partsOf(this.#objects)
    let after = this.#last
    const records = parts.map((changes, i): JournalRecord => {
      const n = this.#next++
      const record = { n, after, rv: this.#resourceVersion, changes, part: [i, parts.length] as const }
      after = n
      return record
    })
    const firsts = await this.#append(records)
    this.#last = after
    this.#snapshotBytes = this.#sinceSnapshot
    this.#sinceSnapshot = 0
    this.#keepHead()
    for (const [i, log] of this.#logs.entries()) await log.setCheckpoint(CONSUMER, (firsts[i] ?? 0) - 1)
  }

  /** Not synced: it is there to notice that both copies end too early. */
  #keepHead(): void {
    this.#headWanted = this.#last
    this.#head ??= this.#writeHead()
  }

  /** Until the newest stands there: of writes that come faster than this one, most leave none. */
  async #writeHead(): Promise<void> {
    for (let written = -1; written !== this.#headWanted; ) {
      written = this.#headWanted
      // An older head notices less, and nothing wrong.
      await writeFile(join(this.#dir, HEAD), `${written} ${written}\n`, { mode: 0o600 }).catch(() => undefined)
      if (!this.#closing.signal.aborted) await systemClock.sleep(HEAD_EVERY_MS, this.#closing.signal)
    }
    this.#head = undefined
  }

  async #lose(lost: readonly number[], missing: number): Promise<void> {
    const count = lost.length + missing
    if (!this.#acceptLoss) {
      const { size } = this.#objects
      throw new ObjectsLostError(this.#dir, size === 0 ? 'all' : count, size)
    }
    const aside = join(this.#dir, `lost-${new Date().toISOString().replace(/[:.]/g, '-')}`)
    await mkdir(aside, { mode: 0o700 })
    for (const copy of COPIES) await cp(join(this.#dir, copy), join(aside, copy), { recursive: true })
    this.#logger.error(
      { dir: this.#dir, writes: count, objects: this.#objects.size, keptAs: aside },
      'stored objects were lost and the loss was accepted: access policies among them may be missing or old',
    )
  }
}

/** @returns undefined where nothing was said, or nothing that can be read */
async function readHead(dir: string): Promise<number | undefined> {
  const text = await readFile(join(dir, HEAD), 'utf8').catch(() => '')
  // Twice, so that an altered one is not believed; a former version wrote it once.
  const match = /^(\d{1,15})(?: \1)?\n$/.exec(text)
  return match ? Number(match[1]) : undefined
}

function partsOf(objects: ReadonlyMap<string, ApiObject>): (readonly [string, ApiObject])[][] {
  const parts: (readonly [string, ApiObject])[][] = [[]]
  let bytes = 0
  for (const entry of objects) {
    const size = JSON.stringify(entry[1]).length
    if (bytes > 0 && bytes + size > PART_BYTES) {
      parts.push([])
      bytes = 0
    }
    parts.at(-1)?.push(entry)
    bytes += size
  }
  return parts
}

function storageError(dir: string, error: unknown): ApiError {
  const text = error instanceof Error ? error.message : String(error)
  const options = { cause: error }
  if (error instanceof LogFullError || isFull(dir)) return fullError(dir, options)
  return new ApiError('InternalError', `writing to ${dir} failed, nothing was written: ${text}`, undefined, options)
}

const fullError = (dir: string, options?: ErrorOptions): ApiError =>
  new ApiError(
    'InsufficientStorage',
    `the disk of ${dir} is full: nothing was written; free some space and repeat`,
    undefined,
    options,
  )

const lostError = (dir: string): ApiError =>
  new ApiError(
    'ServiceUnavailable',
    `the stored objects are no longer in ${dir}, which was moved or deleted while this process runs: nothing is written; move the very same folder back, or stop, put a copy or a backup there, and start again`,
  )

/** What a write needs at least. */
const ROOM_BYTES = 256 * 1024

function isFull(dir: string): boolean {
  if (!existsSync(dir)) return false
  const { bavail, bsize } = statfsSync(dir)
  return bavail * bsize < ROOM_BYTES
}
