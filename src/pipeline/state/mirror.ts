import {
  type ChangeStep,
  type Clock,
  type ClusterName,
  type ClusterState,
  isClusterName,
  StoredFormatError,
  systemClock,
  type Table,
} from '#model'
import {
  COMMAND_TIMEOUT_MS,
  closeRedis,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  transaction,
} from '#redis'
import { backoffMs, type Logger, silentLogger } from '#runtime'
import { ClusterReader } from './cluster-reader.ts'
import { FollowedFleet } from './followed-fleet.ts'
import { PendingSteps, pastSteps, StaleCluster } from './pending-steps.ts'
import { AlertsReader, hashOf } from './redis-alerts.ts'
import { type Entry, entriesOf, nameOf } from './redis-entry.ts'
import { formatCommands, formatDecided } from './redis-format.ts'
import { own } from './redis-keys.ts'
import { faultOf, loadFleet, whatIsMissing } from './redis-load.ts'
import { type Division, divisionCommands, divisionOf, isSameDivision, isWhole } from './redis-owners.ts'
import { OwnerPulses, readPulses } from './redis-pulse.ts'
import { StoredRows } from './stored-rows.ts'
import { StreamOrder, type Writer } from './stream-order.ts'
import type { Availability } from './types.ts'

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
/** Steps of before this process that are kept for those who come back. */
const PAST = 500
/** Where a cluster was read too early: how long one look waits for the entries up to it, ms. */
const SOON_MS = 20
/** And how long nothing is told at most; then it is told by a name that only this process knows. */
const AHEAD_MS = 500
/** Between two tries to read a fleet that is not whole, where nobody says that something was written, ms. */
const FAULT_MS = 30_000

/** Pages of the stream that are taken before a state counts as that of no entry. */
const MAX_PAGES = 50

type Hashes = ReadonlyMap<ClusterName, Readonly<Record<string, string>>>

/** The stream cannot be followed on from here: everything is to be read again. */
class Reload extends Error {}

/**
 * The fleet as other processes wrote it to Redis, in the memory of this one: one that owns it all, or several of which each
 * writes its share. Reads never wait. An entry of the stream says itself what it changed; what it only names is read again. While
 * Redis is away the last picture stays and says so; when it is back, or a piece of the stream is missing, all is read again and
 * only the differences are told.
 *
 *   loading ─► available ◄─► unavailable
 */
