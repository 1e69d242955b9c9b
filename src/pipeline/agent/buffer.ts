import { join } from 'node:path'
import { type Clock, inRanges, missingFrom, rangesOf, type SequenceRange, systemClock } from '#model'
import { type Log, type LogDamage, type Logger, type LogOptions, openLog, silentLogger } from '#runtime'
import { type Monotonic, systemMonotonic } from './boot.ts'
import { type BatchRecord, type BufferRecord, decodeRecord, encodeRecord } from './buffer-record.ts'
import { Ledger } from './ledger.ts'
import { type Declared, declare, type Held, merge, thin } from './thinning.ts'

export interface BufferOptions {
  /** made where missing; one process at a time */
  readonly directory: string
  /** of everything that is kept; three quarters at full resolution, a quarter thinned. Default 1 GiB */
  readonly maxBytes?: number
  /** what is older is thinned, and dropped at ten times this age, ms; default 24 h */
  readonly maxAgeMs?: number
  /** thinned, one batch is kept per this time, ms; default 5 min */
  readonly keptEveryMs?: number
  /** batches that the disk does not take stay in memory up to this many bytes; default 8 MiB */
  readonly memoryBytes?: number
  readonly clock?: Clock
  readonly monotonic?: Monotonic
  readonly logger?: Logger
  readonly disk?: LogOptions['disk']
}

export interface BufferStats {
  /** batches that await their ack, and their bytes as kept */
  readonly batches: number
  readonly bytes: number
  /** declarations of losses that await theirs */
  readonly losses: number
  /** collection time of the oldest batch; undefined where none waits */
  readonly oldestAt: number | undefined
  /** batches declared lost since the buffer was made */
  readonly lostBatches: number
  /** batches that are in memory only, because the disk does not take them */
  readonly memoryBatches: number
  /** damaged places found since the start */
  readonly damagedPlaces: number
  /** why the disk does not take batches; undefined while it does */
  readonly fault: string | undefined
}

interface Entry extends Held {
  readonly bytes: number
  /** of the same boot as we: its age is known by the clock that does not jump */
  readonly stamp: number | undefined
  /** of a declaration: what it covers */
  readonly lost: readonly SequenceRange[]
  place: { readonly log: 'recent' | 'thinned'; readonly index: number } | { readonly record: BufferRecord }
}

interface Reader {
  readonly records: AsyncGenerator<{ readonly index: number; readonly payload: Buffer }>
  /** index of the last record that was read */
  at: number
}

const CONSUMER = 'acked'
/** At the age bound a stretch is thinned at once, and declared at once. */
const STRETCH = 24
/** Every read holds one segment in memory. */
const MAX_SEGMENT_BYTES = 2 * 2 ** 20
const MEMORY_BYTES = 8 * 2 ** 20
/** what a segment log takes, with room for the head of a record */
const MAX_RECORD_BYTES = 31 * 2 ** 20

/**
 * Batches from their collection to their ack, on disk. Sequences rise by one, across restarts, and never repeat; each ends
 * acknowledged or covered by a declared loss, which is kept and sent like a batch.
 *
 *   recent (all)  ── too old, too many ──▶  thinned (one per 5 min)  ── too old, too many ──▶  dropped
 *        └── Loss thinned ──▶ recent              └── Loss dropped ──▶ recent
 *
 * A batch that the disk does not take stays in memory. What was given out and is found nowhere is declared damaged.
 */
export class BatchBuffer implements AsyncDisposable {
  readonly #options: Required<Omit<BufferOptions, 'disk'>>
  readonly #logs: { readonly recent: Log; readonly thinned: Log }
  readonly #ledger: Ledger
  readonly #segmentBytes: number
  // In the order of sequences: new ones come last, and one that moves keeps its place.
  readonly #entries = new Map<number, Entry>()
  readonly #readers = new Map<'recent' | 'thinned', Reader>()
  #turns: Promise<unknown> = Promise.resolve()
  #inFlight: (sequence: number) => boolean = () => false
  #busy = 0
  #batches = 0
  #bytes = 0
  #memoryBytes = 0
  #memoryBatches = 0
  #fault: string | undefined
  #dirty = false

