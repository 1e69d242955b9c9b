import { createHash } from 'node:crypto'
import { type Clock, FleetError, minutes, StoreUnavailableError, seconds, systemClock } from '#model'
import {
  type Command,
  closeRedis,
  digestOf,
  escapeGlob,
  NO_CONNECTION,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  scanKeys,
  sealFault,
  sealText,
  transaction,
} from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { type Entry, Journal, probed, RegistryBoard } from './board.ts'
import {
  ALL,
  announced,
  DIGEST,
  EVENTS_CHANNEL,
  EVENTS_KEPT,
  EVENTS_TTL_S,
  eventDocument,
  GENERATION,
  keysOf,
  measurementDocument,
  oldestScore,
  readMeasurement,
  readSpec,
  readStatus,
  rfc3339,
  SEAL_SCRIPTS,
  scoreOf,
  specDocument,
  statusDocument,
  statusTtlS,
} from './redis-layout.ts'
import { factsOf } from './stored.ts'
import type { ProbeResult, RegistryFacts, RegistryMeasurement, RegistryState, RegistryStore } from './types.ts'

export interface RedisRegistriesOptions {
  readonly connection: RedisConnection
  /** how often everything is compared, ms; default 5 s. Announced changes are seen at once. */
  readonly checkEveryMs?: number
  /** how long a status stands at least without a new one, ms; default 10 min */
  readonly statusTtlMs?: number
  /** only what a manager of ours wrote as a whole is taken, not what an original or an older version did; default no */
  readonly sealed?: boolean
  readonly clock?: Clock
  readonly logger?: Logger
}

/** Looks that announcements cause keep this distance, ms. */
const CALM_MS = 50
const RETRY_MS = 500
/** Registries per round trip. */
const SLICE = 200

const NOT_YET = `those of a manager of this version were not written yet, or ${GENERATION} is missing`
const MENDS = `; a running manager of this version writes them again within seconds (key ${DIGEST})`

/** What a registry's documents were when we last read them: equal texts need no second reading. */
interface Texts {
  readonly spec: string
  readonly status: string | null
}

/**
 * Registries in a shared Redis, in the documented layout: written by the leading manager, followed by every API process.
 *
 *   never read ─▶ read ◀─▶ lost        lost: what was read is still shown, and `unavailable` says since when it is not current
 *
 * Every probe is announced; whoever missed that finds it with the next comparison.
 */
