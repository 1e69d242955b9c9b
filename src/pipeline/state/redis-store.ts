import { randomBytes } from 'node:crypto'
import {
  type Change,
  type Clock,
  type ClusterName,
  type ClusterState,
  documentText,
  eventDocument,
  type FleetEvent,
  isClusterName,
  type OwnerPlace,
  owns,
  StoreUnavailableError,
  soleOwner,
  systemClock,
} from '#model'
import {
  type Command,
  closeRedis,
  escapeGlob,
  NO_CONNECTION,
  pipelined,
  type Redis,
  type RedisConnection,
  redisClient,
  redisUnavailable,
  scanKeys,
} from '#redis'
import { type Logger, silentLogger } from '#runtime'
import { stepText } from './cluster-step.ts'
import { clusterOf, disappearance } from './fleet.ts'
import { type Draft, FleetMemory } from './memory.ts'
import { DOCUMENTS_EVERY_MS, restAfterDocumentsMs, restAfterMs } from './pace.ts'
import { AlertsReader } from './redis-alerts.ts'
import {
  announcements,
  type DocumentSettings,
  documentCommands,
  EVENT_CHANNEL,
  mustBeShown,
  type Written,
} from './redis-documents.ts'
import { bytesOfEntry, entryCommands, type Told } from './redis-entry.ts'
import { formatKept } from './redis-format.ts'
import { own } from './redis-keys.ts'
import { loadFleet } from './redis-load.ts'
import { LostClusters } from './redis-lost.ts'
import { namesText, namesWrites } from './redis-names.ts'
import {
  type Division,
  newGeneration,
  refuseFormer,
  refuseOthers,
  shareBegins,
  shareWrites,
  whileDivided,
  writerWrites,
} from './redis-owners.ts'
import { pulseCommands } from './redis-pulse.ts'
import { changedFields } from './stored.ts'
import { StoredRows } from './stored-rows.ts'
import type { Availability, StateRecord, StateStore } from './types.ts'

/** How state is written to Redis. */
export interface RedisStateOptions extends Partial<DocumentSettings> {
  readonly connection: RedisConnection
  /** id of the hub's log whose positions are given to `apply`: in another log they mean nothing */
  readonly logId?: string
  /** version of this program, kept beside what it writes; default: one without a number */
  readonly program?: string
  /** which part of the fleet this process writes; the others write theirs beside it; default: all of it */
  readonly owner?: OwnerPlace
  /** Where Redis lacks what is ours, nothing is written before `begin`: an empty fleet, or one of long ago, would be shown as that of now. */
  readonly waits?: boolean
  /** how often to look whether Redis is there and still has the data, ms; default 5 s */
  readonly checkEveryMs?: number
  /** entries kept in the stream for mirrors; default 10 000 */
  readonly streamLength?: number
  readonly clock?: Clock
  readonly logger?: Logger
}

/** What Redis has of a cluster, or its documents show; undefined: nothing. */
interface Former {
  readonly before: ClusterState | undefined
}

/** What is to be written of a cluster. */
interface Work {
  readonly after: ClusterState
  /** our own keys; absent: they have it */
  readonly state?: Former | undefined
  /** the documented keys; absent: they have it, or may wait */
  readonly documents?: Former | undefined
}

/** What makes Redis have the newest state of a cluster. */
interface Put extends Work {
  readonly name: ClusterName
  readonly commands: readonly Command[]
  /** of its documents */
  readonly written: Written | undefined
}

/** What documents show. */
interface Shown extends Former {
  /** whatever happened since was told */
  readonly isTold: boolean
}

/** How it is told: `step`: by what differs; `again`: it is as it was; `name`: it is to be read. */
type Telling = 'step' | 'again' | 'name'

