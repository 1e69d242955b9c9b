import { type Clock, type ClusterName, type ClusterState, isClusterName, systemClock } from '#model'
import { closeRedis, pipelined, type Redis, type RedisConnection, redisClient, redisUnavailable } from '#redis'
import { backoffMs, type Logger, silentLogger } from '#runtime'
import { FollowedFleet } from './followed-fleet.ts'
import { originalCluster } from './original-cluster.ts'
import { objectOf, textIn } from './original-fields.ts'
import { type LookLimits, lookAt, lookLimits } from './original-look.ts'
import { AlertsReader } from './redis-alerts.ts'
import { EVENT_CHANNEL } from './redis-documents.ts'

/** How the documented keys of an original manager are read. */
export interface OriginalStateOptions {
  readonly connection: RedisConnection
  readonly clock?: Clock
  readonly logger?: Logger
  readonly random?: () => number
  /** how often every cluster is looked at, whatever was announced, ms: so soon is seen what ran out. Default 5 s */
  readonly checkEveryMs?: number
  readonly limits?: LookLimits
}

interface Read {
  readonly digest: string
  readonly state: ClusterState
}

const ALL = 'clusters:all'
const MAX_CLUSTERS = 20_000
const AT_ONCE = 4
/** Looks caused by announcements keep this distance, ms. */
const CALM_MS = 100
const WRITERS = [EVENT_CHANNEL, 'metricsource-events'] as const

/**
 * The fleet as an original manager writes it to Redis, by its documented keys. Nothing there is counted or marked as whole, so
 * what is missing cannot be told from what never was: for the time of a migration, and said so wherever it is shown.
 * Announcements are followed, and everything is compared every few seconds. Reads never wait.
 *
 *   loading ─► available ◄─► unavailable
 */
export class OriginalState extends FollowedFleet implements AsyncDisposable {
  readonly #redis: Redis
  readonly #subscriber: Redis
  protected readonly alertsReader: AlertsReader
  readonly #logger: Logger
  readonly #random: () => number
  readonly #checkEveryMs: number
  readonly #limits: LookLimits
  readonly #digests = new Map<ClusterName, string>()
  readonly #loop: Promise<void>
  readonly #strange = new Set<string>()
  #comparedAt = Number.NEGATIVE_INFINITY
  /** clusters that were announced; `#isAllNews`: any of them may have changed */
  #news = new Set<string>()
  #isAllNews = true
  #wake: (() => void) | undefined

