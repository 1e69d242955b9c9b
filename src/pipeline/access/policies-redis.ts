import { type Clock, FleetError, systemClock } from '#model'
import { closeRedis, NO_CONNECTION, type Redis, type RedisConnection, redisClient, redisUnavailable } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { readStoredPolicy } from './document.ts'
import { PoliciesUnavailableError } from './errors.ts'
import { Listeners } from './listeners.ts'
import { CHANGES_CHANNEL } from './redis-layout.ts'
import { PoliciesBrokenError, RedisPolicyReader } from './redis-reader.ts'
import { RedisPolicyWriter } from './redis-writer.ts'
import type { PolicyDocument, PolicyGeneration, PolicySource, PolicyWriter } from './types.ts'

type Status = Readonly<Record<string, unknown>>

export interface RedisPoliciesOptions {
  readonly connection: RedisConnection
  /**
   * how often all documents are compared, ms; default 1.5 s. Bounds how long a change by somebody who neither counts nor
   * announces it goes unseen; our own writers are seen at once.
   */
  readonly checkEveryMs?: number
  /**
   * takes policies as an original manager writes them, without a generation: nothing then proves that they are complete.
   * Default no: without the counter of our writers nobody is answered
   */
  readonly takesUncounted?: boolean
  readonly clock?: Clock
  readonly logger?: Logger
}

/** Looks caused by announcements keep this distance, ms: a thousand changes in a row are a few looks. */
const CALM_MS = 50
/** While Redis is away. */
const RETRY_MS = 250
/** A question that is not answered by then has failed: better a clear refusal than a page that hangs. */
const ANSWER_MS = 3_000

/**
 * Policies in a shared Redis, in the documented layout: read by every API, written by the leading manager.
 *
 *   never read ─▶ verified ◀─▶ lost        lost: no connection, no policies written yet, or one that cannot be read
 *
 * Each `current` asks for the counter of our writers; all documents are compared besides where an announcement says that
 * somebody wrote, and at least every `checkEveryMs`. It comes back by itself.
 */
export class RedisPolicies implements PolicySource, PolicyWriter, AsyncDisposable {
  readonly #options: Required<Omit<RedisPoliciesOptions, 'connection'>> & Pick<RedisPoliciesOptions, 'connection'>
  readonly #redis: Redis
  readonly #subscriber: Redis
  readonly #reader: RedisPolicyReader
  readonly #writer: RedisPolicyWriter
  readonly #listeners = new Listeners()
  readonly #lostListeners = new Listeners()
  readonly #closing = new AbortController()
  #loop: Promise<void> | undefined
  #wake: (() => void) | undefined
  /** announcements heard, and how many of them the last comparison covers */
  #announced = 0
  #covered = -1
  /** ms of the monotonic clock: begin of the last comparison of all documents, and of the last question answered */
  #comparedAt = Number.NEGATIVE_INFINITY
  #verifiedAt = Number.NEGATIVE_INFINITY
  #question: Promise<PolicyGeneration> | undefined
  #comparing: Promise<PolicyGeneration> | undefined
  #nextComparison: Promise<PolicyGeneration> | undefined
  #trouble: string | undefined = 'they were not read yet'