  private constructor(
    options: Required<Omit<BufferOptions, 'disk'>>,
    logs: { readonly recent: Log; readonly thinned: Log },
    ledger: Ledger,
    segmentBytes: number,
  ) {
    this.#options = options
    this.#logs = logs
    this.#ledger = ledger
    this.#segmentBytes = segmentBytes
  }

  /**
   * Reads what is there; linear in its bytes. Losses found here are declared at once.
   * @throws DirectoryLockedError while another process has it; the system's error where the directory cannot be used
   */
  static async open({ disk, ...given }: BufferOptions): Promise<BatchBuffer> {
    const options = {
      maxBytes: 2 ** 30,
      maxAgeMs: 24 * 3_600_000,
      keptEveryMs: 5 * 60_000,
      memoryBytes: MEMORY_BYTES,
      clock: systemClock,
      monotonic: systemMonotonic(),
      logger: silentLogger,
      ...given,
    }
    const { directory, maxBytes, clock, logger } = options
    const segmentBytes = Math.min(MAX_SEGMENT_BYTES, Math.ceil(maxBytes / 32))
    const open = (name: string, bytes: number) =>
      openLog({
        directory: join(directory, name),
        segmentBytes,
        retainBytes: 0,
        retainMs: 0,
        startsFull: true,
        maxBytes: bytes,
        maxQueuedBytes: Math.max(bytes, 64 * 2 ** 20),
        clock,
        ...(disk && { disk }),
        onDamage: (damage: LogDamage) =>
          logger.error(damage, 'a place of the buffer is damaged; what was there is declared lost'),
      })
    const opened: AsyncDisposable[] = []
    const keep = async <T extends AsyncDisposable>(opening: Promise<T>): Promise<T> => {
      const one = await opening
      opened.unshift(one)
      return one
    }
    try {
      // Its bound is above ours: we make room before it is reached.
      const recent = await keep(open('recent', maxBytes))
      const thinned = await keep(open('thinned', maxBytes))
      const ledger = await keep(Ledger.open(join(directory, 'recent', 'ledger')))
      const buffer = new BatchBuffer(options, { recent, thinned }, ledger, segmentBytes)
      await buffer.#load()
      return buffer
    } catch (error) {
      for (const one of opened) await one[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Names the numbering: the origin of every batch from here. */
  get origin(): string {
    return this.#logs.recent.id
  }

  /** the highest sequence that was given out; 0 before the first */
  get newest(): number {
    return this.#ledger.used
  }

  /** the lowest sequence that awaits its ack; 0 where none does */
  get oldest(): number {
    return this.#entries.keys().next().value ?? 0
  }

  /** Told which sequences are on their way: they are not thinned out. */
  set inFlight(isInFlight: (sequence: number) => boolean) {
    this.#inFlight = isInFlight
  }

  stats(): BufferStats {
    let oldestAt: number | undefined
    for (const entry of this.#entries.values()) {
      if (entry.kind === 'loss') continue
      oldestAt = entry.collectedAt
      break
    }
    const damage = [this.#logs.recent.stats(), this.#logs.thinned.stats()]
    return {
      batches: this.#batches,
      bytes: this.#bytes,
      losses: this.#entries.size - this.#batches,
      oldestAt,
      lostBatches: this.#ledger.lostBatches,
      memoryBatches: this.#memoryBatches,
      damagedPlaces: damage.reduce((sum, { damagedPlaces }) => sum + damagedPlaces, 0),
      fault: this.#fault,
    }
  }

  /**
   * Keeps a batch and gives it the next sequence. Resolves when it is on disk, or, where the disk does not take it, in
   * memory. Never rejects for a full disk; a batch above an eighth of the buffer is declared lost (`has` is false).
   */
  append(
    batch: Omit<BatchRecord, 'kind' | 'sequence' | 'stamp' | 'bootId'> & { readonly stamp: number },
  ): Promise<BatchRecord> {
    return this.#exclusive(async () => {
      const sequence = this.#ledger.used + 1
      const record: BatchRecord = { kind: 'batch', ...batch, bootId: this.#options.monotonic.bootId, sequence }
      this.#ledger.use(sequence)
      if (record.body.length > this.#maxRecordBytes) {
        // It would never find a place: said at once, so that nothing waits behind it.
        await this.#declare(declare([record], 'dropped'))
        return record
      }
      await this.#makeRoom(record.body.length + 128)
      await this.#put(record)
      await this.#save()
      return record
    })
  }

  /** The oldest that awaits its ack and is not skipped. A record that turns out damaged is declared and left out. */
  next(skip: (sequence: number) => boolean): Promise<BufferRecord | undefined> {
    return this.#exclusive(async () => {
      for (const entry of this.#entries.values()) {
        if (skip(entry.sequence)) continue
        const record = await this.#read(entry)
        if (record) return record
        this.#forget(entry)
        await this.#declare(declare([entry], 'damaged'))
      }
      this.#readers.clear() // nothing is read from the middle of a segment any more
      return undefined
    })
  }

  /** one that awaits its ack, by its sequence; undefined where it is settled or damaged */
  get(sequence: number): Promise<BufferRecord | undefined> {
    return this.#exclusive(async () => {
      const entry = this.#entries.get(sequence)
      return entry && this.#read(entry)
    })
  }

  /** the disk is being read or written */
  get isBusy(): boolean {
    return this.#busy > 0
  }

  has(sequence: number): boolean {
    return this.#entries.has(sequence)
  }

  /**
   * These are safe on the hub. Forgotten at once in memory; on disk soon (`flush`), since a repeat does no harm there.
   * Sequences we never gave out are never given out either.
   */
  settle(ranges: Iterable<SequenceRange>): void {
    for (const [first, last] of ranges) {
      if (!(Number.isSafeInteger(first) && Number.isSafeInteger(last) && first >= 1)) continue
      this.#ledger.use(last)
      const far = last - first > this.#entries.size
      const found = far
        ? [...this.#entries.values()].filter(({ sequence }) => sequence >= first && sequence <= last)
        : Array.from({ length: last - first + 1 }, (_, i) => this.#entries.get(first + i)).filter(
            (entry) => entry !== undefined,
          )
      for (const entry of found) {
        this.#forget(entry)
        for (const range of entry.lost) this.#ledger.settle(range)
      }
      this.#ledger.settle([first, last])
      this.#dirty = true
    }
  }

  /** A batch that the hub will never take: declared lost instead. A declaration that it does not take is settled. */
  refuse(sequence: number): Promise<void> {
    return this.#exclusive(async () => {
      const entry = this.#entries.get(sequence)
      if (!entry) return
      this.#forget(entry)
      if (entry.kind === 'loss')
        for (const range of [[sequence, sequence] as const, ...entry.lost]) this.#ledger.settle(range)
      else await this.#declare(declare([entry], 'damaged'))
      await this.#save()
    })
  }

  /** Makes what was settled durable, gives its disk free, and writes what so far is only in memory. */
  flush(): Promise<void> {
    return this.#exclusive(async () => {
      if (this.#memoryBytes > 0 && (await this.#writeMemory())) this.#dirty = true
      await this.#makeRoom(0)
      if (!this.#dirty) return
      this.#dirty = false
      await this.#save()
      await this.#release()
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.flush()
    await this.#turns
    await this.#ledger[Symbol.asyncDispose]()
    await this.#logs.thinned[Symbol.asyncDispose]()
    await this.#logs.recent[Symbol.asyncDispose]()
  }

  get #maxRecordBytes(): number {
    return Math.min(MAX_RECORD_BYTES, this.#options.maxBytes / 8)
  }

  #exclusive<T>(action: () => Promise<T>): Promise<T> {
    this.#busy++
    const turn = this.#turns.then(action).finally(() => this.#busy--)
    this.#turns = turn.catch(() => undefined) // whoever asked hears of it; the next turn is independent
    return turn
  }

  async #load(): Promise<void> {
    const found: Entry[] = []
    const lost: SequenceRange[] = []
    const known = new Set<number>()
    for (const log of ['thinned', 'recent'] as const) {
      for await (const { index, payload } of this.#logs[log].read(this.#logs[log].checkpoint(CONSUMER) + 1)) {
        const record = decodeRecord(payload)
        if (!record || known.has(record.sequence) || inRanges(this.#ledger.settled, record.sequence)) continue
        known.add(record.sequence)
        found.push(this.#entryOf(record, payload.length, { log, index }))
        this.#ledger.use(record.sequence)
        if (record.kind === 'loss') lost.push(...record.loss.lost)
      }
    }
    found.sort((a, b) => a.sequence - b.sequence)
    const declared = rangesOf(lost)
    // A declaration that was written before its batches were given free wins over them.
    for (const entry of found) if (!inRanges(declared, entry.sequence)) this.#hold(entry)
    const held = found.map(({ sequence }): SequenceRange => [sequence, sequence])
    const explained = rangesOf([...this.#ledger.settled, ...declared, ...held])
    const missing = missingFrom(explained, [1, this.#ledger.used])
    if (missing.length > 0) await this.#declare(this.#damaged(missing, found))
    this.#dirty = true
  }

  /** When exactly is not known any more: from the batch before to the batch after. */
  #damaged(missing: readonly SequenceRange[], found: readonly Held[]): Declared {
    const first = missing[0]?.[0] ?? 0
    const last = missing.at(-1)?.[1] ?? 0
    const before = found.findLast(({ sequence }) => sequence < first)?.collectedAt
    const after = found.find(({ sequence }) => sequence > last)?.collectedAt
    const now = this.#options.clock.now()
    return {
      lost: missing,
      from: before ?? after ?? now,
      to: after ?? Math.max(before ?? now, now),
      cause: 'damaged',
      count: missing.reduce((sum, [from, to]) => sum + to - from + 1, 0),
      keptEveryMs: 0,
    }
  }

  #entryOf(record: BufferRecord, bytes: number, place: Entry['place']): Entry {
    const { sequence, kind } = record
    const sameBoot = kind === 'batch' && record.bootId === this.#options.monotonic.bootId
    return {
      sequence,
      kind,
      collectedAt: kind === 'batch' ? record.collectedAt : record.loss.from,
      bytes,
      stamp: sameBoot ? record.stamp : undefined,
      lost: kind === 'loss' ? record.loss.lost : [],
      ...(kind === 'batch' && record.lane !== undefined && { lane: record.lane }),
      place,
    }
  }

  #hold(entry: Entry): void {
    this.#entries.set(entry.sequence, entry)
    if (entry.kind === 'batch') {
      this.#batches++
      this.#bytes += entry.bytes
    }
    if ('record' in entry.place) {
      this.#memoryBytes += entry.bytes
      if (entry.kind === 'batch') this.#memoryBatches++
    }
  }

  #forget(entry: Entry): void {
    this.#entries.delete(entry.sequence)
    if (entry.kind === 'batch') {
      this.#batches--
      this.#bytes -= entry.bytes
    }
    this.#leaveMemory(entry)
    this.#dirty = true
  }

  #leaveMemory(entry: Entry): void {
    if (!('record' in entry.place)) return
    this.#memoryBytes -= entry.bytes
    if (entry.kind === 'batch') this.#memoryBatches--
  }

  /** On disk where that works, else in memory, within its bound. */
  async #put(record: BufferRecord): Promise<void> {
    const bytes = encodeRecord(record)
    if (this.#memoryBytes === 0 || (await this.#writeMemory())) {
      const index = await this.#append('recent', bytes)
      if (index !== undefined) return this.#hold(this.#entryOf(record, bytes.length, { log: 'recent', index }))
    }
    this.#hold(this.#entryOf(record, bytes.length, { record }))
    this.#boundMemory()
  }

  /** @returns undefined where the disk did not take it; `stats` tells why */
  async #append(log: 'recent' | 'thinned', bytes: Buffer): Promise<number | undefined> {
    try {
      const index = await this.#logs[log].append(bytes)
      if (this.#fault !== undefined) this.#options.logger.info({}, 'the disk takes batches again')
      this.#fault = undefined
      return index
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      if (this.#fault === undefined)
        this.#options.logger.error({ err: error }, 'the disk takes no batches; they stay in memory')
      this.#fault = why
      return undefined
    }
  }

  /** @returns whether nothing is in memory any more */
  async #writeMemory(): Promise<boolean> {
    for (const entry of this.#entries.values()) {
      if (!('record' in entry.place)) continue
      const index = await this.#append('recent', encodeRecord(entry.place.record))
      if (index === undefined) return false
      this.#leaveMemory(entry)
      entry.place = { log: 'recent', index }
    }
    return true
  }

  // The oldest in memory go first; one declaration covers all that went.
  #boundMemory(): void {
    const dropped: Entry[] = []
    for (const entry of this.#entries.values()) {
      if (this.#memoryBytes <= this.#options.memoryBytes) break
      if (!('record' in entry.place) || entry.kind === 'loss' || this.#inFlight(entry.sequence)) continue
      this.#forget(entry)
      dropped.push(entry)
    }
    if (dropped.length === 0) return
    const lost = declare(dropped, 'dropped')
    this.#ledger.lostBatches += lost.count
    const former = [...this.#entries.values()].find((entry) => this.#isUnsentLoss(entry))
    if (former && 'record' in former.place && former.place.record.kind === 'loss') {
      const { sequence, loss } = former.place.record
      this.#forget(former)
      this.#holdLoss(sequence, merge([loss, lost]))
    } else {
      const sequence = this.#ledger.used + 1
      this.#ledger.use(sequence)
      this.#holdLoss(sequence, lost)
    }
  }

  #isUnsentLoss(entry: Entry): boolean {
    return entry.kind === 'loss' && 'record' in entry.place && !this.#inFlight(entry.sequence)
  }

  #holdLoss(sequence: number, loss: Declared): void {
    const record: BufferRecord = { kind: 'loss', sequence, loss: { sequence, ...loss } }
    this.#hold(this.#entryOf(record, encodeRecord(record).length, { record }))
  }

  async #declare(loss: Declared): Promise<void> {
    const sequence = this.#ledger.used + 1
    this.#ledger.use(sequence)
    this.#ledger.lostBatches += loss.count
    const { cause, count, from, to } = loss
    this.#options.logger.warn({ cause, count, from, to }, 'batches are lost, and declared so')
    await this.#put({ kind: 'loss', sequence, loss: { sequence, ...loss } })
    await this.#save()
  }

  async #save(): Promise<void> {
    try {
      await this.#ledger.save()
    } catch (error) {
      this.#dirty = true
      if (this.#fault === undefined)
        this.#options.logger.error({ err: error }, 'the ledger of the buffer could not be written')
      this.#fault ??= error instanceof Error ? error.message : String(error)
    }
  }

  /** Lets the logs delete what lies before the oldest that awaits its ack. */
  async #release(): Promise<void> {
    if (!this.#ledger.fits) return
    for (const name of ['thinned', 'recent'] as const) {
      const log = this.#logs[name]
      let upTo = log.lastIndex()
      for (const { place } of this.#entries.values()) {
        if (!('index' in place) || place.log !== name) continue
        upTo = place.index - 1
        break
      }
      await log.setCheckpoint(CONSUMER, upTo).catch((error: unknown) => {
        this.#dirty = true
        this.#options.logger.error({ err: error, log: name }, 'the buffer could not note what is acknowledged')
      })
    }
  }

  async #makeRoom(bytes: number): Promise<void> {
    const { maxBytes, maxAgeMs } = this.#options
    const oldest = this.#oldestIn('recent')
    if (oldest && this.#ageOf(oldest) > maxAgeMs) {
      await this.#thin((entry) => this.#ageOf(entry) > maxAgeMs - maxAgeMs / STRETCH)
    }
    while (this.#logs.recent.stats().bytes + bytes > maxBytes * 0.75) {
      // What is acknowledged goes first; only then is anything thinned.
      const before = this.#logs.recent.stats().bytes
      await this.#saveAndRelease()
      if (this.#logs.recent.stats().bytes + bytes <= maxBytes * 0.75) return
      let taken = 0
      const some = await this.#thin((entry) => {
        const takes = taken < this.#segmentBytes
        taken += entry.bytes + 24
        return takes
      })
      if (!some && this.#logs.recent.stats().bytes >= before) return
    }
  }

  async #saveAndRelease(): Promise<void> {
    await this.#save()
    await this.#release()
  }

  /** Moves what is kept of the oldest, while `takes` says so, and declares the others. @returns whether there were any */
  async #thin(takes: (entry: Entry) => boolean): Promise<boolean> {
    const { keptEveryMs } = this.#options
    const oldest: Entry[] = []
    const former = new Map<number, Entry>()
    for (const entry of this.#entries.values()) {
      if (!('index' in entry.place)) continue
      if (entry.place.log === 'thinned') {
        if (entry.kind === 'batch') former.set(entry.lane ?? 0, entry)
        continue
      }
      if (!takes(entry)) break
      oldest.push(entry)
    }
    if (oldest.length === 0) return false
    const { kept, lost } = thin(oldest, keptEveryMs, this.#inFlight, [...former.values()])
    const damaged: Entry[] = []
    for (const entry of kept) {
      const record = await this.#read(entry)
      if (record) {
        const bytes = encodeRecord(record)
        await this.#makeThinnedRoom(bytes.length + 24)
        const index = await this.#append('thinned', bytes)
        if (index === undefined) return false // the disk is full: nothing is given up before its place is safe
        entry.place = { log: 'thinned', index }
      } else {
        this.#forget(entry)
        damaged.push(entry)
      }
    }
    // Declared before they are given free: a crash between leaves both, and the declaration wins.
    for (const entry of lost) this.#forget(entry)
    if (lost.length > 0) await this.#declare(declare(lost, 'thinned', keptEveryMs))
    if (damaged.length > 0) await this.#declare(declare(damaged, 'damaged'))
    await this.#saveAndRelease()
    return true
  }

  async #makeThinnedRoom(bytes: number): Promise<void> {
    const { maxBytes, maxAgeMs } = this.#options
    const isOver = () => this.#logs.thinned.stats().bytes + bytes > maxBytes / 4
    for (let oldest = this.#oldestIn('thinned'); oldest; oldest = this.#oldestIn('thinned')) {
      const isOld = this.#ageOf(oldest) > 10 * maxAgeMs
      if (!isOver() && !isOld) return
      const dropped: Entry[] = []
      const losses: { readonly sequence: number; readonly loss: Declared }[] = []
      let taken = 0
      for (const entry of this.#entries.values()) {
        if (!('index' in entry.place) || entry.place.log !== 'thinned') continue
        if (taken >= this.#segmentBytes) break
        taken += entry.bytes + 24
        const record = entry.kind === 'loss' ? await this.#read(entry) : undefined
        if (record?.kind === 'loss') losses.push(record)
        else dropped.push(entry)
        if (isOld && !isOver()) break
      }
      for (const { sequence } of [...dropped, ...losses]) {
        const entry = this.#entries.get(sequence)
        if (entry) this.#forget(entry)
      }
      const batches = dropped.filter(({ kind }) => kind === 'batch')
      const all = [...losses.map(({ loss }) => loss), ...(batches.length > 0 ? [declare(batches, 'dropped')] : [])]
      const own = [...losses, ...dropped.filter(({ kind }) => kind === 'loss')].map(({ sequence }) => sequence)
      // Its parts were counted when they were declared.
      this.#ledger.lostBatches -= losses.reduce((sum, { loss }) => sum + loss.count, 0)
      if (all.length > 0) await this.#declare(merge(all, own))
      await this.#saveAndRelease()
    }
  }

  #oldestIn(log: 'recent' | 'thinned'): Entry | undefined {
    for (const entry of this.#entries.values()) if ('index' in entry.place && entry.place.log === log) return entry
    return undefined
  }

  #ageOf({ stamp, collectedAt }: Entry): number {
    return stamp === undefined ? this.#options.clock.now() - collectedAt : this.#options.monotonic.now() - stamp
  }

  /** @returns undefined where its bytes are damaged */
  async #read({ place, sequence }: Entry): Promise<BufferRecord | undefined> {
    if ('record' in place) return place.record
    const { log, index } = place
    const known = this.#readers.get(log)
    for (const reader of known && known.at < index ? [known, undefined] : [undefined]) {
      const { records } = reader ?? { records: this.#logs[log].read(index) }
      for (;;) {
        const { value, done } = await records.next()
        if (done === true || value.index > index) break
        if (value.index < index) continue
        this.#readers.set(log, { records, at: index })
        const record = decodeRecord(value.payload)
        return record?.sequence === sequence ? record : undefined
      }
    }
    this.#readers.delete(log)
    return undefined
  }
}
