import type { CompiledSource, SourceDefinition } from '#metricsource'
import { type Clock, FleetError, type SourceId, StoreUnavailableError, systemClock } from '#model'
import { closeRedis, NO_CONNECTION, type Redis, type RedisConnection, redisClient, redisUnavailable } from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { type ReadDefinition, readByDefault } from './definition.ts'
import { Listeners } from './listeners.ts'
import { Picture } from './picture.ts'
import { EVENTS_CHANNEL } from './redis-layout.ts'
import { CatalogLostError, RedisCatalogReader } from './redis-reader.ts'
import { RedisCatalogWriter } from './redis-writer.ts'
import type { CatalogWriter, SourceCatalog } from './types.ts'

export interface RedisCatalogOptions {
  readonly connection: RedisConnection
  /** how often Redis is looked at though nothing was heard, ms; default 2 s */
  readonly checkEveryMs?: number
  /** how definitions are read; default: as everywhere */
  readonly read?: ReadDefinition
  /** an original manager writes, which counts no generations and leaves nothing where it has no sources. Default no */
  readonly noneIsEmpty?: boolean
  readonly clock?: Clock
  readonly logger?: Logger
}

/** Looks caused by events keep this distance, ms: a thousand changes in a row are a few looks. */
const CALM_MS = 50
/** While Redis is away. */
const RETRY_MS = 250
/** A question that is not answered by then has failed. */
const ANSWER_MS = 3_000

/**
 * The sources in a shared Redis, in the documented layout: written by the leading manager, followed by every other process.
 * Whoever writes reads what was written.
 *
 *   never read ─▶ verified ◀─▶ lost        lost: no connection, or no sources written yet; the last picture stays
 */
export class RedisCatalog implements SourceCatalog, CatalogWriter, AsyncDisposable {
  readonly #clock: Clock
  readonly #checkEveryMs: number
  readonly #logger: Logger
  readonly #redis: Redis
  readonly #subscriber: Redis
  readonly #reader: RedisCatalogReader
  readonly #writer: RedisCatalogWriter
  readonly #listeners = new Listeners()
  readonly #lostListeners = new Listeners()
  readonly #closing = new AbortController()
  #picture = Picture.empty
  #version = 0
  #trouble: { readonly since: number; readonly reason: string } | undefined
  #loop: Promise<void> | undefined
  #wake: (() => void) | undefined
  #hasHeard = false
  #looking: Promise<void> | undefined
  #nextLook: Promise<void> | undefined