  private constructor(options: RedisPoliciesOptions) {
    const { connection, checkEveryMs = 1_500, clock = systemClock, logger = silentLogger } = options
    const { takesUncounted = false } = options
    this.#options = { connection, checkEveryMs, takesUncounted, clock, logger }
    const reading = { ...connection, commandTimeoutMs: Math.min(connection.commandTimeoutMs ?? ANSWER_MS, ANSWER_MS) }
    this.#redis = redisClient(reading, (reason) => this.#lost(reason))
    this.#subscriber = redisClient(reading, (reason) => {
      logger.debug({ reason }, 'announcements of policy changes are not heard')
    })
    this.#reader = new RedisPolicyReader(this.#redis, readStoredPolicy, takesUncounted)
    this.#writer = new RedisPolicyWriter(this.#options, () => this.#lostListeners.tell())
  }

  /** Begins with a first look, no longer than the timeouts of the connection. Redis may be away: then nobody is answered yet. */
  static async open(options: RedisPoliciesOptions): Promise<RedisPolicies> {
    const policies = new RedisPolicies(options)
    await policies.#start()
    return policies
  }

  current(signal?: AbortSignal): Promise<PolicyGeneration> {
    // Asked in the next turn of the event loop, so that whoever calls in this one shares the question.
    this.#question ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      this.#question = undefined
      return this.#ask()
    })
    return signal ? orAborted(this.#question, signal) : this.#question
  }

  latest(maxAgeMs: number): PolicyGeneration {
    const { loaded } = this.#reader
    const ageMs = Math.round(performance.now() - this.#verifiedAt)
    if (!loaded || !(ageMs <= maxAgeMs))
      throw new PoliciesUnavailableError(this.#trouble ?? `the last look is ${ageMs} ms old`)
    return loaded.generation
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  onLost(listener: () => void): () => void {
    return this.#lostListeners.add(listener)
  }

  put(document: PolicyDocument, status: Status): Promise<void> {
    return this.#writer.put(document, status)
  }

  remove(key: string): Promise<void> {
    return this.#writer.remove(key)
  }

  putStatus(key: string, status: Status): Promise<void> {
    return this.#writer.putStatus(key, status)
  }

  resync(
    policies: readonly { readonly document: PolicyDocument; readonly status: Status }[],
  ): Promise<readonly string[]> {
    return this.#writer.resync(policies)
  }

  async stored(key: string): Promise<PolicyDocument | undefined> {
    const text = await this.#writer.text(key)
    if (text === undefined) return undefined
    const { document, faults } = readStoredPolicy(key, text)
    return faults.length === 0 ? document : undefined
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    this.#wake?.()
    await Promise.all([closeRedis(this.#redis), closeRedis(this.#subscriber), this.#writer[Symbol.asyncDispose]()])
    await this.#loop
  }

  async #start(): Promise<void> {
    this.#redis.on('ready', () => this.#hear())
    this.#subscriber.on('message', () => this.#hear())
    this.#subscriber.on('ready', () => {
      const { logger } = this.#options
      this.#subscriber.subscribe(CHANGES_CHANNEL).then(
        () => this.#hear(), // something may have been missed before
        (error: unknown) => logger.debug({ error: redisUnavailable(error).message }, 'no announcements are heard'),
      )
    })
    this.#subscriber.connect().catch(() => undefined) // told to its trouble listener; it goes on trying
    await this.#redis.connect().catch((error: unknown) => this.#lost(redisUnavailable(error).reason))
    await this.#compare().catch(() => undefined) // kept as trouble; the loop goes on
    this.#loop = this.#watch()
  }

  #hear(): void {
    this.#announced++
    this.#wake?.()
  }

  async #watch(): Promise<void> {
    const { clock, checkEveryMs } = this.#options
    const { signal } = this.#closing
    while (!signal.aborted) {
      if (this.#announced === this.#covered) await this.#sleep(checkEveryMs)
      if (signal.aborted) return
      // A failure is kept as trouble, and told.
      const isRead = await this.#compare().then(
        () => true,
        () => false,
      )
      await clock.sleep(isRead ? CALM_MS : RETRY_MS, signal)
    }
  }

  async #sleep(ms: number): Promise<void> {
    const awake = new AbortController()
    this.#wake = () => awake.abort()
    await this.#options.clock.sleep(ms, awake.signal)
    this.#wake = undefined
  }

  async #ask(): Promise<PolicyGeneration> {
    const began = performance.now()
    const { loaded } = this.#reader
    // The loop compares in time; where it is late, whoever asks does it.
    const isCompared = this.#announced === this.#covered && began - this.#comparedAt <= this.#options.checkEveryMs
    if (!loaded || !isCompared) return this.#compare()
    const counter = await this.#reader.counter().catch((error: unknown) => this.#fail(error))
    const now = this.#reader.loaded
    if (!now || counter !== now.counter || this.#announced !== this.#covered) return this.#compare()
    this.#found(began, false)
    return now.generation
  }

  /** All documents, as they are after this call began; calls that come while one runs share the one after it. */
  #compare(): Promise<PolicyGeneration> {
    const running = this.#comparing
    if (!running) {
      const comparing = this.#load().finally(() => {
        this.#comparing = undefined
      })
      this.#comparing = comparing
      return comparing
    }
    this.#nextComparison ??= running
      .catch(() => undefined) // told to those who asked for it
      .then(() => {
        this.#nextComparison = undefined
        return this.#compare()
      })
    return this.#nextComparison
  }

  async #load(): Promise<PolicyGeneration> {
    const began = performance.now()
    const announced = this.#announced
    const mark = this.#writer.mark()
    const before = this.#reader.loaded
    const loaded = await this.#reader.load().catch((error: unknown) => this.#fail(error))
    this.#covered = announced
    this.#comparedAt = began
    const isChanged = before?.digest !== loaded.digest
    const isUncounted = loaded.counter === undefined && this.#writer.hasWrittenAll
    if (isUncounted || this.#writer.contradicts(mark, this.#reader.digests)) this.#lostListeners.tell()
    this.#found(began, isChanged)
    return loaded.generation
  }

  #found(began: number, isChanged: boolean): void {
    const wasLost = this.#trouble !== undefined
    this.#trouble = undefined
    this.#verifiedAt = Math.max(this.#verifiedAt, began)
    if (wasLost) this.#options.logger.info({}, 'access policies are read from Redis')
    if (wasLost || isChanged) this.#listeners.tell()
  }

  /** Whatever went wrong: nobody is answered, and the first telling reason is given. */
  #fail(error: unknown): never {
    const failure = error instanceof PoliciesUnavailableError ? error : unforeseen(error)
    this.#lost(failure.reason)
    if (failure instanceof PoliciesBrokenError && this.#writer.hasWrittenAll) this.#lostListeners.tell()
    const why = this.#trouble
    if (why === undefined || why === failure.reason) throw failure
    throw new PoliciesUnavailableError(`Redis is not available: ${why}`, { cause: error })
  }

  #lost(reason: string): void {
    if (this.#closing.signal.aborted) return
    const wasLost = this.#trouble !== undefined
    // The first reason says more than those that follow from it.
    if (!wasLost || !reason.endsWith(NO_CONNECTION)) this.#trouble = reason
    if (wasLost) return
    this.#options.logger.warn({ reason }, 'access policies cannot be read from Redis')
    this.#listeners.tell()
  }
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

const unforeseen = (error: unknown) => new PoliciesUnavailableError(FleetError.from(error).message, { cause: error })