/** Clusters written at once while others wait for their acknowledgement: fewer with documents, and where they are large. */
const AT_ONCE = 64
const AT_ONCE_WITH_DOCUMENTS = 8
const COMMANDS_AT_ONCE = 5_000
/** All entries of the stream, bytes, about. */
const STREAM_BYTES = 32 * 2 ** 20
/** Where nothing is to be written, how often to look whether documents are due, ms. */
const LOOK_MS = 500
const IDLE_MS = 60_000
const ENTRIES_AVERAGED = 64
const RETRY_MS = 500
const WARN_EVERY_MS = 10_000

/**
 * State in memory, written behind to Redis: our own keys, from which a restart and the mirrors of other processes read everything
 * back, and the documented ones for existing readers. Memory moves at once; of each cluster the newest state follows in one
 * transaction, and what came meanwhile with the next (pace.ts). Documents go with it where a round ended or something happened,
 * else some seconds later. The position is that of the last record whose state Redis has. What is removed is gone from Redis
 * before it is gone from memory. A Redis that lost its memory is filled from ours.
 *
 * Several owners write side by side, each the clusters it owns, and each marks its own share as whole. Nothing is written
 * into a Redis that owners of another division hold.
 */
export class RedisStateStore implements StateStore {
  readonly #redis: Redis
  readonly #alerts: AlertsReader
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #settings: DocumentSettings
  readonly #logId: string
  readonly #owner: OwnerPlace
  readonly #program: string
  readonly #checkEveryMs: number
  readonly #streamLength: number
  readonly #closing = new AbortController()
  /** names this writer in the stream; with the count of entries a follower notices a hole */
  readonly #writer = randomBytes(6).toString('hex')
  #entries = 0
  #memory = new FleetMemory(0)
  #generation: string | undefined
  /** what is written is all that is known */
  #hasBegun: boolean
  /** of the newest record in memory */
  #applied = -1
  /** of the newest record of which Redis has everything */
  #position = -1
  #unwritten = new Map<ClusterName, Former>()
  /** of which documents show a former state */
  #behind = new Map<ClusterName, Shown>()
  /** of those, what Redis lists as such */
  readonly #late = new Set<ClusterName>()
  readonly #documentedAt = new Map<ClusterName, number>()
  /** until then documents rest */
  #documentsRest: Promise<void> | undefined
  /** of an entry of the stream, bytes, on average */
  #entryBytes = 1_000
  readonly #written = new Map<ClusterName, Written>()
  readonly #lost: LostClusters
  readonly #rows = new StoredRows()
  /** of which a write failed: nobody knows what Redis took of it */
  readonly #uncertain = new Set<ClusterName>()
  /** clusters that Redis lists as ours */
  readonly #listed = new Set<ClusterName>()
  #wake: (() => void) | undefined
  #writing: Promise<void> | undefined
  #applying: Promise<unknown> = Promise.resolve()
  #warnedAt = Number.NEGATIVE_INFINITY
  #answeredAt: number
  #trouble: { since: number; reason: string } | undefined
  /** one writer at a time: apply, or the look after the data */
  #turn: Promise<unknown> = Promise.resolve()
  #watching: Promise<void> | undefined

  private constructor(options: RedisStateOptions) {
    const { connection, clock = systemClock, logger = silentLogger } = options
    this.#clock = clock
    this.#logger = logger
    const { ttlMs = 600_000, retentionMs = 3_600_000, lists } = options
    this.#settings = { ttlMs, retentionMs, lists }
    this.#logId = options.logId ?? 'hub'
    this.#owner = options.owner ?? soleOwner
    this.#program = options.program ?? 'this program'
    this.#hasBegun = options.waits !== true
    this.#checkEveryMs = options.checkEveryMs ?? 5_000
    this.#streamLength = options.streamLength ?? 10_000
    this.#answeredAt = clock.now()
    this.#redis = redisClient(connection, (reason) => this.#noteTrouble(reason))
    this.#alerts = new AlertsReader(this.#redis, clock)
    this.#lost = new LostClusters(this.#redis)
  }