  /** Begins to load; `availability` says when there is something. Until then every answer is empty. */
  constructor(options: OriginalStateOptions) {
    const { connection, clock = systemClock, logger = silentLogger, random = Math.random } = options
    super(clock)
    this.#logger = logger
    this.#random = random
    this.#checkEveryMs = options.checkEveryMs ?? 5_000
    this.#limits = options.limits ?? lookLimits
    this.#redis = redisClient(connection, (reason) => this.noteTrouble(reason))
    this.#subscriber = redisClient(connection, (reason) => logger.debug({ reason }, 'no announcements are heard'))
    this.alertsReader = new AlertsReader(this.#redis, clock)
    this.#listen()
    this.#loop = this.#run()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closing.abort()
    this.#wake?.()
    await Promise.all([closeRedis(this.#redis), closeRedis(this.#subscriber)])
    await this.#loop
    this.forgetListeners()
  }

  #listen(): void {
    this.#subscriber.on('ready', () => {
      this.#subscriber.subscribe(...WRITERS).then(
        () => this.#hear('all'), // something may have been missed before
        (error: unknown) =>
          this.#logger.debug({ error: redisUnavailable(error).message }, 'no announcements are heard'),
      )
    })
    this.#subscriber.on('message', (channel, text: string) => {
      const event = channel === EVENT_CHANNEL && text.length < 65_536 ? objectOf(text) : undefined
      this.#hear((event && textIn(event, 'cluster')) || 'all')
    })
    this.#subscriber.connect().catch(() => undefined) // told to its trouble listener; it goes on trying
  }

  #hear(name: string): void {
    // More news than there are clusters are news of all.
    if (name !== 'all' && this.#news.size < MAX_CLUSTERS) this.#news.add(name)
    else this.#isAllNews = true
    this.#wake?.()
  }

  async #run(): Promise<void> {
    const { signal } = this.closing
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        if (this.#redis.status === 'wait' || this.#redis.status === 'end') await this.#redis.connect()
        while (!signal.aborted) {
          await this.#follow()
          attempt = 0
          await this.#quiet()
        }
      } catch (error) {
        if (signal.aborted) return
        const { reason } = redisUnavailable(error)
        this.noteTrouble(reason)
        this.#isAllNews = true
        this.#logger.warn({ reason, attempt }, "the original manager's state cannot be read from Redis: trying again")
        await this.clock.sleep(50 + backoffMs(attempt, { fromMs: 100, toMs: 2_000, random: this.#random }), signal)
      }
    }
  }

  /** Until something is announced, or all is to be compared again. */
  async #quiet(): Promise<void> {
    await this.clock.sleep(CALM_MS, this.closing.signal)
    const dueMs = this.#comparedAt + this.#checkEveryMs - this.clock.now()
    if (this.#news.size > 0 || this.#isAllNews || !(dueMs > 0) || this.closing.signal.aborted) return
    const awake = new AbortController()
    this.#wake = () => awake.abort()
    await this.clock.sleep(dueMs, awake.signal)
    this.#wake = undefined
  }

  async #follow(): Promise<void> {
    const began = this.clock.now()
    const isDue = this.#isAllNews || !(began - this.#comparedAt < this.#checkEveryMs)
    const news = this.#news
    this.#news = new Set()
    this.#isAllNews = false
    const names = await this.#names()
    if (!names) return
    const wanted = isDue ? names : names.filter((name) => news.has(name))
    const gone = this.memory.clusters().filter(({ name }) => !names.includes(name))
    const changed = new Map<ClusterName, Read | undefined>(gone.map(({ name }) => [name, undefined]))
    const version = this.isLoaded ? this.memory.version() + 1 : began
    for (let from = 0; from < wanted.length; from += AT_ONCE)
      await Promise.all(wanted.slice(from, from + AT_ONCE).map((name) => this.#look(name, version, changed)))
    await this.alertsReader.refresh()
    this.#keep(changed, version)
    if (isDue) this.#comparedAt = began
  }

  /** undefined: there is no list of clusters, which must not look like an empty fleet */
  async #names(): Promise<readonly ClusterName[] | undefined> {
    const [count] = (await pipelined(this.#redis, [['SCARD', ALL]])) as [number]
    if (count === 0 || count > MAX_CLUSTERS) {
      this.noteMissing(
        count === 0
          ? `Redis holds no state of an original manager: key ${ALL} is missing (STATE_SOURCE=original; docs/guide/migrate.md)`
          : `key ${ALL} in Redis names ${count} clusters, more than any fleet has`,
      )
      this.#comparedAt = this.clock.now()
      this.#digests.clear()
      return undefined
    }
    const [all] = (await pipelined(this.#redis, [['SMEMBERS', ALL]])) as [string[]]
    for (const name of all) {
      if (isClusterName(name) || this.#strange.has(name) || this.#strange.size > 100) continue
      this.#strange.add(name)
      this.#logger.warn({ name: name.slice(0, 253) }, `${ALL} in Redis names what cannot be a cluster: it is left out`)
    }
    return all.filter(isClusterName)
  }

  async #look(name: ClusterName, version: number, changed: Map<ClusterName, Read | undefined>): Promise<void> {
    const look = await lookAt(this.#redis, name, this.#digests.get(name) ?? '', this.#limits)
    if (look) changed.set(name, { digest: look.digest, state: originalCluster(name, look, version) })
  }

  #keep(changed: ReadonlyMap<ClusterName, Read | undefined>, version: number): void {
    for (const [name, read] of changed) {
      if (read) this.#digests.set(name, read.digest)
      else this.#digests.delete(name)
    }
    if (this.seen.state !== 'available') this.#logger.info({}, "the original manager's state is read from Redis")
    this.take(new Map([...changed].map(([name, read]) => [name, read?.state])), version)
  }
}
