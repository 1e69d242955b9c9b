import { type Clock, FleetError, StoreUnavailableError, seconds, systemClock } from '#model'
import { backoffMs, Listeners, type Logger, silentLogger } from '#runtime'
import {
  type Command,
  closeRedis,
  NO_CONNECTION,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
} from './redis.ts'
import type { SetLayout } from './set-layout.ts'
import { type Loaded, type ReadDocument, SetBrokenError, SetReader, type Unsealed } from './set-reader.ts'
import { type Resync, SetWriter, type Write } from './set-writer.ts'

/** What a replicated set is read from; durations in ms. */
export interface ReplicatedSetOptions<T> {
  readonly connection: RedisConnection
  readonly layout: SetLayout
  readonly read: ReadDocument<T>
  /**
   * how often all documents are compared, ms. Bounds how long a change by somebody who neither counts nor announces it goes
   * unseen; our own writers are seen at once.
   */
  readonly checkEveryMs: number
  /** default `refused` */
  readonly unsealed?: Unsealed
  /**
   * Reads what lies beside the documents, at the end of each look.
   * @param news what was announced since the last look; undefined: anything may have changed
   */
  readonly lookBeside?: (redis: Redis, loaded: Loaded<T>, news: readonly string[] | undefined) => Promise<void>
  readonly clock?: Clock
  readonly logger?: Logger
}

/** Looks caused by announcements keep this distance, ms: a thousand changes in a row are a few looks. */
const CALM_MS = 50
/** Between looks that fail; an announcement or a connection that comes back ends the wait. */
const RETRY = { fromMs: 250, toMs: seconds(2) }
/** A question that is not answered by then has failed: better a clear refusal than a page that hangs. */
const ANSWER_MS = 3_000
/** Looks of a writer from one at its keys to the next. */
const LOOKS_PER_KEYS = 3
/** Announcements kept for one look; more of them say no more than that anything may have changed. */
const MAX_NEWS = 1_000

/**
 * Documents in a shared Redis that are taken as a whole: written by the leading manager, followed by every other process. A reader
 * has exactly the documents of one generation, or an error: where one is missing, altered or older, the last ones known stay as
 * they were and `unavailable` says why, until a manager has written all of them again.
 *
 *   never read ─▶ verified ◀─▶ lost        lost: no connection, no documents written yet, or others than were written
 *
 * Looks and writes take turns, so that a look sees all or nothing of a write of this process. It comes back by itself.
 */
export class ReplicatedSet<T> implements AsyncDisposable {
  readonly #options: ReplicatedSetOptions<T> & { readonly clock: Clock; readonly logger: Logger }
  readonly #redis: Redis
  readonly #subscriber: Redis
  readonly #reader: SetReader<T>
  readonly #writer: SetWriter
  readonly #listeners = new Listeners()
  readonly #lostListeners = new Listeners()
  readonly #closing = new AbortController()
  #turn: Promise<unknown> = Promise.resolve()
  #loop: Promise<void> | undefined
  #wake: (() => void) | undefined
  /** announcements heard; how many of them the last look that began covers, and the last that succeeded */
  #announced = 0
  #begun = -1
  #covered = -1
  #news: string[] | undefined
  /** ms of the monotonic clock: begin of the last look, and of the last question that was answered */
  #lookedAt = Number.NEGATIVE_INFINITY
  #verifiedAt = Number.NEGATIVE_INFINITY
  #keysAt = Number.NEGATIVE_INFINITY
  #question: Promise<Loaded<T>> | undefined
  #queuedLook: Promise<Loaded<T>> | undefined
  #version = 0
  #trouble: { readonly since: number; readonly reason: string } | undefined

