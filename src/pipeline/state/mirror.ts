import { type Change, type Clock, type ClusterName, type ClusterState, isClusterName, systemClock } from '#model'
import {
  type Command,
  closeRedis,
  NO_CONNECTION,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
} from '#redis'
import { backoffMs, type Logger, silentLogger } from '#runtime'
import { difference } from './difference.ts'
import { disappearance } from './fleet.ts'
import { FleetMemory } from './memory.ts'
import { AlertsReader, hashOf } from './redis-alerts.ts'
import { own } from './redis-keys.ts'
import { loadFleet } from './redis-store.ts'
import { decodeCluster } from './stored.ts'
import type { Availability, StateReader } from './types.ts'

export interface RedisMirrorOptions {
  readonly connection: RedisConnection
  readonly clock?: Clock
  readonly logger?: Logger
  readonly random?: () => number
  /** how long one look at the stream waits for news, ms; also how soon a silent loss of data is noticed; default 5 s */
  readonly waitMs?: number
}

interface Entry {
  readonly id: string
  readonly op: string
  readonly cluster: string
  readonly version: number
  readonly generation: string
  readonly writer: string
  readonly count: number
}

const COUNT = 500
const CHUNK = 64

/** The stream cannot be followed on from here: everything is to be read again. */
class Reload extends Error {}

/**
 * The fleet as another process wrote it to Redis, in the memory of this one. Reads never wait. While Redis is away the
 * last picture stays and says so; when it is back, or a piece of the stream is missing, all is read again and only the
 * differences are told.
 *
 *   loading ─► available ◄─► unavailable
 */
export class RedisMirror implements StateReader, AsyncDisposable {
  readonly #reader: Redis
  /** blocks on the stream, so it has a connection of its own */
  readonly #follower: Redis
  readonly #alerts: AlertsReader
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #random: () => number
  readonly #waitMs: number
  readonly #memory = new FleetMemory(0)
  readonly #listeners = new Set<(changes: readonly Change[]) => void>()
  readonly #closing = new AbortController()
  readonly #loop: Promise<void>
  #availability: Availability = { state: 'loading' }
  #loaded = false
  #generation: string | undefined
  #after = '0-0'
  #writer: { readonly name: string; readonly count: number } | undefined

