import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Clock } from '#model'
import { invariant, systemClock } from '#model'
import type { Log, LogRecord, LogStats } from '../log.ts'
import { crc32c } from './crc32c.ts'
import { lockDirectory } from './directory-lock.ts'
import { type Disk, type DiskFile, nodeDisk, writeAtomically } from './disk.ts'
import { isDiskFull, LogFullError, LogWriteError, RecordTooLargeError } from './errors.ts'
import {
  decodeSegmentHeader,
  encodeRecordHeader,
  encodeSegmentHeader,
  RECORD_HEADER_BYTES,
  SEGMENT_HEADER_BYTES,
  scanSegment,
} from './record.ts'

/** Where segments are kept, and how large they become. */
export interface SegmentLogOptions {
  /** made where missing; one process at a time */
  readonly directory: string
  /** a segment is closed when it is at least this long; default 16 MiB */
  readonly segmentBytes?: number
  /** segments that every consumer has passed are kept up to this many bytes in total; default 64 MiB */
  readonly retainBytes?: number
  /** and up to this age, ms; default 24 h */
  readonly retainMs?: number
  /** hard bound of all segments together; default 1 GiB */
  readonly maxBytes?: number
  /**
   * At the hard bound, when no segment may be deleted yet: `refuse` new records (nothing acknowledged is lost), or
   * `drop-oldest` (newest matter most). Both are counted. Default `refuse`.
   */
  readonly whenFull?: 'refuse' | 'drop-oldest'
  /** default 32 MiB */
  readonly maxRecordBytes?: number
  /** bytes that may wait for the disk; above it append refuses; default 64 MiB */
  readonly maxQueuedBytes?: number
  readonly clock?: Clock
  /** random 32 bits, the salt of a segment's checksums */
  readonly random?: () => number
  readonly disk?: Disk
  /** opens on a disk that has no room even for its name and lock; they are written when there is, before any record. Default false */
  readonly startsFull?: boolean
  /** Called for bytes that are not served: once per place and open log. */
  readonly onDamage?: (damage: LogDamage) => void
}

/**
 * Bytes of the log that hold no usable record, or a checkpoint that is not believed. `index`: of the lost record, where its
 * header could be read. `segment`: the name of the file.
 */
export interface LogDamage {
  readonly kind: 'damaged' | 'torn'
  readonly segment: string
  readonly offset: number
  readonly bytes: number
  readonly index: number | undefined
}

interface Segment {
  readonly path: string
  readonly name: string
  readonly first: number
  readonly salt: number
  readonly createdAt: number
  /** good bytes: what is beyond was not synced */
  bytes: number
}

interface Waiting {
  readonly payload: Uint8Array
  readonly onDurable: ((index: number) => void) | undefined
  readonly resolve: (index: number) => void
  readonly reject: (error: unknown) => void
}

const GROUP_BYTES = 8 * 2 ** 20
/** A file that is open goes on being written wherever its folder is moved to: so often it is looked for. */
const LOOK_EVERY_MS = 1_000
const CHECKPOINT = '.checkpoint'
const KEPT = '.kept'

/**
 * A log in append-only files with checksums. Many appends share one sync. Whole segments that every consumer has passed are
 * deleted, oldest first. What a crash cut off is cut at open; a damaged record is skipped and reported.
 */
export class SegmentLog implements Log {
  readonly id: string
  readonly #options: Required<Omit<SegmentLogOptions, 'onDamage'>>
  readonly #onDamage: ((damage: LogDamage) => void) | undefined
  readonly #lock: AsyncDisposable
  readonly #segments: Segment[]
  readonly #checkpoints: Map<string, number>
  readonly #reported = new Set<string>()
  #active: { readonly segment: Segment; readonly file: DiskFile } | undefined
  #next: number
  #synced: number
  #waiting: Waiting[] = []
  #waitingBytes = 0
  #writing: Promise<void> | undefined
  #closed = false
  /** when the active segment was found at its path last */
  #seenAt = Number.NEGATIVE_INFINITY
  /** its id is on disk */
  #isNamed = false
  #appended = 0
  #syncs = 0
  #refused = 0
  #dropped = 0
  #damagedPlaces = 0
  #damagedBytes = 0
  #tornBytes = 0