  private constructor(options: ReplicatedSetOptions<T>) {
    const { connection, layout, read, unsealed = 'refused', clock = systemClock, logger = silentLogger } = options
    this.#options = { ...options, clock, logger }
    this.#trouble = { since: clock.now(), reason: 'they were not read yet' }
    const reading = { ...connection, commandTimeoutMs: Math.min(connection.commandTimeoutMs ?? ANSWER_MS, ANSWER_MS) }
    this.#redis = redisClient(reading, (reason) => this.#lost(reason))
    this.#subscriber = redisClient(reading, (reason) =>
      logger.debug({ reason }, `changes of ${layout.what} are not heard`),
    )
    this.#reader = new SetReader(this.#redis, layout, read, unsealed)
    this.#writer = new SetWriter({
      connection,
      layout,
      clock,
      logger,
      newest: () => this.#reader.newest,
      onLost: () => this.#lostListeners.tell(),
    })
  }

  /** Begins with a first look, no longer than the timeouts of the connection. Redis may be away: then nothing is known yet. */
  static async open<T>(options: ReplicatedSetOptions<T>): Promise<ReplicatedSet<T>> {
    const set = new ReplicatedSet(options)
    await set.#start()
    return set
  }

  /** As of now: one question to Redis for all who ask at the same time. @throws StoreUnavailableError */
  current(): Promise<Loaded<T>> {
    // Asked in the next turn of the event loop, so that whoever calls in this one shares the question.
    this.#question ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#question = undefined
      return this.#ask()
    })
    return this.#question
  }

  /** What was loaded last, whatever became of it. */
  get loaded(): Loaded<T> | undefined {
    return this.#reader.loaded
  }

  /** ms since `loaded` was last known to be what Redis holds */
  get ageMs(): number {
    return Math.round(performance.now() - this.#verifiedAt)
  }

  /** Rises with whatever `onChange` tells. */
  get version(): number {
    return this.#version
  }

  /** Undefined while `loaded` is what Redis holds; else since when it may not be (ms), and why. */
  unavailable(): { readonly since: number; readonly reason: string } | undefined {
    return this.#trouble
  }

  /** Called when documents changed, and when they became unavailable or available. */
  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  /** Called where only a resync can help: Redis holds less or something else than this process wrote. */
  onLost(listener: () => void): () => void {
    return this.#lostListeners.add(listener)
  }

  /** @throws StoreUnavailableError: nothing was written, or it is not known */
  write(write: Write): Promise<void> {
    return this.#inTurn(() => this.#writer.write(write))
  }

  /** Makes Redis hold exactly this. @throws StoreUnavailableError: nothing was written, or it is not known */
  resync<R>(resync: Resync<R>): Promise<R> {
    return this.#inTurn(() => this.#writer.resync(resync))
  }

  /** Writes keys beside the documents in one transaction. @throws StoreUnavailableError */
  writeBeside(commands: readonly Command[]): Promise<void> {
    return this.#inTurn(() => this.#writer.beside(commands))
  }

  /** Redis as the writer reaches it, for questions about keys beside the documents. @throws StoreUnavailableError */
  connected(): Promise<Redis> {
    return this.#writer.connected()
  }

  /** At Redis as it is after this call began; calls that come before it begins share it. @throws StoreUnavailableError */
  look(): Promise<Loaded<T>> {
    this.#queuedLook ??= this.#inTurn(() => {
      this.#queuedLook = undefined
      return this.#look()
    })
    return this.#queuedLook
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    this.#wake?.()
    await Promise.all([closeRedis(this.#redis), closeRedis(this.#subscriber), this.#writer[Symbol.asyncDispose]()])
    await this.#loop
    await this.#turn
  }

  #inTurn<R>(work: () => Promise<R>): Promise<R> {
    const turn = this.#turn.then(work)
    this.#turn = turn.catch(() => undefined) // the caller has it; the next in line begins anew
    return turn
  }

  async #start(): Promise<void> {
    const { layout, logger } = this.#options
    this.#redis.on('ready', () => this.#hear(undefined))
    this.#subscriber.on('message', (_, text) => this.#hear(text))
    this.#subscriber.on('ready', () => {
      this.#subscriber.subscribe(layout.channel).then(
        () => this.#hear(undefined), // something may have been missed before
        (error: unknown) =>
          logger.debug({ error: redisUnavailable(error).message }, `changes of ${layout.what} are not heard`),
      )
    })
    this.#subscriber.connect().catch(() => undefined) // its trouble listener has it; it goes on trying
    await this.#redis.connect().catch((error: unknown) => this.#lost(redisUnavailable(error).reason))
    await this.look().catch(() => undefined) // kept as trouble; the loop goes on
    this.#loop = this.#follow()
  }

  /** @param text undefined: something may have been missed */
  #hear(text: string | undefined): void {
    this.#announced++
    if (text === undefined || (this.#news && this.#news.length >= MAX_NEWS)) this.#news = undefined
    else this.#news?.push(text)
    this.#wake?.()
  }

  async #follow(): Promise<void> {
    const { clock, checkEveryMs } = this.#options
    const { signal } = this.#closing
    // The first look was made at the start, and may have failed.
    let failures = this.#trouble ? 1 : 0
    while (!signal.aborted) {
      const pauseMs = failures === 0 ? checkEveryMs : backoffMs(failures - 1, RETRY)
      if (this.#announced === this.#begun) await this.#sleep(pauseMs)
      if (signal.aborted) return
      // A failure is kept as trouble.
      failures = await this.look().then(
        () => 0,
        () => failures + 1,
      )
      await clock.sleep(CALM_MS, signal)
    }
  }

  async #sleep(ms: number): Promise<void> {
    const awake = new AbortController()
    this.#wake = () => awake.abort()
    await this.#options.clock.sleep(ms, awake.signal)
    this.#wake = undefined
  }

  async #ask(): Promise<Loaded<T>> {
    const began = performance.now()
    const { loaded } = this.#reader
    // The loop looks in time; where it is late, the one who asks does it.
    const isRecent = this.#announced === this.#covered && began - this.#lookedAt <= this.#options.checkEveryMs
    if (!loaded || !isRecent) return this.look()
    const generation = await this.#reader.generation().catch((error: unknown) => this.#fail(error))
    const now = this.#reader.loaded
    if (!now || generation !== now.generation || this.#announced !== this.#covered) return this.look()
    this.#found(began, false)
    return now
  }

  async #look(): Promise<Loaded<T>> {
    const began = performance.now()
    const announced = this.#announced
    const news = this.#news
    this.#begun = announced
    this.#news = []
    const before = this.#reader.loaded
    try {
      const loaded = await this.#reader.load()
      await this.#options.lookBeside?.(this.#redis, loaded, news)
      this.#covered = announced
      this.#lookedAt = began
      const isUnsealed = loaded.generation === undefined && this.#writer.hasWrittenAll
      if (isUnsealed || this.#writer.contradicts(loaded.documents) || (await this.#lacksEntries(began)))
        this.#lostListeners.tell()
      this.#found(began, before?.documents !== loaded.documents)
      return loaded
    } catch (error) {
      this.#news = undefined // of this look; the next one has to look at all
      if (error instanceof SetBrokenError && this.#writer.hasWrittenAll) this.#lostListeners.tell()
      return this.#fail(error)
    }
  }

  /** Indexes that only other readers use, among them: nothing of ours would tell that one is gone, or lost a part. */
  async #lacksEntries(now: number): Promise<boolean> {
    if (!this.#writer.hasWrittenAll || now - this.#keysAt < LOOKS_PER_KEYS * this.#options.checkEveryMs) return false
    this.#keysAt = now
    return this.#writer.lacksEntries(this.#redis)
  }

  #found(began: number, isChanged: boolean): void {
    const wasLost = this.#trouble !== undefined
    this.#trouble = undefined
    this.#verifiedAt = Math.max(this.#verifiedAt, began)
    if (wasLost) this.#options.logger.info({}, `${this.#options.layout.what} are read from Redis`)
    if (wasLost || isChanged) this.#changed()
  }

  /** Whatever went wrong: the first telling reason is given. */
  #fail(error: unknown): never {
    const reason = error instanceof StoreUnavailableError ? error.reason : FleetError.from(error).message
    this.#lost(reason)
    throw new StoreUnavailableError('Redis', this.#trouble?.reason ?? reason, { cause: error })
  }

  #lost(reason: string): void {
    if (this.#closing.signal.aborted) return
    const { clock, logger, layout } = this.#options
    const before = this.#trouble
    // The first reason says more than those that follow from it.
    if (before?.reason === reason || (before && reason.endsWith(NO_CONNECTION))) return
    this.#trouble = { since: before?.since ?? clock.now(), reason }
    if (!before) logger.warn({ reason }, `${layout.what} cannot be read from Redis`)
    this.#changed()
  }

  #changed(): void {
    this.#version++
    this.#listeners.tell()
  }
}
