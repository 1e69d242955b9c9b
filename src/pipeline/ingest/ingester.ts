import { isDeepStrictEqual } from 'node:util'
import type { EventBus } from '#events'
import { type HistoryStore, samplesOf } from '#history'
import {
  AGENTS_RETURN_MS,
  type AgentFacts,
  type Batch,
  type Clock,
  type ClusterName,
  type ClusterState,
  type ConnectionFacts,
  countInRanges,
  FleetError,
  type HoleCause,
  HUB_RESTARTED,
  HUB_STARTED,
  invariant,
  isHubsAbsence,
  type Loss,
  missingFrom,
  type SampleSet,
  type SequenceRange,
  type SourceId,
  StoreUnavailableError,
  seconds,
  systemClock,
} from '#model'
import { backoffMs, type Log, LogFullError, type Logger, type Metrics, silentLogger } from '#runtime'
import type { StateStore } from '#state'
import { type Audience, HISTORY, isFor, STATE, wordOf } from './audience.ts'
import { batchCheck, checkLoss } from './check-batch.ts'
import type { Offered } from './choose-use.ts'
import { BaseMismatchError, ClusterNotConnectedError, IngestBusyError, InvalidBatchError } from './errors.ts'
import { Holes, type Round } from './holes.ts'
import type { Ledger } from './ledger.ts'
import { LEDGER, LedgerFile } from './ledger-file.ts'
import { LogConsumer, type LogSink } from './log-consumer.ts'
import { decodeLogEntry, encodeLogEntry, type LogEntry } from './log-record.ts'
import { lostWith } from './lost-history.ts'
import { isAgent, PULL } from './origins.ts'
import { asDifference, isOwnStep, type Told, toldAfter } from './own-steps.ts'
import { SamplePace } from './sample-pace.ts'
import { historySink, stateSink } from './sinks.ts'
import { hasChanges } from './stream/frames.ts'

export interface IngesterOptions {
  readonly log: Log
  readonly state: StateStore
  readonly events: EventBus
  /** absent: samples are not kept */
  readonly history?: HistoryStore
  /** who else reads the log, each at its own pace and from its own position; their names are theirs alone, for ever */
  readonly consumers?: readonly LogSink<unknown>[]
  readonly clock?: Clock
  readonly logger?: Logger
  readonly metrics?: Metrics
  /** batches of one cluster that may wait for the log; default 64 */
  readonly maxWaitingPerCluster?: number
  /** bytes of records kept in memory per consumer until they are applied; what is beyond is read from the log; default 64 MiB */
  readonly maxPendingBytes?: number
  readonly random?: () => number
}

export interface Accepted {
  readonly sequence: number
  /** it was received before: acknowledged and dropped */
  readonly duplicate: boolean
}

/** A batch on its way in, and what its sender knows of it beside. */
export interface Offer {
  readonly batch: Batch
  /** what history keeps of it; default: all that the batch holds. Of a difference only who has the whole can know it */
  readonly samples?: SampleSet | undefined
  /** the message that all its parts were read from: the log keeps this in their place, which is shorter */
  readonly message?: Uint8Array | undefined
}

/** What is known of a cluster ahead of state: everything that is in the log. */
interface Entry {
  facts: ConnectionFacts | undefined
  agent: AgentFacts | null
  /** state does not have what the ledger calls the newest batch: no difference to it is taken */
  baseMissing: boolean
  /** what state has of MetricSources, or will have: whether one was ever read */
  sources: Map<SourceId, boolean>
  readonly pace: SamplePace
  /** of a cluster the hub reads: what its steps are differences to */
  told: Told | undefined
  holes: Holes
  /** highest sequence given out by nextSequence */
  issued: number
  waiting: number
  /** of those, declarations and removals of its connection */
  declaring: number
  /** ends when everything asked of this cluster before has ended */
  tail: Promise<unknown>
}

/** MetricSources of one cluster, whoever names them: rows and series of each stay until it is removed. */
const MAX_SOURCES = 500
const KEEP_LEDGER_EVERY_MS = 30_000
/** State that is away does not keep the hub from its start. */
const NOTED_LOOKS = 50
const NOTED_LOOK_MS = 20

/**
 * The one entry for batches, losses, agents and connections. What it acknowledges is in the hub's log, synced; state and
 * events, and history beside them, follow in order, with retries, and catch up from the log after a restart. Nothing here
 * waits for a store but the log.
 */
