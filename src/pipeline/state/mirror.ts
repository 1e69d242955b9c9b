import { type Clock, type ClusterName, type ClusterState, isClusterName, StoredFormatError, systemClock } from '#model'
import {
  COMMAND_TIMEOUT_MS,
  type Command,
  closeRedis,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  transaction,
} from '#redis'
import { backoffMs, type Logger, silentLogger } from '#runtime'
import { FollowedFleet } from './followed-fleet.ts'
import { AlertsReader, hashOf } from './redis-alerts.ts'
import { formatCommands, formatDecided } from './redis-format.ts'
import { own } from './redis-keys.ts'
import { faultOf, loadFleet, whatIsMissing } from './redis-load.ts'
import { type Division, divisionCommands, divisionOf, isSameDivision, isWhole } from './redis-owners.ts'
import { damageLogger, decodeCluster } from './stored.ts'
import { StoredRows } from './stored-rows.ts'
import { type Entry, StreamOrder, type Writer } from './stream-order.ts'

/** How state is mirrored from Redis; durations in ms. */
export interface RedisMirrorOptions {
  readonly connection: RedisConnection
  /** version of this program, for errors; default: one without a number */
  readonly program?: string
  readonly clock?: Clock
  readonly logger?: Logger
  readonly random?: () => number
  /** how long one look at the stream waits for news, ms; also how soon a silent loss of data is noticed; default 5 s */
  readonly waitMs?: number
}

const COUNT = 500
const CHUNK = 64
/** Between two tries to read a fleet that is not whole, where nobody says that something was written, ms. */
const FAULT_MS = 30_000

/** The stream cannot be followed on from here: everything is to be read again. */
class Reload extends Error {}

/**
 * The fleet as other processes wrote it to Redis, in the memory of this one: one that owns it all, or several of which each
 * writes its share. Reads never wait. While Redis is away the
 * last picture stays and says so; when it is back, or a piece of the stream is missing, all is read again and only the
 * differences are told.
 *
 *   loading ─► available ◄─► unavailable
 */
export class RedisMirror extends FollowedFleet implements AsyncDisposable {
  readonly #reader: Redis
  /** blocks on the stream, so it has a connection of its own */
  readonly #follower: Redis
  protected readonly alertsReader: AlertsReader
  readonly #logger: Logger
  readonly #random: () => number
  readonly #waitMs: number
  readonly #program: string
  readonly #rows = new StoredRows()
  readonly #loop: Promise<void>
  /** undefined: a share was missing when it was last looked at */
  #following: { readonly division: Division; readonly order: StreamOrder } | undefined
  #after = '0-0'
  /** not before that is a fleet read again that was not whole, unless news of it come */
  #againAt = 0