  private constructor(options: RedisCatalogOptions) {
    const { connection, checkEveryMs = 2_000, read = readByDefault } = options
    const { clock = systemClock, logger = silentLogger } = options
    this.#clock = clock
    this.#checkEveryMs = checkEveryMs
    this.#logger = logger
    this.#trouble = { since: clock.now(), reason: 'they were not read yet' }
    const reading = { ...connection, commandTimeoutMs: Math.min(connection.commandTimeoutMs ?? ANSWER_MS, ANSWER_MS) }
    this.#redis = redisClient(reading, (reason) => this.#lost(reason))
    this.#subscriber = redisClient(reading, (reason) => {
      logger.debug({ reason }, 'events of MetricSources are not heard')
    })
    this.#reader = new RedisCatalogReader(this.#redis, read, logger, options.noneIsEmpty ?? false)
    this.#writer = new RedisCatalogWriter({ connection, clock, logger }, () => this.#lostListeners.tell())
  }

  /** Begins with a first look, no longer than the timeouts of the connection. Redis may be away: then nothing is known yet. */
  static async open(options: RedisCatalogOptions): Promise<RedisCatalog> {
    const catalog = new RedisCatalog(options)
    await catalog.#start()
    return catalog
  }

  sources(): readonly CompiledSource[] {
    return this.#picture.sources
  }

  source(id: SourceId): CompiledSource | undefined {
    return this.#picture.source(id)
  }

  ofType(typeName: string): CompiledSource | undefined {
    return this.#picture.allOfType(typeName)[0]
  }

  allOfType(typeName: string): readonly CompiledSource[] {
    return this.#picture.allOfType(typeName)
  }

  version(): number {
    return this.#version
  }

  unavailable(): { readonly since: number; readonly reason: string } | undefined {
    return this.#trouble
  }

  onChange(listener: () => void): () => void {
    return this.#listeners.add(listener)
  }

  onLost(listener: () => void): () => void {
    return this.#lostListeners.add(listener)
  }

  async put(definition: SourceDefinition): Promise<void> {
    await this.#writer.put(definition)
    await this.#look()
  }

  async remove(id: SourceId): Promise<void> {
    await this.#writer.remove(id)
    await this.#look()
  }

  async resync(definitions: readonly SourceDefinition[]): Promise<void> {
    await this.#writer.resync(definitions)
    await this.#look()
  }

  stored(id: SourceId): Promise<SourceDefinition | undefined> {
    return this.#writer.stored(id)
  }

  announce(
    type: 'reconciled' | 'deleted',
    id: SourceId,
    data: Readonly<Record<string, unknown>> | null,
  ): Promise<void> {
    return this.#writer.announce(type, id, data)
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
      this.#subscriber.subscribe(EVENTS_CHANNEL).then(
        () => this.#hear(), // something may have been missed before
        (error: unknown) => this.#logger.debug({ error: redisUnavailable(error).message }, 'no events are heard'),
      )
    })
    this.#subscriber.connect().catch(() => undefined) // told to its trouble listener; it goes on trying
    await this.#redis.connect().catch((error: unknown) => this.#lost(redisUnavailable(error).reason))
    await this.#look()
    this.#loop = this.#watch()
  }

  #hear(): void {
    this.#hasHeard = true
    this.#wake?.()
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      if (!this.#hasHeard) await this.#sleep()
      if (signal.aborted) return
      this.#hasHeard = false
      await this.#look()
      await this.#clock.sleep(this.#trouble ? RETRY_MS : CALM_MS, signal)
    }
  }

  async #sleep(): Promise<void> {
    const awake = new AbortController()
    this.#wake = () => awake.abort()
    await this.#clock.sleep(this.#checkEveryMs, awake.signal)
    this.#wake = undefined
  }

  /** At Redis as it is after this call began; calls that come while one runs share the one after it. Trouble is kept. */
  #look(): Promise<void> {
    const running = this.#looking
    if (!running) {
      this.#looking = this.#load().finally(() => {
        this.#looking = undefined
      })
      return this.#looking
    }
    this.#nextLook ??= running.then(() => {
      this.#nextLook = undefined
      return this.#look()
    })
    return this.#nextLook
  }

  async #load(): Promise<void> {
    const mark = this.#writer.mark()
    try {
      const { picture } = await this.#reader.load()
      if (this.#writer.contradicts(mark, this.#reader.digests)) this.#lostListeners.tell()
      this.#found(picture)
    } catch (error) {
      const failure = error instanceof StoreUnavailableError ? error.reason : FleetError.from(error).message
      this.#lost(failure)
      if (error instanceof CatalogLostError && this.#writer.hasWrittenAll) this.#lostListeners.tell()
    }
  }

  #found(picture: Picture): void {
    const wasLost = this.#trouble !== undefined
    this.#trouble = undefined
    if (wasLost) this.#logger.info({}, 'MetricSources are read from Redis')
    const isChanged = !picture.equals(this.#picture)
    if (isChanged) this.#picture = picture
    if (wasLost || isChanged) this.#moved()
  }

  #lost(reason: string): void {
    if (this.#closing.signal.aborted) return
    const before = this.#trouble
    // The first reason says more than those that follow from it.
    if (before?.reason === reason || (before && reason.endsWith(NO_CONNECTION))) return
    this.#trouble = { since: before?.since ?? this.#clock.now(), reason }
    if (!before) this.#logger.warn({ reason }, 'MetricSources cannot be read from Redis; the last ones known are used')
    this.#moved()
  }

  #moved(): void {
    this.#version++
    this.#listeners.tell()
  }
}