  /**
   * Connects and loads what a former process left of the clusters that are ours.
   * @throws StoreUnavailableError when Redis does not answer or refuses, or when owners of another division hold it
   */
  static async open(options: RedisStateOptions): Promise<RedisStateStore> {
    const store = new RedisStateStore(options)
    try {
      await store.#redis.connect()
      await store.#begin()
      await store.#load()
      store.#answered()
    } catch (error) {
      store.#noteTrouble(redisUnavailable(error).reason)
      await closeRedis(store.#redis)
      throw new StoreUnavailableError('Redis', store.#trouble?.reason ?? NO_CONNECTION)
    }
    store.#watching = store.#watch()
    store.#writing = store.#writeBehind()
    return store
  }

  availability(): Availability {
    return this.#trouble ? { state: 'unavailable', ...this.#trouble } : { state: 'available' }
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

  position(): number {
    return this.#position
  }

  begin(): void {
    this.#hasBegun = true
    this.#wake?.()
  }

  sequence(cluster: ClusterName): number {
    return this.#memory.cluster(cluster)?.sequence ?? 0
  }

  apply(...[records, position, signal, onApplied]: Parameters<StateStore['apply']>): Promise<Change[]> {
    const turn = this.#applying.then(async () => {
      signal?.throwIfAborted()
      if (this.#hasBegun && records.some(({ kind }) => kind === 'removed'))
        return this.#applyThrough(records, position, onApplied)
      const draft = this.#memory.draft(records)
      for (const [name, after] of draft.clusters) {
        if (!after) continue
        const former = { before: this.#memory.cluster(name) }
        if (!this.#unwritten.has(name)) this.#unwritten.set(name, former)
        if (!this.#behind.has(name)) this.#behind.set(name, { ...former, isTold: false })
      }
      this.#memory.keep(draft)
      this.#applied = position
      this.#wake?.()
      onApplied?.(draft.changes)
      return draft.changes
    })
    this.#applying = turn.catch(() => undefined)
    return turn
  }

  /**
   * Writes what Redis does not have yet, without a rest before.
   * @throws StoreUnavailableError when Redis did not take it; it is tried again by itself
   */
  flush(): Promise<void> {
    return this.#inTurn(() => this.#flush(this.#behind))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    this.#wake?.()
    await Promise.all([this.#watching, this.#writing, this.#applying, this.#documentsRest])
    await this.#turn
    try {
      if (this.#hasBegun && (this.#isBehind() || this.#behind.size > 0)) await this.#flush(this.#behind)
    } catch (error) {
      this.#logger.warn({ error }, 'Redis did not take the newest state at the end: the next start reads the log again')
    }
    await closeRedis(this.#redis)
  }

  #isBehind(): boolean {
    return this.#applied !== this.#position || this.#unwritten.size > 0 || this.#generation === undefined
  }

  /** Memory moves when Redis has all of it, and not at all when it does not take it. */
  #applyThrough(
    records: readonly StateRecord[],
    position: number,
    onApplied: Parameters<StateStore['apply']>[3],
  ): Promise<Change[]> {
    return this.#inTurn(async () => {
      await this.#flush(this.#behind)
      const draft = this.#memory.draft(records)
      for (const record of records) {
        const before = this.#memory.cluster(clusterOf(record))
        if (record.kind !== 'removed' || !before) continue
        const events = disappearance(before.name, this.#clock.now()).flatMap((change) =>
          change.kind === 'event' ? [change.event] : [],
        )
        await this.#remove(before.name, draft.version, (division) => this.#isOurs(division), events)
      }
      const removed = new Set(records.filter(({ kind }) => kind === 'removed').map(clusterOf))
      const works = [...draft.clusters].flatMap(([name, after]): Work[] => {
        const former = { before: removed.has(name) ? undefined : this.#memory.cluster(name) }
        return after ? [{ after, state: former, documents: former }] : []
      })
      await this.#write(works, draft, position)
      this.#memory.keep(draft)
      this.#applied = position
      this.#position = position
      onApplied?.(draft.changes)
      return draft.changes
    })
  }

  /** @param documents those that are to be written as well */
  async #flush(documents: ReadonlyMap<ClusterName, Shown>): Promise<void> {
    const unwritten = this.#unwritten
    const shown = new Map(documents)
    const position = this.#applied
    this.#unwritten = new Map()
    for (const name of shown.keys()) this.#behind.delete(name)
    const works = [...new Set([...unwritten.keys(), ...shown.keys()])].flatMap((name): Work[] => {
      const after = this.#memory.cluster(name)
      return after ? [{ after, state: unwritten.get(name), documents: shown.get(name) }] : []
    })
    try {
      await this.#write(works, { clusters: new Map(), version: this.#memory.version() }, position)
      this.#position = position
    } catch (error) {
      for (const { after } of works) this.#forget(after.name) // some of it may be there
      for (const [name, former] of unwritten) this.#unwritten.set(name, former)
      for (const [name, former] of shown) this.#behind.set(name, former)
      throw error
    }
  }

  /** One flush after the other; after each a rest, longer where writing is slow: acknowledgements come first. */
  async #writeBehind(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      const due = this.#documentsRest ? new Map<ClusterName, Shown>() : this.#due()
      if (!this.#hasBegun || (!this.#isBehind() && due.size === 0)) {
        const awake = new AbortController()
        this.#wake = () => awake.abort()
        await this.#clock.sleep(this.#behind.size > 0 ? LOOK_MS : IDLE_MS, awake.signal)
        this.#wake = undefined
        continue
      }
      const began = this.#clock.now()
      const isWritten = await this.#inTurn(() => this.#flush(due)).then(
        () => true,
        (error: unknown) => this.#warn(error),
      )
      const tookMs = this.#clock.now() - began
      if (isWritten && due.size > 0) this.#restDocuments(restAfterDocumentsMs(tookMs))
      await this.#clock.sleep(isWritten ? restAfterMs(tookMs) : RETRY_MS, signal)
    }
  }

  #restDocuments(ms: number): void {
    this.#documentsRest = this.#clock.sleep(ms, this.#closing.signal).then(() => {
      this.#documentsRest = undefined
      this.#wake?.()
    })
  }

  /** Documents that have waited long enough, or must not wait. */
  #due(): Map<ClusterName, Shown> {
    const now = this.#clock.now()
    const due = new Map<ClusterName, Shown>()
    for (const [name, shown] of this.#behind) {
      const after = this.#memory.cluster(name)
      const isOld = now - (this.#documentedAt.get(name) ?? Number.NEGATIVE_INFINITY) >= DOCUMENTS_EVERY_MS
      if (after && (isOld || !shown.before || mustBeShown(shown.before, after))) due.set(name, shown)
    }
    return due
  }

  #warn(error: unknown): false {
    const now = this.#clock.now()
    if (now - this.#warnedAt < WARN_EVERY_MS) return false
    this.#warnedAt = now
    this.#logger.warn({ error: redisUnavailable(error).message }, 'Redis does not take the state yet')
    return false
  }

  // Failures of the store are kept for `availability`; the turn itself always ends well for the next in line.
  async #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(action)
    this.#turn = turn.catch(() => undefined)
    try {
      const value = await turn
      this.#answered()
      return value
    } catch (error) {
      if (error instanceof StoreUnavailableError) this.#noteTrouble(error.reason)
      throw error
    }
  }

  #answered(): void {
    this.#trouble = undefined
    this.#answeredAt = this.#clock.now()
  }

  #noteTrouble(reason: string): void {
    if (this.#closing.signal.aborted) return
    const known = this.#trouble
    this.#trouble = {
      since: known?.since ?? this.#answeredAt,
      reason: reason === NO_CONNECTION ? (known?.reason ?? reason) : reason,
    }
  }

  async #write(works: readonly Work[], draft: Pick<Draft, 'clusters' | 'version'>, position: number): Promise<void> {
    const last = () => this.#wholeCommands(draft.version, position)
    const isTaken = await this.#putAll(works, last, (division) => this.#isOurs(division))
    if (!isTaken) await this.#writeAll(draft, position)
  }

  #wholeCommands(version: number, position: number): Command[] {
    return [
      ['SET', own.version, version],
      ['HSET', own.positions, this.#logId, position],
    ]
  }

  /** @throws StoreUnavailableError where it is none of our business */
  #refuse(division: Division): void {
    refuseOthers(division, this.#owner)
    refuseFormer(division, this.#owner, this.#writer)
  }

  /** Whether our share is there. @throws StoreUnavailableError where it is none of our business */
  #isOurs(division: Division): boolean {
    this.#refuse(division)
    return this.#generation !== undefined && division.generations.get(this.#owner.index) === this.#generation
  }

  /**
   * Some clusters, and with the last of them what goes with all.
   * @returns false as soon as `mayWrite` said so: the rest is not written
   */
  async #putAll(
    all: readonly Work[],
    last: () => readonly Command[],
    mayWrite: (division: Division) => boolean,
    telling: Telling = 'step',
  ): Promise<boolean> {
    for (let from = 0; from === 0 || from < all.length; ) {
      const puts: Put[] = []
      for (let [size, room] = [0, AT_ONCE]; from < all.length && room > 0 && size < COMMANDS_AT_ONCE; from++) {
        const work = all[from] as Work // from < length
        const put = this.#put(work, telling)
        puts.push(put)
        size += put.commands.length
        room -= work.documents ? AT_ONCE / AT_ONCE_WITH_DOCUMENTS : 1
      }
      const commands = puts.flatMap((put) => put.commands)
      const names = puts.map(({ name }) => name)
      if (names.some((name) => !this.#listed.has(name)))
        commands.push(namesWrites(this.#owner, new Set([...this.#listed, ...names])))
      const isLast = from >= all.length
      const isTaken = await this.#take(isLast ? [...commands, ...last()] : commands, mayWrite).catch(
        (error: unknown) => {
          for (const name of names) this.#forget(name) // it may be there
          throw error
        },
      )
      if (!isTaken) return false
      for (const put of puts) this.#taken(put)
      if (isLast) return true
    }
    return true
  }

  #taken({ name, state, documents, written, commands }: Put): void {
    const now = this.#clock.now()
    this.#listed.add(name)
    this.#lost.taken(name, commands, { isWhole: state !== undefined && !state.before && documents !== undefined, now })
    if (state) this.#uncertain.delete(name)
    if (!documents) {
      this.#late.add(name)
      return
    }
    this.#late.delete(name)
    this.#documentedAt.set(name, now)
    if (written) this.#written.set(name, written)
  }

  #forget(name: ClusterName): void {
    this.#uncertain.add(name)
    this.#written.delete(name)
    this.#late.delete(name)
    this.#lost.forget(name)
  }

  async #take(commands: readonly Command[], mayWrite: (division: Division) => boolean): Promise<boolean> {
    const taken = await whileDivided(this.#redis, (division) => {
      if (!mayWrite(division)) return undefined
      const ours = [...commands, writerWrites(this.#owner, this.#writer)]
      // A former version was here before us, and may be again: both find the mark where they look for it.
      if (division.isOneSided && this.#owner.of === 1 && this.#generation !== undefined) {
        const share = [...shareWrites(this.#owner, this.#generation), namesWrites(this.#owner, this.#listed)]
        return [['DEL', own.owners], ...share, ...ours]
      }
      return division.writers.has(this.#owner.index) ? commands : ours
    })
    return taken !== undefined
  }

  #put(work: Work, telling: Telling): Put {
    const { after, state, documents } = work
    const { name } = after
    const now = this.#clock.now()
    const isCertain = !this.#uncertain.has(name)
    const known = this.#written.get(name)
    const made = documents && documentCommands(documents.before, after, now, this.#settings, known)
    const isListed = state?.before && known && isCertain
    const commands: Command[] = [
      ...(made?.commands ?? []),
      ...(state ? this.#stateCommands(after, isCertain ? state.before : undefined, isCertain ? telling : 'name') : []),
      ...(isListed || !state ? [] : [['SADD', own.clusters, name] satisfies Command]),
      ...(documents ? this.#announced(documents, after, telling) : []),
      ...this.#lateness(name, documents !== undefined, isCertain),
    ]
    return { ...work, name, commands, written: made?.written }
  }

  #stateCommands(after: ClusterState, before: ClusterState | undefined, telling: Telling): Command[] {
    const { name, version } = after
    const fields = changedFields(before, after, this.#rows)
    const gone = [...fields].flatMap(([field, text]) => (text === undefined ? [field] : []))
    const put = [...fields].flatMap(([field, text]) => (text === undefined ? [] : [field, text]))
    const step = telling === 'step' ? stepText(before, after, fields) : undefined
    return [
      ...(before ? [] : [['DEL', own.cluster(name)] satisfies Command]),
      ['HSET', own.cluster(name), ...put],
      ...(gone.length > 0 ? [['HDEL', own.cluster(name), ...gone] satisfies Command] : []),
      ...this.#entry({ op: 'put', cluster: name, version, step, isAgain: telling === 'again' }),
    ]
  }

  #announced(documents: Former | Shown, after: ClusterState, telling: Telling): Command[] {
    if (telling !== 'step' || ('isTold' in documents && documents.isTold)) return []
    return announcements(documents.before, after, this.#clock.now())
  }

  /** Who starts after us writes documents of which it is said that they are late. */
  #lateness(name: ClusterName, hasDocuments: boolean, isCertain: boolean): Command[] {
    if (!hasDocuments) return this.#late.has(name) ? [] : [['SADD', own.late, name]]
    return this.#late.has(name) || !isCertain ? [['SREM', own.late, name]] : []
  }

  // Our own record of the cluster goes last: while it is there, a repeat removes the rest again.
  async #remove(
    name: ClusterName,
    version: number,
    mayWrite: (division: Division) => boolean,
    events: readonly FleetEvent[],
  ): Promise<boolean> {
    this.#forget(name)
    this.#documentedAt.delete(name)
    for await (const keys of scanKeys(this.#redis, `cluster:${escapeGlob(name)}:*`)) {
      if (!(await this.#take([['UNLINK', ...keys]], mayWrite))) return false
    }
    const last: Command[] = [
      ['SREM', 'clusters:all', name],
      ['SREM', own.clusters, name],
      ['SREM', own.damaged, name],
      ['SREM', own.late, name],
      ['DEL', own.cluster(name), `events:${name}`],
      namesWrites(
        this.#owner,
        [...this.#listed].filter((other) => other !== name),
      ),
      ...this.#entry({ op: 'remove', cluster: name, version }),
      ...events.map((event): Command => ['PUBLISH', EVENT_CHANNEL, documentText(eventDocument(event))]),
    ]
    const isTaken = await this.#take(last, mayWrite)
    if (isTaken) {
      this.#listed.delete(name)
      this.#uncertain.delete(name)
    }
    return isTaken
  }

  /** Redis lost its memory, or was divided anew: all of ours goes there, with a new mark at the end. */
  async #writeAll(draft: Pick<Draft, 'clusters' | 'version'>, position: number): Promise<void> {
    const names = new Set([...this.#memory.clusters().map(({ name }) => name), ...draft.clusters.keys()])
    const states = [...names].flatMap((name): Work[] => {
      const after = draft.clusters.has(name) ? draft.clusters.get(name) : this.#memory.cluster(name)
      return after ? [wholly(after)] : []
    })
    const facts = { clusters: states.length }
    // At a first start nothing was lost: this process found none of it there.
    if (this.#generation === undefined)
      this.#logger.info(facts, 'Redis holds nothing of this hub yet, or not all of it: it is written')
    else this.#logger.warn(facts, 'Redis does not hold our data: all of it is written again')
    // That is among it; what comes meanwhile is a step from here.
    const unwritten = this.#unwritten
    this.#unwritten = new Map()
    try {
      await this.#writeStates(states, draft.version, position)
    } catch (error) {
      for (const [name, former] of unwritten) this.#unwritten.set(name, former)
      throw error
    }
  }

  async #writeStates(states: readonly Work[], version: number, position: number): Promise<void> {
    const { index } = this.#owner
    this.#generation = undefined
    const mark = newGeneration()
    await whileDivided(this.#redis, (division) => {
      this.#refuse(division)
      const writer = writerWrites(this.#owner, this.#writer)
      return [...shareBegins(this.#owner, mark), writer, formatKept(this.#program)]
    })
    const generation = newGeneration()
    this.#listed.clear()
    const present = new Set<string>(states.map(({ after }) => after.name))
    const last = () => [
      ...this.#wholeCommands(version, position),
      namesWrites(this.#owner, present),
      ...shareWrites(this.#owner, generation),
      ...this.#entry({ op: 'reload', cluster: '', version }, generation),
    ]
    // Without the mark Redis lost its memory once more: what was written before that is missing.
    const isStillOurs = (division: Division) => {
      this.#refuse(division)
      return division.writing.get(index) === mark
    }
    const isTaken =
      (await this.#removeOthers(present, version, isStillOurs)) &&
      (await this.#putAll(states, last, isStillOurs, 'name'))
    if (!isTaken) throw new StoreUnavailableError('Redis', 'it lost its data while they were written again')
    this.#generation = generation
  }

  /** What Redis has of clusters of ours that we do not: it came back with an old memory. */
  async #removeOthers(
    present: ReadonlySet<string>,
    version: number,
    mayWrite: (division: Division) => boolean,
  ): Promise<boolean> {
    const [names] = (await pipelined(this.#redis, [['SMEMBERS', own.clusters]])) as [string[]]
    for (const name of names.filter(isClusterName)) {
      if (present.has(name) || !owns(this.#owner, name)) continue
      if (!(await this.#remove(name, version, mayWrite, []))) return false
    }
    return true
  }

  #entry(told: Told, generation = this.#generation ?? ''): Command[] {
    this.#entries++
    const length = Math.max(1, Math.min(this.#streamLength, Math.floor(STREAM_BYTES / this.#entryBytes)))
    const teller = { owner: this.#owner, generation, writer: this.#writer, count: this.#entries, length }
    const [entry, count] = entryCommands(told, teller)
    this.#entryBytes += (bytesOfEntry(entry) - this.#entryBytes) / ENTRIES_AVERAGED
    return [entry, count]
  }

  /** From here on a former writer of our share writes no more: what is loaded afterwards is all there is of it. */
  async #begin(): Promise<void> {
    await whileDivided(this.#redis, (division) => {
      refuseOthers(division, this.#owner)
      return division.count === undefined ? [] : [writerWrites(this.#owner, this.#writer)]
    })
  }

  async #load(): Promise<void> {
    const loaded = await loadFleet(this.#redis, this.#rows, {
      logId: this.#logId,
      owner: this.#owner,
      logger: this.#logger,
    })
    refuseOthers(loaded.division, this.#owner)
    const isWhole = loaded.unreadable.length === 0 && loaded.isComplete
    this.#generation = isWhole ? loaded.division.generations.get(this.#owner.index) : undefined
    this.#hasBegun ||= this.#generation !== undefined
    for (const name of loaded.clusters.keys()) this.#listed.add(name)
    // A version never comes twice. What Redis has may be that of another owner, or gone: the time is above all of them.
    this.#memory = new FleetMemory(Math.max(loaded.version ?? 0, this.#clock.now()))
    this.#memory.keep({ clusters: loaded.clusters, version: 0 })
    // Of a share that is not whole its clusters are known, and not up to where in the log.
    this.#position = this.#generation === undefined ? -1 : loaded.position
    this.#applied = this.#position
    const [late] = (await pipelined(this.#redis, [['SMEMBERS', own.late]])) as [string[]]
    // Their events were told, or are of the past.
    for (const name of late.filter(isClusterName)) {
      if (!loaded.clusters.has(name)) continue
      this.#late.add(name)
      this.#behind.set(name, { before: undefined, isTold: true })
    }
    for (const name of loaded.unreadable) {
      this.#logger.error(
        { cluster: name },
        'what Redis holds of the cluster cannot be read: it waits for the next round',
      )
    }
  }

  /** Writes again what Redis lost while it kept the rest: a reader that begins now would miss it. */
  async #mend(names: string | undefined): Promise<void> {
    const [listed, damaged, heads, hasPosition] = (await pipelined(this.#redis, [
      ['SMEMBERS', own.clusters],
      ['SMEMBERS', own.damaged],
      ['EXISTS', own.format, own.version],
      ['HEXISTS', own.positions, this.#logId],
    ])) as [string[], string[], number, number]
    const ours = (all: readonly string[]) => all.filter(isClusterName).filter((name) => owns(this.#owner, name))
    const isOurs = (division: Division) => this.#isOurs(division)
    const version = this.#memory.version()
    for (const name of ours([...listed, ...damaged])) {
      if (!this.#memory.cluster(name)) await this.#remove(name, version, isOurs, [])
    }
    const written = this.#memory.clusters().filter(({ name }) => !this.#unwritten.has(name))
    const lost = await this.#lost.among(
      written.map(({ name }) => name),
      this.#clock.now(),
    )
    for (const name of ours(damaged)) lost.add(name)
    const states = written.filter(({ name }) => lost.has(name)).map(wholly)
    const last: Command[] = [formatKept(this.#program), ...this.#wholeCommands(version, this.#position)]
    if (heads < 2 || hasPosition === 0) await this.#take(last, isOurs)
    if (states.length > 0) {
      const clusters = states.map(({ after }) => after.name)
      this.#logger.warn({ clusters }, 'Redis lost what it held of some clusters: it is written again')
      await this.#putAll(states, () => [['SREM', own.damaged, ...clusters]], isOurs, 'again')
    }
    if (names !== namesText(this.#listed)) await this.#take([namesWrites(this.#owner, this.#listed)], isOurs)
  }

  async #watch(): Promise<void> {
    const { signal } = this.#closing
    for (;;) {
      await this.#clock.sleep(this.#checkEveryMs, signal)
      if (signal.aborted) return
      try {
        await this.#inTurn(async () => {
          // A Redis that answers may still refuse to write (no memory, a replica): only a write ends that trouble.
          const writes = pulseCommands(this.#owner.index, this.#writer, this.#clock.now())
          if (this.#trouble) writes.push(['HSET', own.positions, this.#logId, this.#position])
          const nothing = { clusters: new Map(), version: this.#memory.version() }
          let names: string | undefined
          const isThere = await this.#take(writes, (division) => {
            names = division.names.get(this.#owner.index)
            return this.#isOurs(division)
          })
          if (isThere) await this.#mend(names)
          else if (this.#hasBegun) await this.#writeAll(nothing, this.#position)
          await this.#alerts.refresh()
        })
      } catch (error) {
        this.#logger.warn({ error: redisUnavailable(error).message }, 'Redis does not answer')
      }
    }
  }
}

/** Nothing is known of what Redis has of it. */
const wholly = (after: ClusterState): Work => ({
  after,
  state: { before: undefined },
  documents: { before: undefined },
})