  private constructor(
    options: Required<Omit<SegmentLogOptions, 'onDamage'>>,
    onDamage: ((damage: LogDamage) => void) | undefined,
    opened: { id: string; lock: AsyncDisposable; segments: Segment[]; checkpoints: Map<string, number> },
  ) {
    this.#options = options
    this.#onDamage = onDamage
    this.id = opened.id
    this.#lock = opened.lock
    this.#segments = opened.segments
    this.#checkpoints = opened.checkpoints
    this.#next = 0
    this.#synced = -1
  }

  /**
   * @throws DirectoryLockedError while another process holds the directory
   * @throws LogWriteError where the directory cannot be read or made
   */
  static async open(given: SegmentLogOptions): Promise<SegmentLog> {
    const { onDamage, ...rest } = given
    const options = {
      segmentBytes: 16 * 2 ** 20,
      retainBytes: 64 * 2 ** 20,
      retainMs: 24 * 3_600_000,
      maxBytes: 2 ** 30,
      whenFull: 'refuse' as const,
      maxRecordBytes: 32 * 2 ** 20,
      maxQueuedBytes: 64 * 2 ** 20,
      clock: systemClock,
      random: () => Math.floor(Math.random() * 2 ** 32),
      disk: nodeDisk,
      startsFull: false,
      ...rest,
    }
    // A quarter each, so that whatever all consumers have passed always leaves room for one more record.
    options.segmentBytes = Math.min(options.segmentBytes, options.maxBytes / 4)
    options.maxRecordBytes = Math.min(options.maxRecordBytes, options.maxBytes / 4)
    const { directory, disk, startsFull } = options
    const lock = await lockDirectory(directory, startsFull)
    try {
      await disk.makeDirectory(directory)
      const names = await disk.list(directory)
      const known = await readId(disk, directory, names)
      const id = known ?? randomUUID()
      const read = await readCheckpoints(disk, directory, names, id)
      const checkpoints = new Map([...read].map(([consumer, { index }]) => [consumer, index]))
      const log = new SegmentLog(options, onDamage, { id, lock, segments: [], checkpoints })
      log.#isNamed = known !== undefined
      await log.#keepId().catch((error: unknown) => {
        if (!startsFull || !isDiskFull(error)) throw error
      })
      await log.#load(names.filter((name) => /^\d{16}\.segment$/.test(name)).sort())
      if (known === undefined && (log.#segments.length > 0 || read.size > 0))
        log.#report({ name: 'id' }, { kind: 'damaged', offset: 0, bytes: 0, index: undefined })
      log.#boundCheckpoints(read, new Set(names))
      return log
    } catch (error) {
      await lock[Symbol.asyncDispose]()
      throw error
    }
  }

  lastIndex(): number {
    return this.#synced
  }

  firstIndex(): number {
    return this.#segments[0]?.first ?? this.#next
  }