export class Ingester implements AsyncDisposable {
  readonly #log: Log
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #check = batchCheck()
  readonly #entries = new Map<ClusterName, Entry>()
  readonly #file: LedgerFile
  readonly #ledger: Ledger
  readonly #consumers: ReadonlyMap<string, LogConsumer<unknown>>
  readonly #maxWaiting: number
  readonly #count: {
    ended(result: 'accepted' | 'duplicate' | 'refused' | 'failed'): void
    used(audience: Audience): void
  }
  /** no sequence below was ever given to a cluster that is gone: a late batch of it never hides a new one */
  #sequenceFloor = 0
  /** clusters whose agent was connected to a former process, to its end, and has not been heard of since */
  readonly #unheard = new Set<ClusterName>()
  readonly #closing = new AbortController()
  #givingUp: Promise<void> | undefined
  #ledgerKeptAt: number
  readonly #startedAt: number
  /** from when on they have time to come back, ms since the Unix epoch */
  #awaitedFrom: number
  #logFault: string | undefined
  #closed = false

  private constructor(options: IngesterOptions, file: LedgerFile) {
    const { log, state, events, history, consumers = [] } = options
    const { clock = systemClock, logger = silentLogger, metrics } = options
    const { random = Math.random, maxPendingBytes = 64 * 2 ** 20 } = options
    this.#log = log
    this.#clock = clock
    this.#logger = logger
    this.#file = file
    this.#ledger = file.ledger
    this.#ledgerKeptAt = clock.now()
    this.#startedAt = clock.now()
    this.#awaitedFrom = this.#startedAt
    this.#maxWaiting = options.maxWaitingPerCluster ?? 64
    const backoff = (attempt: number) => backoffMs(attempt, { fromMs: 100, toMs: 5_000, random })
    const common = { log, clock, logger, maxPendingBytes, backoff, ...(metrics && { metrics }) }
    const onMissed = (batch: Batch) => this.#noteMissed(batch)
    const sinks: readonly LogSink<unknown>[] = [
      stateSink({ state, events, logger, onMissed }),
      ...(history ? [historySink(history, (until) => lostWith(history, this.#ledger, until))] : []),
      ...consumers,
    ]
    this.#consumers = new Map(sinks.map((sink) => [sink.name, new LogConsumer({ ...common, sink })]))
    invariant(this.#consumers.size === sinks.length && !this.#consumers.has(LEDGER), 'a consumer has a name of its own')
    this.#count = counters(metrics)
    if (metrics) logMetrics(log, metrics)
    if (metrics) consumerMetrics([...this.#consumers.values()], metrics)
  }

  /** Reads what the stores have not seen yet, then begins to apply it. The log and the stores stay the caller's to close. */
  static async open(options: IngesterOptions, signal?: AbortSignal): Promise<Ingester> {
    const { state, log, logger = silentLogger, metrics } = options
    const holes = metrics?.counter(
      'clusterpulse_ingest_holes_closed_total',
      'Holes in the sequences of agents that were given up because there were too many.',
    )
    const file = await LedgerFile.open(log, logger, () => holes?.inc())
    const ingester = new Ingester(options, file)
    // Stores may be ahead of a log that was lost with its disk.
    const consumers = [...ingester.#consumers.values()]
    log.advance(Math.max(...consumers.map(({ sink }) => sink.position())) + 1)
    await ingester.#readUp(state, signal)
    for (const consumer of consumers) consumer.start()
    await ingester.#forgetFormer()
    for (const cluster of ingester.#ledger.withUntold())
      if (ingester.knows(cluster)) await ingester.#inTurn(cluster, () => ingester.#tellAgentHoles(cluster))
    await ingester.#awaitUnheard(state)
    ingester.#givingUp = ingester.#giveUpUnheard()
    return ingester
  }

  /**
   * Resolves when the batch is on disk in the hub's log. One that was received before is acknowledged and dropped.
   * @throws InvalidBatchError, ClusterNotConnectedError, IngestBusyError, RecordTooLargeError
   * @throws BaseMismatchError when it is a difference to another batch than the newest of its cluster
   * @throws StoreUnavailableError when the log does not take it (its disk is full): nothing was kept, send it again
   */
  async accept(offer: Offer, signal?: AbortSignal): Promise<Accepted> {
    return this.#counted(async () => {
      // Of a step of our own that is checked which goes into the log.
      if (!isOwnStep(offer.batch)) this.#check(offer.batch)
      const { cluster } = offer.batch
      return this.#inTurn(cluster, async (entry) => {
        signal?.throwIfAborted()
        const accepted = await this.#take(entry, offer)
        await this.#tellAgentHoles(cluster)
        return accepted
      })
    })
  }

  /**
   * The same of many batches that are for history, of one cluster and one origin, in the order of their numbers: they share
   * syncs of the log. Where one fails, some of the others may be kept; those are dropped when they are offered again.
   * @throws InvalidBatchError also for a difference, and for what is no backfill
   */
  async acceptPast(offers: readonly Offer[], signal?: AbortSignal): Promise<readonly Accepted[]> {
    const [first] = offers
    if (!first) return []
    for (const { batch } of offers) this.#check(batch)
    checkPast(offers)
    return this.#inTurn(first.batch.cluster, async (entry) => {
      signal?.throwIfAborted()
      // None waits for another: the log keeps them in this order.
      const taken = offers.map((offer) => this.#counted(() => this.#take(entry, offer)))
      await Promise.allSettled(taken)
      return Promise.all(taken)
    })
  }

  /**
   * Batches of an agent that will never come. Resolves when that is on disk: from then on they count as received.
   * @throws InvalidBatchError, ClusterNotConnectedError, IngestBusyError, StoreUnavailableError
   */
  async lost(cluster: ClusterName, loss: Loss): Promise<Accepted> {
    return this.#counted(async () => {
      checkLoss(loss)
      return this.#inTurn(cluster, async (entry) => {
        if (!entry.facts) throw new ClusterNotConnectedError(cluster)
        const { sequence, origin } = loss
        if (this.#ledger.has(cluster, origin, sequence)) return { sequence, duplicate: true }
        // What came nevertheless, and only its ack got lost, is no loss.
        const received = this.#ledger.received(cluster, origin)
        const lost = loss.lost.flatMap((range) => missingFrom(received, range))
        const count = Math.max(0, loss.count - (countInRanges(loss.lost) - countInRanges(lost)))
        const record = { kind: 'lost', cluster, loss: { ...loss, lost, count }, at: this.#clock.now() } as const
        await this.#append({ record })
        await this.#tellAgentHoles(cluster)
        return { sequence, duplicate: false }
      })
    })
  }

  /**
   * How the agent of the cluster is, from now on. A repeat is free.
   * @throws ClusterNotConnectedError, IngestBusyError, StoreUnavailableError
   */
  async agent(cluster: ClusterName, agent: AgentFacts): Promise<void> {
    this.#unheard.delete(cluster)
    await this.#inTurn(cluster, async (entry) => {
      if (!entry.facts) throw new ClusterNotConnectedError(cluster)
      await this.#noteAgent(cluster, entry, agent)
    })
  }

  /**
   * Agents cannot reach this hub, such as where its port is taken: that they do not come is no absence of theirs, and they have their time
   * from now on. To be said again as long as it is so, at least twice a minute.
   */
  async agentsKeptOut(): Promise<void> {
    const now = this.#clock.now()
    if (this.#unheard.size === 0 || now - this.#awaitedFrom < KEPT_OUT_NOTED_MS) return
    this.#awaitedFrom = now
    await this.#noteUnheard(HUB_STARTED)
  }

  async #noteAgent(cluster: ClusterName, entry: Entry, agent: AgentFacts): Promise<void> {
    if (isDeepStrictEqual(entry.agent, agent)) return
    await this.#append({ record: { kind: 'agent', cluster, agent, at: this.#clock.now() } })
    entry.agent = agent
  }

  /**
   * Nobody reads this cluster, and why; undefined: somebody does again. It is no batch: it has no number, and what came after
   * the batch it names is not hidden by it.
   * @param after the newest batch of the cluster in state when that was found
   * @throws ClusterNotConnectedError, IngestBusyError, StoreUnavailableError
   */
  async unread(
    cluster: ClusterName,
    { origin, sequence }: Pick<ClusterState, 'origin' | 'sequence'>,
    because: { readonly code: string; readonly message: string } | undefined,
  ): Promise<void> {
    await this.#inTurn(cluster, async (entry) => {
      if (!entry.facts) throw new ClusterNotConnectedError(cluster)
      const after = { origin, sequence }
      await this.#append({
        record: { kind: 'unread', cluster, after, at: this.#clock.now(), ...(because && { because }) },
      })
    })
  }

  /** The sequences of this origin that are safe on disk here, as ascending ranges; [] where none is. */
  received(cluster: ClusterName, origin: string): readonly SequenceRange[] {
    return this.#ledger.received(cluster, origin)
  }

  /** Collection time of the newest batch of this origin, ms; undefined where that is not known. */
  heardTo(cluster: ClusterName, origin: string): number | undefined {
    const live = this.#ledger.live(cluster)
    const covered = new Map(this.#ledger.known(cluster, 0).covered).get(origin)?.at(-1)?.[1]
    return live?.origin === origin ? Math.max(live.at, covered ?? 0) : covered
  }

  /** Whether a connection of this cluster is declared: its batches are taken. */
  knows(cluster: ClusterName): boolean {
    return this.#entries.get(cluster)?.facts !== undefined
  }

  /** The connection is declared so, from now on: the cluster is known and its batches are taken. A repeat is free. */
  async connect(cluster: ClusterName, facts: ConnectionFacts): Promise<void> {
    const known = this.#entries.get(cluster)
    if (!known) this.#entries.set(cluster, newEntry())
    // Every look says it.
    else if (known.declaring === 0 && isDeepStrictEqual(known.facts, facts)) return
    await this.#declaring(cluster, async (entry) => {
      if (isDeepStrictEqual(entry.facts, facts)) return
      await this.#append({ record: { kind: 'connection', cluster, connection: facts, at: this.#clock.now() } })
      entry.facts = facts
    })
  }

  /** The connection is gone: every trace of the cluster goes, and its late batches are refused. A repeat is free. */
  async remove(cluster: ClusterName): Promise<void> {
    if (!this.#entries.has(cluster)) return
    await this.#declaring(cluster, async (entry) => {
      if (!entry.facts) return
      const newest = this.#ledger.newestPull(cluster)
      await this.#append({ record: { kind: 'removed', cluster, at: this.#clock.now() } })
      this.#forget(entry, newest)
    })
  }

  /**
   * A MetricSource is gone, or no longer of this cluster: what it saw there goes. Resolves when that is on disk; where nothing
   * of it is here, at once. A batch that names it again brings it back.
   * @throws IngestBusyError, StoreUnavailableError
   */
  async removeSource(cluster: ClusterName, source: SourceId): Promise<void> {
    if (!this.#entries.has(cluster)) return
    await this.#inTurn(cluster, async (entry) => {
      if (!entry.sources.has(source)) return
      await this.#append({ record: { kind: 'source-removed', cluster, source, at: this.#clock.now() } })
      entry.sources.delete(source)
      entry.pace.forget(source)
    })
  }

  /** For a round of the hub itself: a sequence above every one that was accepted or given out for this cluster. */
  nextSequence(cluster: ClusterName): number {
    const entry = this.#entries.get(cluster)
    const next = Math.max(this.#sequenceFloor, this.#ledger.newestPull(cluster), entry?.issued ?? 0) + 1
    if (entry) entry.issued = next
    return next
  }

  /** Why the hub's log took nothing when it was last asked, such as a full disk; undefined where it took it. */
  logFault(): string | undefined {
    return this.#logFault
  }

  /**
   * Resolves when everything accepted so far is applied by this consumer; at once where there is none of this name. Of state: to
   * be read there, and published; its store may follow later.
   */
  async flushed(consumer: string = STATE): Promise<void> {
    await this.#consumers.get(consumer)?.reached(this.#log.lastIndex())
  }

  /** Records that are in the log and not yet safe in the store of state. */
  backlog(): number {
    return this.#consumers.get(STATE)?.backlog() ?? 0
  }

  /** Takes nothing more; what is in the log and not applied waits there for the next start. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#closing.abort()
    await this.#givingUp
    await Promise.allSettled([...this.#entries.values()].map((entry) => entry.tail))
    await Promise.all([...this.#consumers.values()].map((consumer) => consumer[Symbol.asyncDispose]()))
    await this.#file.keep(this.#clock.now())
  }

  async #take(entry: Entry, { batch: offer, samples, message }: Offer): Promise<Accepted> {
    const { cluster, origin = PULL, sequence } = offer
    if (!entry.facts) throw new ClusterNotConnectedError(cluster)
    if (this.#ledger.has(cluster, origin, sequence)) return { sequence, duplicate: true }
    const given = isOwnStep(offer) ? this.#ownStep(entry, offer) : offer
    const isDifference = hasChanges(given)
    if (isDifference && !this.#isBased(entry, given)) throw new BaseMismatchError(cluster)
    checkNewSources(entry, given)
    const receivedAt = this.#clock.now()
    // What was collected before it came cannot have been collected later.
    const batch = given.collectedAt > receivedAt ? { ...given, collectedAt: receivedAt } : given
    const paced = entry.pace.take(batch, this.#samplesOf(batch, samples))
    const numbers = paced.samples
    const offered = { origin, sequence, at: batch.collectedAt, hasSamples: numbers !== undefined }
    const audience = this.#audienceOf(cluster, entry.facts.intervalMs, offered)
    const round = this.#roundOf(batch, entry, numbers !== undefined)
    try {
      await this.#tellHole(entry, entry.facts.intervalMs, batch, round)
      await this.#append({
        record: { kind: 'batch', batch, receivedAt },
        audience,
        ...(numbers && this.#wantsSamples(audience) && { samples: numbers }),
        ...(message && !batch.tables && { message }),
      })
    } catch (error) {
      entry.holes.refused(refusalOf(error))
      throw error
    }
    paced.commit()
    if (isRound(batch)) entry.holes.after(round)
    if (audience.has(STATE) && !isDifference) entry.baseMissing = false
    if (audience.has(STATE)) {
      noteSources(entry, given)
      entry.told = origin === PULL && !given.backfill ? toldAfter(entry.told, given) : undefined
    }
    this.#count.used(audience)
    return { sequence, duplicate: false }
  }

  /** As a difference, where what it differs from is the newest that is here. */
  #ownStep(entry: Entry, batch: Batch): Batch {
    const difference = asDifference(batch, entry.told)
    const step = difference.base === undefined || this.#isBased(entry, difference) ? difference : batch
    this.#check(step)
    return step
  }

  /** Where all that an agent numbered is here, the ledger finds what is missing between its rounds. */
  async #tellHole({ holes }: Entry, planMs: number, batch: Batch, round: Round): Promise<void> {
    const { cluster, origin = PULL } = batch
    if (!this.#keepsHistory || !isRound(batch) || (isAgent(origin) && !round.isAwaited)) return
    const intervalMs = this.#ledger.paceMs(cluster, origin, planMs)
    const loss = holes.before(round, { intervalMs, startedAt: this.#startedAt })
    if (loss) await this.#appendHole(cluster, loss)
  }

  #roundOf(batch: Batch, { agent }: Entry, hasSamples: boolean): Round {
    const { cluster, origin = PULL, source, sequence, collectedAt: at, durationMs } = batch
    const isAwaited = this.#ledger.isAwaited(cluster, origin, sequence)
    return { sequence, at, durationMs, hasSamples, reader: source === 'pull' && !agent ? 'hub' : 'sender', isAwaited }
  }

  /** What is between two batches of an agent that are both safe. Where the log takes it not now, it does with the next batch. */
  async #tellAgentHoles(cluster: ClusterName): Promise<void> {
    if (!this.#keepsHistory) return
    try {
      for (const loss of this.#ledger.untold(cluster)) await this.#appendHole(cluster, loss)
    } catch (error) {
      this.#logger.warn({ cluster, error }, 'a hole in the history of a cluster could not be noted yet')
    }
  }

  #appendHole(cluster: ClusterName, loss: Loss): Promise<void> {
    return this.#append({
      record: { kind: 'lost', cluster, loss, at: this.#clock.now() },
      audience: new Set([HISTORY]),
    })
  }

  get #keepsHistory(): boolean {
    return this.#consumers.has(HISTORY)
  }

  #audienceOf(cluster: ClusterName, intervalMs: number, offered: Offered): Audience {
    const audience = new Set<string>()
    for (const [name, { sink }] of this.#consumers)
      if (!sink.wants || sink.wants(this.#ledger.known(cluster, intervalMs), offered)) audience.add(name)
    return audience
  }

  #wantsSamples(audience?: Audience): boolean {
    for (const { sink } of this.#consumers.values())
      if (sink.want === 'samples' && isFor(audience, sink.name)) return true
    return false
  }

  #isBased({ baseMissing, sources }: Entry, { cluster, origin = PULL, base, tables = [] }: Batch): boolean {
    const live = this.#ledger.live(cluster)
    // A source that was removed meanwhile, or never taken, has no rows to differ from.
    if (tables.some(({ outcome, source }) => outcome === 'changed' && !sources.get(source))) return false
    return !baseMissing && live?.origin === origin && live.sequence === base
  }

  /** The samples of a batch; undefined where there are none, or nobody wants them. */
  #samplesOf(batch: Batch, given: SampleSet | undefined): SampleSet | undefined {
    if (!this.#wantsSamples()) return undefined
    const samples = given ?? samplesOf(batch)
    if (!samples?.groups.some(({ keys, columns }) => keys.length > 0 && columns.length > 0)) return undefined
    return samples.at > batch.collectedAt ? { ...samples, at: batch.collectedAt } : samples
  }

  // The next difference would be to a batch that state has not: its sender must send the whole.
  #noteMissed({ cluster, origin = PULL, sequence }: Batch): void {
    const [entry, live] = [this.#entries.get(cluster), this.#ledger.live(cluster)]
    if (entry && live?.origin === origin && live.sequence === sequence) entry.baseMissing = true
  }

  async #counted(action: () => Promise<Accepted>): Promise<Accepted> {
    try {
      const accepted = await action()
      this.#count.ended(accepted.duplicate ? 'duplicate' : 'accepted')
      return accepted
    } catch (error) {
      this.#count.ended(error instanceof FleetError && !error.retryable ? 'refused' : 'failed')
      throw error
    }
  }

  /** In turn, however much waits: no cluster that sends too much keeps who may see it from changing. */
  async #declaring(cluster: ClusterName, action: (entry: Entry) => Promise<void>): Promise<void> {
    const entry = this.#entries.get(cluster)
    if (entry) entry.declaring++
    try {
      await this.#inTurn(cluster, action, Number.POSITIVE_INFINITY)
    } finally {
      if (entry) entry.declaring--
    }
  }

  // One thing at a time per cluster: a repeat of a batch on its way must not be acknowledged before that one is on disk.
  #inTurn<T>(cluster: ClusterName, action: (entry: Entry) => Promise<T>, maxWaiting = this.#maxWaiting): Promise<T> {
    const entry = this.#entries.get(cluster)
    if (this.#closed) return Promise.reject(new StoreUnavailableError('ingester', 'the hub is stopping'))
    if (!entry) return Promise.reject(new ClusterNotConnectedError(cluster))
    if (entry.waiting >= maxWaiting) return Promise.reject(new IngestBusyError(cluster, entry.waiting))
    entry.waiting++
    const turn = entry.tail
      .then(() => action(entry))
      .finally(() => {
        entry.waiting--
        // Nothing waits and nothing is known: the name is free again.
        if (entry.waiting === 0 && !entry.facts) this.#entries.delete(cluster)
      })
    entry.tail = turn.catch(() => undefined) // the caller has the error; the next in line does not care
    return turn
  }

  async #append(entry: LogEntry): Promise<void> {
    const payload = encodeLogEntry(entry)
    // What a message of the original says weighs more in memory than in its bytes, and is nothing for history.
    const message = entry.message?.length ?? 0
    const weight = { record: payload.length + 2 * message, samples: payload.length - message }
    const synced = (index: number) => {
      this.#ledger.note(entry, index)
      for (const consumer of this.#consumers.values()) consumer.add(index, entry, weight[consumer.sink.want])
    }
    try {
      await this.#log.append(payload, synced).catch(async (error: unknown) => {
        if (!(error instanceof LogFullError)) throw error
        // What is safe by now need not stay: without this a full log that takes nothing would never be emptied.
        await this.#keepPlaces()
        await this.#log.append(payload, synced)
      })
    } catch (error) {
      if (!(error instanceof FleetError && error.retryable)) throw error
      this.#logFault = error.message
      throw new StoreUnavailableError("the hub's log", error.message, { cause: error })
    }
    this.#logFault = undefined
    this.#keepLedgerNowAndThen()
  }

  async #keepPlaces(): Promise<void> {
    await this.#file.keep(this.#clock.now())
    for (const consumer of this.#consumers.values()) await consumer.keepCheckpoint()
  }

  #keepLedgerNowAndThen(): void {
    const now = this.#clock.now()
    if (now - this.#ledgerKeptAt < KEEP_LEDGER_EVERY_MS) return
    this.#ledgerKeptAt = now
    void this.#file.keep(now) // never fails; the end waits for it
  }

  /** Of a consumer that is there no more nothing holds the log back: it would fill it. */
  async #forgetFormer(): Promise<void> {
    for (const name of this.#log.checkpoints().keys()) {
      if (name === LEDGER || this.#consumers.has(name)) continue
      this.#logger.warn({ consumer: name }, "a consumer of the hub's log is gone: nothing is kept for it any more")
      await this.#log.forget(name)
    }
  }

  /** Brings the ledger and what is known of clusters up to the end of the log. */
  async #readUp(state: StateStore, signal: AbortSignal | undefined): Promise<void> {
    const position = state.position()
    const known = state.clusters()
    for (const { name, connection, agent, tables } of known) {
      if (!connection) continue
      const sources = new Map([...tables].map(([source, { freshness }]) => [source, freshness !== null]))
      this.#entries.set(name, { ...newEntry(), facts: connection, agent, sources })
    }
    if (this.#file.found === 'not') this.#seed(known)
    /** clusters of which state is yet to see a batch, is yet to see the end */
    const onTheirWay = new Set<ClusterName>()
    const gone = new Set<ClusterName>()
    for await (const { index, payload } of this.#log.read(Math.min(this.#ledger.position(), position) + 1, signal)) {
      const entry = decodeLogEntry(payload)
      if (!entry) continue
      const { record } = entry
      const isNews = index > position && isFor(entry.audience, STATE)
      if (isNews) this.#remember(record)
      this.#ledger.note(entry, index)
      if (isNews && record.kind === 'batch') onTheirWay.add(record.batch.cluster)
      if (isNews && record.kind === 'removed') gone.add(record.cluster)
    }
    const left = known.filter(({ name }) => !gone.has(name))
    if (this.#file.found === 'in part') this.#seed(left)
    for (const one of left) if (one.connection) this.#ledger.follow(one.name, liveOf(one))
    for (const [name, entry] of this.#entries) {
      const [live, known] = [this.#ledger.live(name), state.cluster(name)]
      const isThere = known?.origin === live?.origin && known?.sequence === live?.sequence
      if (!onTheirWay.has(name) && !isThere) entry.baseMissing = true
      if (entry.agent && (entry.agent.connected || isHubsAbsence(entry.agent))) this.#unheard.add(name)
      // The last round of a former process, whether or not it left samples: it told why not.
      const ends = [...this.#ledger.known(name, 0).covered].flatMap(([, spans]) => spans.at(-1)?.[1] ?? [])
      // The ledger knows what state may be yet to see; a former one did not note it.
      const coveredTo = Math.max(...ends, this.#ledger.roundAt(name), lastRoundAt(known) ?? 0)
      const hubWasReading = entry.agent?.connected !== false || live?.origin === PULL
      if (coveredTo > 0) entry.holes = new Holes(coveredTo, hubWasReading)
    }
  }

  #seed(clusters: readonly ClusterState[]): void {
    for (const known of clusters) {
      const { name, connection } = known
      if (connection) this.#ledger.seed(name, connection.intervalMs, liveOf(known))
    }
  }

  // A stream ends with the process that held it. Its agent is waited for from now on, and nobody who looks takes it for connected.
  async #awaitUnheard(state: Pick<StateStore, 'position'>): Promise<void> {
    if (this.#unheard.size === 0) return
    await this.#noteUnheard(HUB_STARTED)
    const noted = this.#log.lastIndex()
    for (let looks = 0; looks < NOTED_LOOKS && state.position() < noted; looks++)
      await this.#clock.sleep(NOTED_LOOK_MS, this.#closing.signal)
  }

  async #giveUpUnheard(): Promise<void> {
    if (this.#unheard.size === 0) return
    let from: number
    do {
      from = this.#awaitedFrom
      await this.#clock.sleep(AGENTS_RETURN_MS, this.#closing.signal)
    } while (this.#awaitedFrom !== from && !this.#closing.signal.aborted)
    await this.#noteUnheard(HUB_RESTARTED)
    this.#unheard.clear()
  }

  async #noteUnheard(reason: string): Promise<void> {
    const away = { connected: false, since: this.#awaitedFrom, reason }
    const note = async (cluster: ClusterName) => {
      try {
        await this.#inTurn(cluster, async (entry) => {
          if (!this.#unheard.has(cluster) || !entry.agent || this.#closing.signal.aborted) return
          await this.#noteAgent(cluster, entry, { ...entry.agent, ...away })
        })
      } catch (error) {
        if (this.#closing.signal.aborted) return // the next start looks again
        this.#logger.warn({ cluster, error }, 'it could not be noted that an agent has not come back')
      }
    }
    await Promise.all([...this.#unheard].map(note))
  }

  #remember(record: LogEntry['record']): void {
    if (record.kind === 'lost' || record.kind === 'unread') return
    if (record.kind === 'batch') {
      const entry = this.#entries.get(record.batch.cluster)
      if (entry) noteSources(entry, record.batch)
      return
    }
    const { cluster } = record
    const entry = this.#entries.get(cluster)
    if (record.kind === 'connection') {
      this.#entries.set(cluster, { ...(entry ?? newEntry()), facts: record.connection })
    } else if (entry && record.kind === 'agent') {
      entry.agent = record.agent
    } else if (record.kind === 'source-removed') {
      entry?.sources.delete(record.source)
    } else if (entry) {
      this.#forget(entry, this.#ledger.newestPull(cluster))
      this.#entries.delete(cluster)
    }
  }

  #forget(entry: Entry, newestPull: number): void {
    this.#sequenceFloor = Math.max(this.#sequenceFloor, newestPull, entry.issued)
    entry.facts = undefined
    entry.agent = null
    entry.holes = new Holes()
    entry.issued = 0
    entry.told = undefined
    entry.sources.clear()
  }
}

/** Each time is a record of every agent that is waited for. */
const KEPT_OUT_NOTED_MS = seconds(20)

const newEntry = (): Entry => ({
  facts: undefined,
  agent: null,
  baseMissing: false,
  sources: new Map(),
  pace: new SamplePace(),
  told: undefined,
  holes: new Holes(),
  issued: 0,
  waiting: 0,
  declaring: 0,
  tail: Promise.resolve(),
})

/** What MetricSources see between two rounds is none, nor what an agent delivers late, nor what is made up. */
const isRound = ({ partial, backfill, simulated }: Batch): boolean => !partial && !backfill && !simulated

function refusalOf(error: unknown): HoleCause {
  const why = error instanceof Error ? error.cause : undefined
  if (!(why instanceof LogFullError)) return 'not_kept'
  return why.cause === undefined ? 'log_full' : 'disk_full'
}

function noteSources({ sources }: Entry, { tables = [] }: Batch): void {
  for (const { source, outcome } of tables) {
    const isRead = outcome === 'complete' || outcome === 'changed'
    sources.set(source, isRead || sources.get(source) === true)
  }
}

/** @throws InvalidBatchError */
function checkPast(offers: readonly Offer[]): void {
  for (const [i, { batch }] of offers.entries()) {
    const before = offers[i - 1]?.batch
    if (!batch.backfill || hasChanges(batch)) throw new InvalidBatchError('it', 'is not of the past alone')
    if (before && (before.cluster !== batch.cluster || before.origin !== batch.origin))
      throw new InvalidBatchError('it', 'is of another cluster or origin than the one before it')
    if (before && before.sequence >= batch.sequence)
      throw new InvalidBatchError('sequence', 'is not above that of the one before it')
  }
}

/** @throws InvalidBatchError where the cluster would have more than it may */
function checkNewSources({ sources }: Entry, { tables = [] }: Batch): void {
  const news = tables.filter(({ source }) => !sources.has(source)).length
  if (news > 0 && sources.size + news > MAX_SOURCES)
    throw new InvalidBatchError('custom', `names more sources than the ${MAX_SOURCES} a cluster may have`)
}

function counters(metrics: Metrics | undefined) {
  const batches = metrics?.counter('clusterpulse_ingest_batches_total', 'Batches by how they ended.', ['result'])
  const uses = metrics?.counter(
    'clusterpulse_ingest_batches_taken_total',
    'Batches taken, by where they belong: `state` and `none` are not (again) for history.',
    ['into'],
  )
  return {
    ended: (result: 'accepted' | 'duplicate' | 'refused' | 'failed') => batches?.inc({ result }),
    used: (audience: Audience) => uses?.inc({ into: wordOf(audience) }),
  }
}

function consumerMetrics(consumers: readonly LogConsumer<unknown>[], metrics: Metrics): void {
  const gauge = (name: string, help: string, value: (consumer: LogConsumer<unknown>) => number) =>
    metrics.gauge(`clusterpulse_ingest_${name}`, help, ['consumer'], (one) => {
      for (const consumer of consumers) one.set({ consumer: consumer.sink.name }, value(consumer))
    })
  gauge('backlog_records', 'Records in the log that are not yet safe where a consumer carries them.', (consumer) =>
    consumer.backlog(),
  )
  gauge('lag_seconds', 'How long the oldest of them has waited.', (consumer) => consumer.lagMs() / 1000)
}

function logMetrics(log: Log, metrics: Metrics): void {
  const gauge = (name: string, help: string, value: () => number) =>
    metrics.gauge(`clusterpulse_log_${name}`, help, [], (one) => one.set(value()))
  gauge('bytes', "Size of the hub's log.", () => log.stats().bytes)
  gauge('syncs', 'Times the log was synced since the start; many records share one.', () => log.stats().syncs)
  gauge('refused_records', 'Records the log did not take since the start.', () => log.stats().refusedRecords)
  gauge('damaged_bytes', 'Bytes of the log that could not be read back.', () => log.stats().damagedBytes)
}

/** When the last round of a cluster was, whatever its end; null: there was none. That nobody reads it now is no round. */
const liveOf = (known: ClusterState) => ({
  origin: known.origin,
  sequence: known.sequence,
  at: lastRoundAt(known) ?? 0,
})

const lastRoundAt = (known: ClusterState | undefined): number | null | undefined =>
  (known?.status.before ?? known?.status)?.checkedAt