  /** Begins to load; `availability` says when there is something. Until then every answer is empty. */
  constructor({
    connection,
    clock = systemClock,
    logger = silentLogger,
    random = Math.random,
    waitMs = 5_000,
  }: RedisMirrorOptions) {
    this.#clock = clock
    this.#logger = logger
    this.#random = random
    this.#waitMs = waitMs
    const { commandTimeoutMs = 10_000 } = connection
    this.#reader = redisClient(connection, (reason) => this.#noteTrouble(reason))
    this.#follower = redisClient({ ...connection, commandTimeoutMs: commandTimeoutMs + waitMs }, (reason) =>
      this.#noteTrouble(reason),
    )
    this.#alerts = new AlertsReader(this.#reader, clock)
    this.#loop = this.#run()
  }

  availability(): Availability {
    return this.#availability
  }

  version(): number {
    return this.#memory.version()
  }

  clusters(): readonly ClusterState[] {
    return this.#memory.clusters()
  }

  cluster(name: string): ClusterState | undefined {
    return this.#memory.cluster(name)
  }

  alerts(name: string): readonly Readonly<Record<string, string>>[] {
    return this.#alerts.of(name)
  }

  /** Tells every change after it can be read here. The first load is no change. The listener must not wait nor throw. */
  onChanges(listener: (changes: readonly Change[]) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await Promise.all([closeRedis(this.#reader), closeRedis(this.#follower)])
    await this.#loop
    this.#listeners.clear()
  }

  #noteTrouble(reason: string): void {
    if (this.#closing.signal.aborted) return
    // Nothing was ever read: "loading" is the truth, the log has the reason.
    if (!this.#loaded) return
    const known = this.#availability.state === 'unavailable' ? this.#availability : undefined
    this.#availability = {
      state: 'unavailable',
      since: known?.since ?? this.#clock.now(),
      reason: reason === NO_CONNECTION ? (known?.reason ?? reason) : reason,
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        await this.#connect()
        await this.#reload()
        attempt = 0
        while (!signal.aborted) await this.#follow()
      } catch (error) {
        if (signal.aborted) return
        if (error instanceof Reload) {
          this.#logger.info({ why: error.message }, 'state is read again from Redis')
          continue
        }
        const { reason } = redisUnavailable(error)
        this.#noteTrouble(reason)
        this.#logger.warn({ reason, attempt }, 'Redis cannot be followed: trying again')
        await this.#clock.sleep(50 + backoffMs(attempt, { fromMs: 100, toMs: 2_000, random: this.#random }), signal)
      }
    }
  }

  async #connect(): Promise<void> {
    for (const redis of [this.#reader, this.#follower]) {
      if (redis.status === 'wait' || redis.status === 'end') await redis.connect()
      else if (redis.status !== 'ready') await becomesReady(redis, this.#closing.signal)
    }
  }

  async #reload(): Promise<void> {
    const [newest] = await pipelined(this.#reader, [['XREVRANGE', own.changes, '+', '-', 'COUNT', 1]])
    const entry = entriesOf(newest)[0]
    const loaded = await loadFleet(this.#reader)
    if (loaded.generation === undefined) {
      // Empty, and the manager has not filled it yet. An emptied Redis must not look like an empty fleet.
      this.#noteTrouble('Redis holds no state yet: waiting for the manager')
      this.#after = entry?.id ?? '0-0'
      this.#writer = entry && { name: entry.writer, count: entry.count }
      this.#generation = undefined
      return
    }
    this.#generation = loaded.generation
    this.#after = entry?.id ?? '0-0'
    this.#writer = entry && { name: entry.writer, count: entry.count }
    const gone = this.#memory
      .clusters()
      .filter(({ name }) => !loaded.clusters.has(name) && !loaded.unreadable.includes(name))
    const clusters = new Map<ClusterName, ClusterState | undefined>(gone.map(({ name }) => [name, undefined]))
    for (const [name, state] of loaded.clusters) clusters.set(name, state)
    this.#take(clusters)
    this.#availability = { state: 'available' }
    this.#loaded = true
    await this.#alerts.refresh()
  }

  async #follow(): Promise<void> {
    const reply = await this.#follower.xread('COUNT', COUNT, 'BLOCK', this.#waitMs, 'STREAMS', own.changes, this.#after)
    const entries = entriesOf((reply as [string, unknown][] | null)?.[0]?.[1])
    if (entries.length === 0) return this.#lookAfter()
    const touched = new Map<ClusterName, Entry>()
    for (const entry of entries) {
      this.#checkOrder(entry)
      if (isClusterName(entry.cluster)) touched.set(entry.cluster, entry)
    }
    await this.#fetch(touched)
    await this.#alerts.refresh()
  }

  /** Nothing new: is it quiet, or is the data gone? */
  async #lookAfter(): Promise<void> {
    const [generation] = await pipelined(this.#reader, [['GET', own.generation]])
    if ((generation ?? undefined) !== this.#generation) throw new Reload('Redis was filled anew or emptied')
    if (this.#generation === undefined) return
    await this.#alerts.refresh()
    this.#availability = { state: 'available' }
  }

  #checkOrder(entry: Entry): void {
    if (entry.generation !== this.#generation || entry.op === 'reload') throw new Reload('all of it was written again')
    const { name, count } = this.#writer ?? { name: entry.writer, count: entry.count - 1 }
    if (entry.writer !== name) throw new Reload('another process writes')
    if (entry.count !== count + 1) throw new Reload('a piece of the stream is missing')
    this.#writer = { name, count: entry.count }
    this.#after = entry.id
  }

  async #fetch(touched: ReadonlyMap<ClusterName, Entry>): Promise<void> {
    const wanted = [...touched].filter(
      ([name, entry]) => this.#memory.cluster(name)?.version !== entry.version || entry.op !== 'put',
    )
    const clusters = new Map<ClusterName, ClusterState | undefined>()
    for (let from = 0; from < wanted.length; from += CHUNK) {
      const names = wanted.slice(from, from + CHUNK).map(([name]) => name)
      const hashes = await pipelined(
        this.#reader,
        names.map((name): Command => ['HGETALL', own.cluster(name)]),
      )
      for (const [i, name] of names.entries()) {
        const fields = hashOf(hashes[i])
        const state = decodeCluster(fields)
        if (state) clusters.set(name, state)
        else if (Object.keys(fields).length === 0) clusters.set(name, undefined)
        else this.#logger.error({ cluster: name }, 'what Redis holds of the cluster cannot be read')
      }
    }
    this.#take(clusters)
  }

  #take(clusters: ReadonlyMap<ClusterName, ClusterState | undefined>): void {
    const at = this.#clock.now()
    const changes: Change[] = []
    const kept = new Map<ClusterName, ClusterState | undefined>()
    for (const [name, after] of clusters) {
      const before = this.#memory.cluster(name)
      if (after && after.version === before?.version) continue
      if (!after) {
        if (before) changes.push(...disappearance(before, at))
        kept.set(name, undefined)
        continue
      }
      const step = difference(before, after, at)
      kept.set(name, step.next)
      changes.push(...step.changes)
    }
    // A count of our own: what we read of one cluster may be newer than the entry that told of another. It begins with the
    // time, so that a version of a former process never comes again.
    const version = this.#loaded ? this.#memory.version() + 1 : at
    if (kept.size > 0 || !this.#loaded) this.#memory.keep({ clusters: kept, version })
    if (!this.#loaded || changes.length === 0) return
    for (const listener of this.#listeners) listener(changes)
  }
}

async function becomesReady(redis: Redis, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const finish = (error?: Error) => {
      redis.off('ready', ready)
      redis.off('error', finish)
      redis.off('close', closed)
      signal.removeEventListener('abort', aborted)
      if (error) reject(error)
      else resolve()
    }
    const ready = () => finish()
    const closed = () => finish(new Error('the connection was lost'))
    const aborted = () => finish(new Error('closed'))
    redis.on('ready', ready)
    redis.on('error', finish)
    redis.on('close', closed)
    signal.addEventListener('abort', aborted)
  })
}

/** Entries of a stream's raw reply; what is not one of ours is left out. */
function entriesOf(reply: unknown): Entry[] {
  if (!Array.isArray(reply)) return []
  return (reply as [string, string[]][]).flatMap(([id, pairs]) => {
    const fields = hashOf(pairs)
    const { op, c: cluster = '', v, g: generation = '', s: writer = '', n } = fields
    if (op === undefined) return []
    return [{ id, op, cluster, version: Number(v), generation, writer, count: Number(n) }]
  })
}