  advance(index: number): void {
    if (index <= this.#next) return
    this.#next = index
    this.#synced = Math.max(this.#synced, index - 1)
    // The names of segments tell where their records begin: numbers may jump inside one, never go back.
  }

  append(payload: Uint8Array, onDurable?: (index: number) => void): Promise<number> {
    invariant(!this.#closed, 'a closed log takes no records')
    const { maxRecordBytes, maxQueuedBytes, directory } = this.#options
    if (payload.length > maxRecordBytes) return Promise.reject(new RecordTooLargeError(payload.length, maxRecordBytes))
    if (this.#waitingBytes + payload.length > maxQueuedBytes && this.#waiting.length > 0) {
      this.#refused++
      return Promise.reject(new LogFullError(directory, `${this.#waitingBytes} bytes already wait for the disk`))
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ payload, onDurable, resolve, reject })
      this.#waitingBytes += payload.length
      this.#writing ??= this.#writeAll()
    })
  }

  async beginSegment(): Promise<void> {
    while (this.#writing) await this.#writing
    if (!this.#active || this.#active.segment.bytes <= SEGMENT_HEADER_BYTES) return
    const { file } = this.#active
    this.#active = undefined
    await file.close()
  }

  async *read(from: number, signal?: AbortSignal): AsyncGenerator<LogRecord> {
    let next = from
    while (next <= this.#synced) {
      signal?.throwIfAborted()
      const segment = this.#segmentOf(next)
      if (!segment) return
      const end = this.#endOf(segment)
      const bytes = await this.#readSegment(segment)
      if (bytes) {
        for (const item of scanSegment(bytes, segment.salt)) {
          if (item.kind !== 'record') this.#report(segment, item)
          else if (item.index >= next) yield { index: item.index, payload: item.payload }
        }
      }
      next = end + 1
    }
  }

  checkpoint(consumer: string): number {
    const known = this.#checkpoints.get(consumer)
    if (known === undefined) this.#checkpoints.set(consumer, -1)
    return known ?? -1
  }

  checkpoints(): ReadonlyMap<string, number> {
    return this.#checkpoints
  }

  async forget(consumer: string): Promise<void> {
    const { disk, directory } = this.#options
    try {
      await disk.remove(join(directory, `${consumer}${CHECKPOINT}`))
      this.#checkpoints.delete(consumer)
      await this.#retain()
    } catch (error) {
      throw this.#writeError(error)
    }
  }

  async setCheckpoint(consumer: string, index: number): Promise<void> {
    if (index <= this.checkpoint(consumer)) return
    const { disk, directory } = this.#options
    const text = encodeCheckpoint({ log: this.id, consumer, index })
    const write = () => writeAtomically(disk, directory, `${consumer}${CHECKPOINT}`, text)
    try {
      await write().catch(async (error: unknown) => {
        if (!isDiskFull(error)) throw error
        // The consumer needs nothing below: what it passed may go first, and makes the room to say so.
        this.#checkpoints.set(consumer, Math.max(index, this.checkpoint(consumer)))
        await this.#retain(0)
        await write()
      })
    } catch (error) {
      throw this.#writeError(error)
    }
    this.#checkpoints.set(consumer, Math.max(index, this.checkpoint(consumer)))
    await this.#retain()
  }

  async kept(name: string): Promise<string | undefined> {
    const { disk, directory } = this.#options
    if (!(await disk.list(directory)).includes(`${name}${KEPT}`)) return undefined
    return (await disk.read(join(directory, `${name}${KEPT}`))).toString()
  }

  async keep(name: string, text: string): Promise<void> {
    const { disk, directory } = this.#options
    await writeAtomically(disk, directory, `${name}${KEPT}`, text).catch((error: unknown) => {
      throw this.#writeError(error)
    })
  }

  stats(): LogStats {
    return {
      bytes: this.#totalBytes(),
      appendedRecords: this.#appended,
      syncs: this.#syncs,
      refusedRecords: this.#refused,
      droppedRecords: this.#dropped,
      damagedPlaces: this.#damagedPlaces,
      damagedBytes: this.#damagedBytes,
      tornBytes: this.#tornBytes,
    }
  }

  /** Waits for what was appended, then gives the directory free. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#writing
    await this.#active?.file.close()
    await this.#lock[Symbol.asyncDispose]()
  }

  async #load(names: readonly string[]): Promise<void> {
    const { directory, disk } = this.#options
    for (const name of names) {
      const path = join(directory, name)
      const first = Number(name.slice(0, 16))
      const sizeBytes = await disk.sizeBytes(path)
      const header = decodeSegmentHeader(await disk.read(path, SEGMENT_HEADER_BYTES))
      this.#next = Math.max(this.#next, first)
      if (!header) await this.#setAside(path, name, first, sizeBytes)
      else this.#segments.push({ path, name, first, salt: header.salt, createdAt: header.createdAt, bytes: sizeBytes })
    }
    // Only the newest can end in a write that was cut off; damage in older ones shows when they are read.
    const newest = this.#segments.at(-1)
    if (newest) await this.#openLast(newest)
    this.#synced = this.#next - 1
  }

  /**
   * Of what a checkpoint says, only what its checksum covers may lie beyond the records, as where all of them were lost: then
   * no index below it is given again. What does not pass counts as nothing read yet: delivery is at least once.
   */
  #boundCheckpoints(read: ReadonlyMap<string, ReadCheckpoint>, names: ReadonlySet<string>): void {
    const end = this.#next - 1
    const isEmpty = this.#segments.length === 0 && this.#next === 0
    // Records are never removed to the last: who took the files away is told, and what had not been read of them is lost.
    // A log that was begun at an index has no record yet, and one checkpoint with what is kept of the time before.
    const readers = [...read].filter(([consumer]) => !names.has(`${consumer}${KEPT}`))
    const newest = Math.max(-1, ...readers.map(([, { index }]) => index))
    if (isEmpty && newest >= 0)
      this.#report({ name: '*.segment' }, { kind: 'damaged', offset: 0, bytes: 0, index: newest })
    for (const [consumer, { index, trust, bytes }] of read) {
      if (trust === 'sealed') this.#next = Math.max(this.#next, index + 1)
      else if (trust === 'damaged' || index > end) {
        this.#checkpoints.set(consumer, trust === 'damaged' ? -1 : end)
        this.#report({ name: `${consumer}${CHECKPOINT}` }, { kind: 'damaged', offset: 0, bytes, index: undefined })
      }
    }
    this.#synced = this.#next - 1
  }

  // A segment without its header: cut off while it was made (empty, dropped), or damaged (kept aside for people).
  async #setAside(path: string, name: string, first: number, sizeBytes: number): Promise<void> {
    const { disk, directory } = this.#options
    if (sizeBytes <= SEGMENT_HEADER_BYTES) {
      await disk.remove(path)
    } else {
      this.#report({ name }, { kind: 'damaged', offset: 0, bytes: sizeBytes, index: undefined })
      await disk.rename(path, `${path}.damaged`)
      // Its records had at most so many indices: they must not be given again.
      this.#next = Math.max(this.#next, first + Math.ceil(sizeBytes / RECORD_HEADER_BYTES))
    }
    await disk.syncDirectory(directory)
  }

  async #openLast(segment: Segment): Promise<void> {
    const { disk } = this.#options
    const bytes = await disk.read(segment.path)
    let end = bytes.length
    let isDamaged = false
    for (const item of scanSegment(bytes, segment.salt)) {
      if (item.kind === 'record') this.#next = Math.max(this.#next, item.index + 1)
      else this.#report(segment, item)
      if (item.kind === 'damaged') {
        isDamaged = true
        this.#next = Math.max(this.#next, (item.index ?? segment.first) + 1)
      }
      if (item.kind === 'torn') end = item.offset
    }
    const file = await disk.open(segment.path)
    if (end < bytes.length) {
      await file.truncate(end)
      await file.sync()
    }
    segment.bytes = end
    // Nothing is added to a damaged one, so that it goes as soon as all have passed it.
    if (isDamaged) await file.close()
    else this.#active = { segment, file }
  }

  async #writeAll(): Promise<void> {
    // One turn of the loop lets appends of the same moment share the first sync.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup()
      try {
        const indices = await this.#writeGroup(group)
        for (const [i, waiting] of group.entries()) {
          waiting.onDurable?.(indices[i] as number)
          waiting.resolve(indices[i] as number)
        }
      } catch (error) {
        this.#refused += group.length
        const failure = error instanceof LogFullError ? error : this.#writeError(error)
        for (const waiting of group) waiting.reject(failure)
      }
    }
    // In the same step as the last look at the queue: an append after it starts anew.
    this.#writing = undefined
  }

  #takeGroup(): Waiting[] {
    const groupBytes = Math.min(GROUP_BYTES, this.#options.maxBytes / 4)
    let bytes = 0
    let count = 0
    for (const { payload } of this.#waiting) {
      if (count > 0 && bytes + payload.length > groupBytes) break
      bytes += payload.length
      count++
    }
    this.#waitingBytes -= bytes
    return this.#waiting.splice(0, count)
  }

  async #writeGroup(group: readonly Waiting[]): Promise<number[]> {
    const groupBytes = group.reduce((sum, { payload }) => sum + payload.length + RECORD_HEADER_BYTES, 0)
    await this.#makeRoom(groupBytes)
    const { segment, file } = await this.#activeSegment()
    await this.#look(segment)
    const indices = group.map((_, i) => this.#next + i)
    const chunks = group.flatMap(({ payload }, i) => [
      encodeRecordHeader(indices[i] as number, payload, segment.salt),
      payload,
    ])
    // Burnt before the write: whatever a failed write left behind, its indices are never given again.
    this.#next += group.length
    try {
      await file.write(Buffer.concat(chunks, groupBytes), segment.bytes)
      await file.sync()
    } catch (error) {
      await this.#abandon(segment, file)
      throw error
    }
    segment.bytes += groupBytes
    this.#synced = this.#next - 1
    this.#appended += group.length
    this.#syncs++
    return indices
  }

  /** @throws where the segment is no longer at its path: what is written to it the next start would not find */
  async #look({ path }: Segment): Promise<void> {
    const { clock, disk } = this.#options
    const now = clock.now()
    if (now - this.#seenAt < LOOK_EVERY_MS && now >= this.#seenAt) return
    try {
      await disk.sizeBytes(path)
      this.#seenAt = now
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      throw new Error('its files were moved or deleted while it runs; put the folder back', { cause: error })
    }
  }

  // After a failed write or sync the kernel may have thrown pages away: cut, close, and begin a new segment next time.
  async #abandon(segment: Segment, file: DiskFile): Promise<void> {
    this.#active = undefined
    // The error of the write is what the caller hears; trouble while cleaning up after it says nothing new.
    const hold = () => undefined
    await file.truncate(segment.bytes).catch(hold)
    await file.sync().catch(hold)
    await file.close().catch(hold)
    if (segment.bytes > SEGMENT_HEADER_BYTES) return
    // Nothing good in it: its name would stand in the way of the next one.
    await this.#options.disk.remove(segment.path).catch(hold)
    this.#segments.splice(this.#segments.indexOf(segment), 1)
  }

  async #keepId(): Promise<void> {
    if (this.#isNamed) return
    await writeAtomically(this.#options.disk, this.#options.directory, 'id', `${this.id}\n`)
    this.#isNamed = true
  }

  async #activeSegment() {
    await this.#keepId()
    const { segmentBytes, directory, disk, clock, random } = this.#options
    if (this.#active && this.#active.segment.bytes < segmentBytes) return this.#active
    const previous = this.#active
    this.#active = undefined
    await previous?.file.close()
    const name = `${String(this.#next).padStart(16, '0')}.segment`
    const path = join(directory, name)
    const header = { salt: random() >>> 0, first: this.#next, createdAt: clock.now() }
    const file = await disk.open(path)
    try {
      await file.truncate(0)
      await file.write(encodeSegmentHeader(header), 0)
      await file.sync()
      await disk.syncDirectory(directory)
    } catch (error) {
      await file.close()
      await disk.remove(path).catch(() => undefined) // the error of the write says more
      throw error
    }
    const segment: Segment = { path, name, ...header, bytes: SEGMENT_HEADER_BYTES }
    this.#segments.push(segment)
    this.#active = { segment, file }
    return this.#active
  }

  async #makeRoom(bytes: number): Promise<void> {
    const { maxBytes, whenFull, directory } = this.#options
    if (this.#totalBytes() + bytes <= maxBytes) return
    await this.#retain(maxBytes - bytes)
    while (this.#totalBytes() + bytes > maxBytes && whenFull === 'drop-oldest' && this.#segments.length > 1) {
      const [oldest, second] = this.#segments as [Segment, Segment]
      this.#dropped += Math.max(0, second.first - Math.max(oldest.first, this.#passed() + 1))
      await this.#deleteOldest()
    }
    if (this.#totalBytes() + bytes > maxBytes && (whenFull === 'refuse' || this.#segments.length > 1)) {
      throw new LogFullError(directory, `it holds ${this.#totalBytes()} of ${maxBytes} bytes that wait to be applied`)
    }
  }

  // Deletes whole segments that every consumer passed, oldest first, down to the bounds. The active one stays.
  async #retain(downTo = this.#options.retainBytes): Promise<void> {
    const { clock, retainMs } = this.#options
    for (;;) {
      const [oldest, second] = this.#segments
      if (!oldest || !second || second.first - 1 > this.#passed()) return
      if (this.#totalBytes() <= downTo && clock.now() - oldest.createdAt <= retainMs) return
      await this.#deleteOldest()
    }
  }

  async #deleteOldest(): Promise<void> {
    const oldest = this.#segments.shift()
    if (oldest) await this.#options.disk.remove(oldest.path)
  }

  /** The index that every consumer has passed; without consumers nothing waits. */
  #passed(): number {
    return this.#checkpoints.size === 0 ? this.#synced : Math.min(...this.#checkpoints.values())
  }

  #totalBytes(): number {
    return this.#segments.reduce((sum, segment) => sum + segment.bytes, 0)
  }

  #segmentOf(index: number): Segment | undefined {
    return this.#segments.findLast((segment) => segment.first <= index) ?? this.#segments[0]
  }

  /** last index of the segment that is synced now */
  #endOf(segment: Segment): number {
    const following = this.#segments[this.#segments.indexOf(segment) + 1]
    return following ? following.first - 1 : this.#synced
  }

  async #readSegment(segment: Segment): Promise<Buffer | undefined> {
    const good = segment.bytes
    try {
      return (await this.#options.disk.read(segment.path)).subarray(0, good)
    } catch (error) {
      // Deleted while we read, because everybody had passed it or it was dropped and counted.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  #report(
    segment: { readonly name: string },
    item: { kind: 'damaged' | 'torn'; offset: number; bytes: number; index?: number | undefined },
  ) {
    const place = `${segment.name}:${item.offset}`
    if (this.#reported.has(place) || this.#reported.size > 10_000) return
    this.#reported.add(place)
    if (item.kind === 'torn') this.#tornBytes += item.bytes
    else {
      this.#damagedPlaces++
      this.#damagedBytes += item.bytes
    }
    const { kind, offset, bytes, index } = item
    this.#onDamage?.({ kind, segment: segment.name, offset, bytes, index })
  }

  #writeError(error: unknown): LogFullError | LogWriteError {
    const { directory } = this.#options
    if (isDiskFull(error))
      return new LogFullError(directory, 'no space left on the disk; make room there', { cause: error })
    return new LogWriteError(directory, error instanceof Error ? error.message : String(error), { cause: error })
  }
}