export class RedisRegistries implements RegistryStore {
  readonly #board = new RegistryBoard()
  readonly #texts = new Map<string, Texts>()
  readonly #options: Required<RedisRegistriesOptions>
  readonly #redis: Redis
  readonly #subscriber: Redis
  readonly #closing = new AbortController()
  /** reading and writing take turns: a list read before a write must not undo it here */
  #turn: Promise<unknown> = Promise.resolve()
  #loop: Promise<void> | undefined
  #wake: (() => void) | undefined
  /** announced since the last look; 'all': something may have been missed */
  #news: Set<string> | 'all' = 'all'
  #isLoaded = false
  readonly #lostListeners = new Set<() => void>()
  /** this process wrote all that Redis should hold */
  #hasWrittenAll = false
  #trouble: { readonly since: number; readonly reason: string } | undefined = {
    since: 0,
    reason: 'they were not read yet',
  }

  private constructor(options: RedisRegistriesOptions) {
    const { connection, checkEveryMs = seconds(5), statusTtlMs = minutes(10), sealed = false } = options
    const { clock = systemClock, logger = silentLogger } = options
    this.#options = { connection, checkEveryMs, statusTtlMs, sealed, clock, logger }
    this.#redis = redisClient(connection, (reason) => this.#lost(reason))
    this.#subscriber = redisClient(connection, (reason) => {
      logger.debug({ reason }, 'announcements of registries are not heard')
    })
  }

  /** Begins with a first look, no longer than the timeouts of the connection. Redis may be away: it comes back by itself. */
  static async open(options: RedisRegistriesOptions): Promise<RedisRegistries> {
    const registries = new RedisRegistries(options)
    await registries.#start()
    return registries
  }

  registries(): readonly RegistryState[] {
    return this.#board.registries()
  }

  registry(name: string): RegistryState | undefined {
    return this.#board.get(name)?.state
  }

  measurements(name: string): readonly RegistryMeasurement[] {
    return this.#board.measurements(name, this.#options.clock.now())
  }

  version(): number {
    return this.#board.version
  }

  unavailable(): { readonly since: number; readonly reason: string } | undefined {
    return this.#trouble
  }

  onChange(listener: (name: string) => void): () => void {
    return this.#board.onChange(listener)
  }

  onLost(listener: () => void): () => void {
    this.#lostListeners.add(listener)
    return () => this.#lostListeners.delete(listener)
  }

  /** @throws StoreUnavailableError: nothing was written */
  resync(all: readonly RegistryFacts[]): Promise<void> {
    const wanted = new Map(all.map((given) => [given.name, factsOf(given)]))
    return this.#inTurn(
      async () => {
        const [listed] = await pipelined(this.#redis, [['TYPE', ALL]])
        const names = listed === 'set' ? await this.#names() : []
        const known = [...names, ...this.#board.registries().map(({ facts }) => facts.name)]
        for (const name of new Set(known)) if (!wanted.has(name)) await this.#remove(name)
        const entries = [...wanted.values()].flatMap(
          (facts) => this.#board.declared(facts) ?? this.#board.get(facts.name) ?? [],
        )
        const specs = new Map(entries.map(({ state: { facts } }) => [facts.name, JSON.stringify(specDocument(facts))]))
        await transaction(this.#redis, [
          ['DEL', ALL],
          ...(specs.size > 0 ? [['SADD', ALL, ...specs.keys()] satisfies Command] : []),
          ...[...specs].map(([name, spec]): Command => ['SET', keysOf(name).spec, spec]),
          ...this.#sealed(specs),
        ])
        for (const entry of entries) {
          const { name } = entry.state.facts
          this.#texts.set(name, { spec: specs.get(name) ?? '', status: this.#texts.get(name)?.status ?? null })
          this.#board.put(name, entry)
        }
        this.#hasWrittenAll = true
        // What cannot be read is about to be written.
      },
      () => this.#look('all').catch(() => undefined),
    )
  }

  /** @throws StoreUnavailableError: nothing was written */
  declare(given: RegistryFacts): Promise<void> {
    const facts = factsOf(given)
    return this.#inTurn(async () => {
      const entry = this.#board.declared(facts)
      if (!entry) return
      await this.#store(entry, [])
    })
  }

  /** @throws StoreUnavailableError: nothing was written */
  record(name: string, result: ProbeResult): Promise<void> {
    return this.#inTurn(async () => {
      const known = this.#board.get(name)
      if (!known) return
      const state = probed(known.state, result)
      const isNews = known.state.last?.health !== result.health || known.state.last?.code !== result.code
      await this.#store({ ...known, state }, this.#probeCommands(state, result, isNews))
      known.journal.add(result.at, result.available, result.responseMs)
    })
  }

  /** @throws StoreUnavailableError: some of it may still be there; ask again */
  remove(name: string): Promise<void> {
    return this.#inTurn(() => this.#remove(name))
  }

  async #remove(name: string): Promise<void> {
    const keys: string[] = [keysOf(name).events]
    for await (const page of scanKeys(this.#redis, `registry:${escapeGlob(name)}:*`)) keys.push(...page)
    const event = eventDocument('registry.deleted', name, this.#options.clock.now(), null)
    const left = new Map([...this.#texts].flatMap(([other, { spec }]) => (other === name ? [] : [[other, spec]])))
    await transaction(this.#redis, [
      ['SREM', ALL, name],
      ['UNLINK', ...keys],
      ...(this.#hasWrittenAll ? this.#sealed(left) : []),
      ['PUBLISH', EVENTS_CHANNEL, event],
    ])
    this.#texts.delete(name)
    this.#board.remove(name)
  }

  /** A new generation of what is declared: by what this process wrote, so that what is lost in Redis is missed. */
  #sealed(specs: ReadonlyMap<string, string>): readonly Command[] {
    const generation = String(Math.round(this.#options.clock.now()))
    const digest = digestOf([...specs].map(([name, spec]) => [name, sha1(spec)]))
    return [
      ['SET', GENERATION, generation],
      ['SET', DIGEST, sealText(generation, specs.size, digest)],
    ]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    this.#wake?.()
    await Promise.all([closeRedis(this.#redis), closeRedis(this.#subscriber)])
    await this.#loop
    await this.#turn.catch(() => undefined) // told to whoever asked for it
  }

  #inTurn<T>(work: () => Promise<T>, load = () => this.#look('all')): Promise<T> {
    const turn = this.#turn
      .catch(() => undefined) // told to whoever asked for it
      .then(async () => {
        if (!this.#isLoaded) await load()
        return work()
      })
    this.#turn = turn
    return turn
  }

  /** Everything that is known of a registry is written together, so that a Redis that was emptied is whole again. */
  async #store(entry: Entry, more: readonly Command[]): Promise<void> {
    const { facts, last, since } = entry.state
    const keys = keysOf(facts.name)
    const spec = JSON.stringify(specDocument(facts))
    const status = last && JSON.stringify(statusDocument({ since }, last))
    const ttlS = statusTtlS(facts, this.#options.statusTtlMs)
    const isNew = this.#texts.get(facts.name)?.spec !== spec
    const specs = new Map([...this.#texts].map(([name, texts]) => [name, texts.spec])).set(facts.name, spec)
    await transaction(this.#redis, [
      ['SADD', ALL, facts.name],
      ['SET', keys.spec, spec],
      ...(isNew && this.#hasWrittenAll ? this.#sealed(specs) : []),
      status === null ? ['DEL', keys.status] : ['SET', keys.status, status, 'EX', ttlS],
      ...more,
      ...(more.length > 0 ? [] : [['PUBLISH', EVENTS_CHANNEL, this.#event(entry.state)] satisfies Command]),
    ])
    this.#texts.set(facts.name, { spec, status })
    this.#board.put(facts.name, entry)
  }

  #probeCommands(state: RegistryState, result: ProbeResult, isNews: boolean): Command[] {
    const { facts } = state
    const keys = keysOf(facts.name)
    const { clock, statusTtlMs } = this.#options
    const measurement = measurementDocument({
      at: result.at,
      available: result.available,
      responseMs: result.responseMs,
    })
    const event = this.#event(state)
    return [
      ['HSET', keys.meta, 'last_update', rfc3339(result.at), 'available', String(result.available)],
      ['ZADD', keys.metrics, scoreOf(result.at), measurement],
      ['ZREMRANGEBYSCORE', keys.metrics, '-inf', `(${oldestScore(clock.now())}`],
      ['SET', keys.latest, measurement, 'EX', statusTtlS(facts, statusTtlMs)],
      // The list is for people: a registry that goes on as it was is no event.
      ...(isNews
        ? ([
            ['LPUSH', keys.events, event],
            ['LTRIM', keys.events, 0, EVENTS_KEPT - 1],
            ['EXPIRE', keys.events, EVENTS_TTL_S],
          ] satisfies Command[])
        : []),
      ['PUBLISH', EVENTS_CHANNEL, event],
    ]
  }

  #event({ facts, last }: RegistryState): string {
    const data = {
      health: last?.health ?? 'unknown',
      available: last?.available ?? false,
      response_time: Math.round(last?.responseMs ?? 0),
      display_name: facts.displayName,
      type: facts.type,
    }
    return eventDocument('registry.reconciled', facts.name, this.#options.clock.now(), data)
  }

  async #start(): Promise<void> {
    this.#redis.on('ready', () => this.#hear('all'))
    this.#subscriber.on('message', (_, text) => this.#hear(announced(text) ?? 'all'))
    this.#subscriber.on('ready', () => {
      const { logger } = this.#options
      this.#subscriber.subscribe(EVENTS_CHANNEL).then(
        () => this.#hear('all'), // something may have been missed before
        (error: unknown) => logger.debug({ error: redisUnavailable(error).message }, 'no announcements are heard'),
      )
    })
    this.#subscriber.connect().catch(() => undefined) // told to its trouble listener; it goes on trying
    await this.#redis.connect().catch((error: unknown) => this.#lost(redisUnavailable(error).reason))
    await this.#catchUp()
    this.#loop = this.#follow()
  }

  #hear(name: string): void {
    if (name === 'all') this.#news = 'all'
    else if (this.#news !== 'all') this.#news.add(name)
    this.#wake?.()
  }

  async #follow(): Promise<void> {
    const { clock, checkEveryMs } = this.#options
    const { signal } = this.#closing
    let comparedAt = performance.now()
    while (!signal.aborted) {
      const isDue = (await this.#quiet(checkEveryMs)) || performance.now() - comparedAt >= checkEveryMs
      if (signal.aborted) return
      if (isDue) this.#news = 'all'
      if (this.#news === 'all') comparedAt = performance.now()
      const isRead = await this.#catchUp()
      await clock.sleep(isRead ? CALM_MS : RETRY_MS, signal)
    }
  }

  /** Waits for an announcement. @returns whether there was none for so long */
  async #quiet(ms: number): Promise<boolean> {
    if (this.#hasNews) return false
    const awake = new AbortController()
    this.#wake = () => awake.abort()
    await this.#options.clock.sleep(ms, awake.signal)
    this.#wake = undefined
    return !this.#hasNews
  }

  get #hasNews(): boolean {
    return this.#news === 'all' || this.#news.size > 0
  }

  /** @returns whether what was announced is read now */
  async #catchUp(): Promise<boolean> {
    const news = this.#news
    this.#news = new Set()
    const turn = this.#turn.catch(() => undefined).then(() => this.#look(news)) // told to whoever asked for it
    this.#turn = turn
    return turn.then(
      () => true,
      (error: unknown) => {
        this.#news = 'all'
        this.#lost(FleetError.from(error).message)
        return false
      },
    )
  }

  async #look(news: ReadonlySet<string> | 'all'): Promise<void> {
    const present = news === 'all' ? await this.#listed() : undefined
    if (present) {
      const gone = this.#board.registries().filter(({ facts }) => !present.includes(facts.name))
      for (const { facts } of gone) this.#forget(facts.name)
    }
    const wanted = present ?? [...(news as ReadonlySet<string>)]
    for (let start = 0; start < wanted.length; start += SLICE)
      await this.#read(wanted.slice(start, start + SLICE), !present)
    this.#found()
  }

  /** The names, where they are exactly those that were sealed. @throws StoreUnavailableError: what was read last stays */
  async #listed(): Promise<readonly string[]> {
    const look: Command = ['EVAL', SEAL_SCRIPTS.look, 3, ALL, GENERATION, DIGEST, '']
    const [answer] = await pipelined(this.#redis, [look]).catch((error: unknown) => {
      // A key is something else than it should be: only a resync puts it right.
      this.#tellLost()
      throw error
    })
    const [generation, seal, digest, count, ...list] = answer as [
      string | null,
      string | null,
      string,
      number,
      ...string[],
    ]
    const fault = generation === null ? NOT_YET : sealFault(seal ?? undefined, { generation, count, digest })
    if (fault !== undefined && (this.#options.sealed || this.#hasWrittenAll)) {
      this.#tellLost()
      throw new StoreUnavailableError('Redis', `of the registries in it ${fault}${MENDS}`)
    }
    return list.filter((_, index) => index % 2 === 0)
  }

  #tellLost(): void {
    if (this.#hasWrittenAll) for (const listener of this.#lostListeners) listener()
  }

  async #names(): Promise<readonly string[]> {
    const [names] = await pipelined(this.#redis, [['SMEMBERS', ALL]])
    return Array.isArray(names) ? names.filter((name): name is string => typeof name === 'string') : []
  }

  async #read(names: readonly string[], asksMembership: boolean): Promise<void> {
    const answers = await pipelined(
      this.#redis,
      names.flatMap((name): Command[] => [
        ['GET', keysOf(name).spec],
        ['GET', keysOf(name).status],
        ...(asksMembership ? [['SISMEMBER', ALL, name] satisfies Command] : []),
      ]),
    )
    const width = asksMembership ? 3 : 2
    const changed: { name: string; texts: Texts; facts: RegistryFacts }[] = []
    for (const [index, name] of names.entries()) {
      const [spec, status, isMember = 1] = answers.slice(index * width, index * width + width)
      const facts = typeof spec === 'string' && isMember === 1 ? readSpec(name, spec) : undefined
      if (!facts) {
        // Deleted, or lost: the whole tells which.
        if (asksMembership && (this.#options.sealed || this.#hasWrittenAll)) this.#hear('all')
        else this.#forget(name)
        continue
      }
      const texts = { spec: String(spec), status: typeof status === 'string' ? status : null }
      const known = this.#texts.get(name)
      if (known?.spec !== texts.spec || known.status !== texts.status) changed.push({ name, texts, facts })
    }
    await this.#take(changed)
  }

  async #take(changed: readonly { name: string; texts: Texts; facts: RegistryFacts }[]): Promise<void> {
    if (changed.length === 0) return
    const now = this.#options.clock.now()
    const measured = await pipelined(
      this.#redis,
      changed.map(({ name }) => ['ZRANGEBYSCORE', keysOf(name).metrics, this.#from(name, now), '+inf']),
    )
    changed.forEach(({ name, texts, facts }, index) => {
      const known = this.#board.get(name)
      const journal = known?.journal ?? new Journal()
      const members = measured[index]
      for (const member of Array.isArray(members) ? members : []) {
        const measurement = readMeasurement(String(member))
        if (measurement) journal.add(measurement.at, measurement.available, measurement.responseMs)
      }
      const said = texts.status === null ? undefined : readStatus(texts.status)
      this.#texts.set(name, texts)
      this.#board.put(name, {
        state: { facts, last: said?.last ?? null, since: said?.since ?? null, version: 0 },
        journal,
      })
    })
  }

  /** Where reading of measurements goes on: what is known is not read again. */
  #from(name: string, now: number): number {
    const last = this.#board.measurements(name, now).at(-1)
    return last ? scoreOf(last.at) : oldestScore(now)
  }

  #forget(name: string): void {
    this.#texts.delete(name)
    this.#board.remove(name)
  }

  #found(): void {
    this.#isLoaded = true
    if (!this.#trouble) return
    this.#trouble = undefined
    this.#options.logger.info({}, 'registries are read from Redis')
  }

  #lost(reason: string): void {
    if (this.#closing.signal.aborted) return
    const { clock, logger } = this.#options
    if (this.#trouble) {
      // The first reason says more than those that follow from it.
      if (!reason.endsWith(NO_CONNECTION)) this.#trouble = { ...this.#trouble, reason }
      return
    }
    this.#trouble = { since: clock.now(), reason }
    logger.warn({ reason }, 'registries cannot be read from Redis; what was read last is shown')
  }
}

const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex')