  /** Begins to load; `availability` says when there is something. Until then every answer is empty. */
  constructor({
    connection,
    clock = systemClock,
    logger = silentLogger,
    random = Math.random,
    waitMs = 3_000,
    program = 'this program',
  }: RedisMirrorOptions) {
    super(clock)
    this.#logger = logger
    this.#random = random
    this.#waitMs = waitMs
    this.#program = program
    this.#reader = redisClient(connection, (reason) => this.noteTrouble(reason))
    // Its command waits by itself for that long; a dead connection is left after as little more as any other.
    const followerTimeoutMs = (connection.commandTimeoutMs ?? COMMAND_TIMEOUT_MS) + waitMs
    this.#follower = redisClient({ ...connection, commandTimeoutMs: followerTimeoutMs }, (reason) =>
      this.noteTrouble(reason),
    )
    this.alertsReader = new AlertsReader(this.#reader, clock)
    this.#loop = this.#run()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closing.abort()
    await Promise.all([closeRedis(this.#reader), closeRedis(this.#follower)])
    await this.#loop
    this.forgetListeners()
  }

  /** Whether this program may read it; where not, that is what it says from now on. */
  #canRead(format: unknown, exists: unknown): boolean {
    try {
      const { level, sentence } = formatDecided(format, exists, this.#program)
      if (level === 'warn' && sentence) this.#logger.warn({}, sentence)
      return true
    } catch (error) {
      if (!(error instanceof StoredFormatError)) throw error
      this.#following = undefined
      this.noteMissing(error.message)
      return false
    }
  }

  async #noteMissing(division: Division): Promise<void> {
    this.noteMissing(await whatIsMissing(this.#reader, division))
  }

  async #run(): Promise<void> {
    const { signal } = this.closing
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
        this.noteTrouble(reason)
        this.#logger.warn({ reason, attempt }, 'Redis cannot be followed: trying again')
        await this.clock.sleep(50 + backoffMs(attempt, { fromMs: 100, toMs: 2_000, random: this.#random }), signal)
      }
    }
  }

  async #connect(): Promise<void> {
    for (const redis of [this.#reader, this.#follower]) {
      if (redis.status === 'wait' || redis.status === 'end') await redis.connect()
      else if (redis.status !== 'ready') await becomesReady(redis, this.closing.signal)
    }
  }

  async #reload(): Promise<void> {
    const [newest, counts, format, exists] = await transaction(this.#reader, [
      ['XREVRANGE', own.changes, '+', '-', 'COUNT', 1],
      ['HGETALL', own.writers],
      ...formatCommands,
    ])
    const entry = entriesOf(newest)[0]
    this.#after = entry?.id ?? '0-0'
    // Looked at again later, whatever else is written meanwhile.
    if (!this.#canRead(format, exists)) return this.clock.sleep(this.#waitMs, this.closing.signal)
    const loaded = await loadFleet(this.#reader, this.#rows, { logger: this.#logger })
    if (!isWhole(loaded.division)) {
      // Empty, or a part of it, and the manager has not filled it yet. That must not look like an empty fleet.
      await this.#noteMissing(loaded.division)
      this.#following = undefined
      this.#againAt = 0
      return
    }
    const fault = faultOf(loaded)
    if (fault !== undefined) {
      // What was read before is more than what is there.
      this.#logger.error({ clusters: loaded.unreadable }, fault)
      this.noteMissing(fault)
      this.#following = undefined
      this.#againAt = this.clock.now() + FAULT_MS
      return this.#report(loaded.unreadable)
    }
    const order = new StreamOrder(loaded.division.generations, writersOf(counts, entry))
    this.#following = { division: loaded.division, order }
    const gone = this.memory.clusters().filter(({ name }) => !loaded.clusters.has(name))
    const clusters = new Map<ClusterName, ClusterState | undefined>(gone.map(({ name }) => [name, undefined]))
    for (const [name, state] of loaded.clusters) clusters.set(name, state)
    this.#keep(clusters)
    await this.alertsReader.refresh()
  }

  async #follow(): Promise<void> {
    const reply = await this.#follower.xread('COUNT', COUNT, 'BLOCK', this.#waitMs, 'STREAMS', own.changes, this.#after)
    const entries = entriesOf((reply as [string, unknown][] | null)?.[0]?.[1])
    if (entries.length === 0) return this.#lookAfter()
    const touched = new Map<ClusterName, Entry>()
    for (const entry of entries) {
      const why = this.#following?.order.take(entry)
      if (why !== undefined) throw new Reload(why)
      this.#after = entry.id
      if (isClusterName(entry.cluster)) touched.set(entry.cluster, entry)
    }
    if (!this.#following) {
      this.#againAt = 0
      return this.#lookAfter()
    }
    await this.#fetch(touched)
    await this.alertsReader.refresh()
  }

  /** Nothing new: is it quiet, or is the data gone, or there again? */
  async #lookAfter(): Promise<void> {
    const [hash, text] = await transaction(this.#reader, divisionCommands)
    const division = divisionOf(hash, text)
    if (!this.#following) {
      if (!isWhole(division)) return this.#noteMissing(division)
      if (this.clock.now() < this.#againAt) return
      throw new Reload('Redis may hold all of it again')
    }
    if (!isSameDivision(division, this.#following.division)) throw new Reload('Redis was filled anew or emptied')
    await this.alertsReader.refresh()
    this.seen = { state: 'available' }
  }

  async #fetch(touched: ReadonlyMap<ClusterName, Entry>): Promise<void> {
    const wanted = [...touched].filter(
      ([name, entry]) => this.memory.cluster(name)?.version !== entry.version || entry.op !== 'put',
    )
    const clusters = new Map<ClusterName, ClusterState | undefined>()
    const unreadable: ClusterName[] = []
    for (const [name, { op }] of wanted) if (op === 'remove') clusters.set(name, undefined)
    const put = wanted.flatMap(([name, { op }]) => (op === 'remove' ? [] : [name]))
    for (let from = 0; from < put.length; from += CHUNK) {
      const names = put.slice(from, from + CHUNK)
      const hashes = await pipelined(
        this.#reader,
        names.map((name): Command => ['HGETALL', own.cluster(name)]),
      )
      for (const [i, name] of names.entries()) {
        const known = this.memory.cluster(name)?.tables
        const options = { known, onDamage: damageLogger(name, this.#logger) }
        const state = decodeCluster(hashOf(hashes[i]), this.#rows, options)
        if (state) clusters.set(name, state)
        else unreadable.push(name)
      }
    }
    this.#keep(clusters)
    if (unreadable.length > 0) throw new Reload(`what Redis holds of ${unreadable.join(', ')} cannot be read`)
  }

  /** Asks the owners to write these again. */
  async #report(unreadable: readonly ClusterName[]): Promise<void> {
    if (unreadable.length === 0) return
    await pipelined(this.#reader, [['SADD', own.damaged, ...unreadable]]).catch((error: unknown) =>
      this.#logger.warn(
        { error: redisUnavailable(error).message },
        'the manager cannot be asked to write clusters again',
      ),
    )
  }

  #keep(clusters: ReadonlyMap<ClusterName, ClusterState | undefined>): void {
    // A count of our own: what we read of one cluster may be newer than the entry that told of another. It begins with the
    // time, so that a version of a former process never comes again.
    this.take(clusters, this.isLoaded ? this.memory.version() + 1 : this.clock.now())
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
    const { op, c: cluster = '', v, o = '1', g: generation = '', s: writer = '', n } = fields
    if (op === undefined) return []
    return [{ id, op, cluster, version: Number(v), owner: Number(o), generation, writer, count: Number(n) }]
  })
}

/** Who wrote what was there before an entry came after `newest`. A version that counts nowhere else is alone. */
function writersOf(counts: unknown, newest: Entry | undefined): Map<number, Writer> {
  const writers = new Map<number, Writer>()
  for (const [index, text] of Object.entries(hashOf(counts))) {
    const [name = '', count = ''] = text.split(' ')
    writers.set(Number(index), { name, count: Number(count) })
  }
  if (newest) writers.set(newest.owner, { name: newest.writer, count: newest.count })
  return writers
}