/** @throws as SegmentLog.open */
export const openLog = (options: SegmentLogOptions): Promise<Log> => SegmentLog.open(options)

interface ReadCheckpoint {
  readonly index: number
  /** `sealed` by a checksum; `unsealed` as builds without one wrote it */
  readonly trust: 'sealed' | 'unsealed' | 'damaged'
  readonly bytes: number
}

async function readCheckpoints(
  disk: Disk,
  directory: string,
  names: readonly string[],
  log: string,
): Promise<Map<string, ReadCheckpoint>> {
  const checkpoints = new Map<string, ReadCheckpoint>()
  for (const name of names.filter((name) => name.endsWith(CHECKPOINT))) {
    const consumer = name.slice(0, -CHECKPOINT.length)
    const text = (await disk.read(join(directory, name))).toString()
    checkpoints.set(consumer, { ...decodeCheckpoint(text, { log, consumer }), bytes: text.length })
  }
  return checkpoints
}

// The checksum covers whose it is too: a file that was copied from another log, or to another consumer, means nothing here.
const sealOf = ({ log, consumer, index }: { log: string; consumer: string; index: number }): string =>
  crc32c(Buffer.from(`${log} ${consumer} ${index}`))
    .toString(16)
    .padStart(8, '0')

const encodeCheckpoint = (checkpoint: { log: string; consumer: string; index: number }): string =>
  `{"index":${checkpoint.index},"crc":"${sealOf(checkpoint)}"}\n`

function decodeCheckpoint(text: string, of: { log: string; consumer: string }): Omit<ReadCheckpoint, 'bytes'> {
  const [, digits, seal] = /^\{"index":(-1|\d+)(?:,"crc":"([0-9a-f]{8})")?\}\n$/.exec(text) ?? []
  const index = Number(digits ?? Number.NaN)
  if (!Number.isSafeInteger(index)) return { index: -1, trust: 'damaged' }
  if (seal === undefined) return { index, trust: 'unsealed' }
  return seal === sealOf({ ...of, index }) ? { index, trust: 'sealed' } : { index: -1, trust: 'damaged' }
}

async function readId(disk: Disk, directory: string, names: readonly string[]): Promise<string | undefined> {
  if (!names.includes('id')) return undefined
  const id = (await disk.read(join(directory, 'id'))).toString().trim()
  return /^[0-9a-f-]{36}$/.test(id) ? id : undefined
}