export class RedisMirror extends FollowedFleet implements AsyncDisposable {
  readonly #redis: Redis
  /** blocks on the stream, so it has a connection of its own */
  readonly #follower: Redis
  protected readonly alertsReader: AlertsReader
  readonly #logger: Logger
  readonly #random: () => number
  readonly #waitMs: number
  readonly #program: string
  readonly #rows = new StoredRows()
  readonly #reader: ClusterReader
  readonly #pulses: OwnerPulses
  readonly #loop: Promise<void>
  readonly #listening: Promise<void>
  #alerts: Promise<void> | undefined
  /** undefined: a share was missing when it was last looked at */
  #following: { readonly division: Division; readonly order: StreamOrder } | undefined
  /** id of the entry taken last */
  #after = '0-0'
  /** the entry taken last; undefined: there was none */
  #last: Entry | undefined
  #pending: PendingSteps
  /** since when the state is that of no entry; undefined: it is that of the last one */
  #aheadSince: number | undefined
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
    this.#redis = redisClient(connection, (reason) => this.noteTrouble(reason))
    // Its command waits by itself for that long; a dead connection is left after as little more as any other.
    const followerTimeoutMs = (connection.commandTimeoutMs ?? COMMAND_TIMEOUT_MS) + waitMs
    this.#follower = redisClient({ ...connection, commandTimeoutMs: followerTimeoutMs }, (reason) =>
      this.noteTrouble(reason),
    )
    this.#reader = new ClusterReader(this.#redis, this.#rows, logger)
    this.#pending = new PendingSteps((name) => this.memory.cluster(name), this.#rows)
    this.alertsReader = new AlertsReader(this.#redis, clock)
    this.#pulses = new OwnerPulses(clock)
    this.#loop = this.#run()
    this.#listening = this.#listen()
  }

  override availability(): Availability {
    const seen = super.availability()
    const silent = seen.state === 'available' ? this.#pulses.silent(this.#following?.division.count ?? 0) : undefined
    return silent ? { state: 'available', silent } : seen
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closing.abort()
    await Promise.all([closeRedis(this.#redis), closeRedis(this.#follower)])
    await Promise.all([this.#loop, this.#listening, this.#alerts])
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
    this.noteMissing(await whatIsMissing(this.#redis, division))
  }

  async #run(): Promise<void> {
    const { signal } = this.closing
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        await this.#connect()
        await this.#withoutStale(this.#reload())
        attempt = 0
        while (!signal.aborted) await this.#withoutStale(this.#follow())
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

  /** Whether owners live, also while others of them write without a pause. */
  async #listen(): Promise<void> {
    const { signal } = this.closing
    while (!signal.aborted) {
      const askedAt = this.clock.now()
      if (this.#redis.status === 'ready')
        await pipelined(this.#redis, [readPulses]).then(
          ([hash]) => this.#pulses.take(hashOf(hash), askedAt),
          () => this.#pulses.forget(),
        )
      else this.#pulses.forget()
      await this.clock.sleep(this.#waitMs, signal)
    }
  }

  async #connect(): Promise<void> {
    for (const redis of [this.#redis, this.#follower]) {
      if (redis.status === 'wait' || redis.status === 'end') await redis.connect()
      else if (redis.status !== 'ready') await becomesReady(redis, this.closing.signal)
    }
  }

  async #reload(): Promise<void> {
    const [newest, counts, format, exists] = await transaction(this.#redis, [
      ['XREVRANGE', own.changes, '+', '-', 'COUNT', 1],
      ['HGETALL', own.writers],
      ...formatCommands,
    ])
    const entry = entriesOf(newest)[0]
    this.#last = entry
    this.#after = entry?.id ?? '0-0'
    // Looked at again later, whatever else is written meanwhile.
    if (!this.#canRead(format, exists)) return this.clock.sleep(this.#waitMs, this.closing.signal)
    const loaded = await loadFleet(this.#redis, this.#rows, { logger: this.#logger })
    if (!isWhole(loaded.division)) {
      // Empty, or a part of it, and the manager has not filled it yet. That must not look like an empty fleet.
      await this.#noteMissing(loaded.division)
      this.#following = undefined
      this.#againAt = 0
      return
    }
    const fault = faultOf(loaded)
    if (fault !== undefined) return this.#noteFault(fault, loaded.unreadable)
    const order = new StreamOrder(loaded.division.generations, writersOf(counts, entry))
    this.#following = { division: loaded.division, order }
    const pending = new PendingSteps((name) => loaded.clusters.get(name), this.#rows)
    await this.#catchUp(pending)
    const gone = this.memory.clusters().filter(({ name }) => !loaded.clusters.has(name))
    const clusters = new Map<ClusterName, ClusterState | undefined>(gone.map(({ name }) => [name, undefined]))
    for (const [name, state] of [...loaded.clusters, ...pending.clusters]) clusters.set(name, state)
    const past = this.isLoaded || !pending.isExact ? [] : await this.#past(loaded.division)
    this.take(clusters, this.#nextVersion(), { id: this.#nameOf(pending), past })
    this.#goOn(pending)
    this.#refreshAlerts()
  }

  /** What was read cluster by cluster becomes the state after one entry, the newest. */
  async #catchUp(pending: PendingSteps): Promise<void> {
    for (let page = 0; page < MAX_PAGES; page++) {
      const [reply] = await pipelined(this.#redis, [['XRANGE', own.changes, `(${this.#after}`, '+', 'COUNT', COUNT]])
      const entries = entriesOf(reply)
      const hashes = await this.#unsaid(entries)
      for (const entry of entries) await this.#takeOne(entry, pending, hashes)
      if (entries.length < COUNT && pending.isExact) return
    }
  }

  /** What the stream tells of before. */
  async #past({ generations }: Division): Promise<ChangeStep[]> {
    if (!this.#last) return []
    const [reply] = await pipelined(this.#redis, [['XREVRANGE', own.changes, this.#last.id, '-', 'COUNT', PAST]])
    return pastSteps(entriesOf(reply), generations)
  }

  async #follow(): Promise<void> {
    const waitMs = this.#following && !this.#pending.isExact ? SOON_MS : this.#waitMs
    const reply = await this.#follower.xread('COUNT', COUNT, 'BLOCK', waitMs, 'STREAMS', own.changes, this.#after)
    const entries = entriesOf((reply as [string, unknown][] | null)?.[0]?.[1])
    if (!this.#following && entries.length > 0) {
      this.#after = entries.at(-1)?.id ?? this.#after
      this.#againAt = 0
    }
    if (!this.#following || (entries.length === 0 && this.#pending.isExact)) return this.#lookAfter()
    const hashes = await this.#unsaid(entries)
    for (const entry of entries) {
      await this.#takeOne(entry, this.#pending, hashes)
      if (this.#pending.isExact) this.#tell()
    }
    if (!this.#pending.isExact) this.#tellLate()
    this.#refreshAlerts()
  }

  /** Hashes of clusters of which an entry says nothing but that they moved. */
  #unsaid(entries: readonly Entry[]): Promise<Hashes> {
    const unsaid = entries.filter(({ op, step, isAgain }) => op === 'put' && !step && !isAgain)
    return this.#reader.hashes([...new Set(unsaid.map(({ cluster }) => cluster).filter(isClusterName))])
  }

  /** @throws Reload, StaleCluster, StoreUnavailableError */
  async #takeOne(entry: Entry, pending: PendingSteps, hashes: Hashes): Promise<void> {
    const why = this.#following?.order.take(entry)
    if (why !== undefined) throw new Reload(why)
    this.#pulses.wrote(entry.owner, entry.writer)
    // Also where it cannot be taken: it is no news to wait for then.
    this.#after = entry.id
    let needed = pending.take(entry)
    const name = entry.cluster as ClusterName // of others nothing is needed
    if (typeof needed === 'object') {
      const { version, read } = await this.#reader.fields(name, needed)
      needed = pending.give(entry, version, read)
    }
    if (needed === 'all') {
      const hash = hashes.get(name) ?? (await this.#reader.hashes([name])).get(name) ?? {}
      const isGone = Object.keys(hash).length === 0
      const state = this.#reader.state(name, hash, pending.cluster(name))
      if (!state && !isGone) throw new Reload(`what Redis holds of ${name} cannot be read`)
      pending.giveAll(entry, state)
    }
    this.#last = entry
  }

  /** The state is that of the entry taken last. */
  #tell(): void {
    const pending = this.#pending
    if (pending.isSaid) this.takeSteps(pending.clusters, this.#nextVersion(), pending.steps)
    else this.take(pending.clusters, this.#nextVersion(), { id: this.#nameOf(pending) })
    this.#goOn(pending)
  }

  /** It is that of none, and was not for long: by a name of our own, rather than not at all. */
  #tellLate(): void {
    const pending = this.#pending
    this.#aheadSince ??= this.clock.now()
    if (this.clock.now() - this.#aheadSince < AHEAD_MS) return
    if (pending.lacksOne) throw new Reload('a cluster is gone from Redis, and nobody said so')
    this.take(pending.clusters, this.#nextVersion())
    this.#goOn(pending)
  }

  #goOn(pending: PendingSteps): void {
    if (pending.isExact) this.#aheadSince = undefined
    this.#pending = pending.next((name) => this.memory.cluster(name))
  }

  #nameOf({ isExact }: PendingSteps): string | undefined {
    return isExact && this.#last ? nameOf(this.#last) : undefined
  }

  // A count of our own: what we read of one cluster may be newer than the entry that told of another. It begins with the
  // time, so that a version of a former process never comes again.
  #nextVersion(): number {
    return this.isLoaded ? this.memory.version() + 1 : this.clock.now()
  }

  protected override keepTable(came: Table, shares: Table): Table {
    return this.#rows.keep(came, shares)
  }

  /** Beside what moves: it may take its time. */
  #refreshAlerts(): void {
    this.#alerts ??= this.alertsReader
      .refresh()
      .catch((error: unknown) =>
        this.#logger.warn({ reason: redisUnavailable(error).reason }, 'alerts cannot be read from Redis'),
      )
      .finally(() => {
        this.#alerts = undefined
      })
  }

  /** Nothing new: is it quiet, or is the data gone, or there again? */
  async #lookAfter(): Promise<void> {
    const [hash, text] = await transaction(this.#redis, divisionCommands)
    const division = divisionOf(hash, text)
    if (!this.#following) {
      if (!isWhole(division)) return this.#noteMissing(division)
      if (this.clock.now() < this.#againAt) return
      throw new Reload('Redis may hold all of it again')
    }
    if (!isSameDivision(division, this.#following.division)) throw new Reload('Redis was filled anew or emptied')
    this.#refreshAlerts()
    this.noteHeard()
  }

  /** What is older than what was told is written again by its owner; until then what was read before stays. */
  async #withoutStale(work: Promise<void>): Promise<void> {
    try {
      await work
    } catch (error) {
      if (!(error instanceof StaleCluster)) throw error
      await this.#noteFault(error.message, [error.cluster])
    }
  }

  /** What was read before is more than what is there. */
  #noteFault(fault: string, clusters: readonly ClusterName[]): Promise<void> {
    this.#logger.error({ clusters }, fault)
    this.noteMissing(fault)
    this.#following = undefined
    this.#againAt = this.clock.now() + FAULT_MS
    return this.#report(clusters)
  }

  /** Asks the owners to write these again. */
  async #report(unreadable: readonly ClusterName[]): Promise<void> {
    if (unreadable.length === 0) return
    await pipelined(this.#redis, [['SADD', own.damaged, ...unreadable]]).catch((error: unknown) =>
      this.#logger.warn(
        { error: redisUnavailable(error).message },
        'the manager cannot be asked to write clusters again',
      ),
    )
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
