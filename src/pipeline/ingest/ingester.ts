import { isDeepStrictEqual } from 'node:util'
import type { EventBus } from '#events'
import {
  type AgentFacts,
  type Batch,
  type Clock,
  type ClusterName,
  type ConnectionFacts,
  FleetError,
  type Loss,
  type SampleSet,
  type SequenceRange,
  StoreUnavailableError,
  systemClock,
} from '#model'
import { backoffMs, LogFullError, type Logger, type Metrics, type SegmentLog, silentLogger } from '#runtime'
import type { StateRecord, StateStore } from '#state'
import type { HistoryStore } from '../history/types.ts'
import { Applier } from './applier.ts'
import { batchCheck } from './check-batch.ts'
import { ClusterNotConnectedError, IngestBusyError } from './errors.ts'
import { decodeLogRecord, encodeLogRecord } from './log-record.ts'

export interface IngesterOptions {
  readonly log: SegmentLog
  readonly state: StateStore
  readonly events: EventBus
  /** absent: samples are not kept */
  readonly history?: HistoryStore
  readonly clock?: Clock
  readonly logger?: Logger
  readonly metrics?: Metrics
  /** batches of one cluster that may wait for the log; default 64 */
  readonly maxWaitingPerCluster?: number
  /** bytes of records kept in memory until they are applied; what is beyond is read from the log; default 64 MiB */
  readonly maxPendingBytes?: number
  readonly random?: () => number
}

export interface Accepted {
  readonly sequence: number
  /** an old sequence: acknowledged and dropped */
  readonly duplicate: boolean
}

/** What is known of a cluster ahead of state: everything that is in the log. */
interface Entry {
  facts: ConnectionFacts | undefined
  /** highest sequence that is on disk */
  durable: number
  /** highest sequence given out by nextSequence */
  issued: number
  waiting: number
  /** ends when everything asked of this cluster before has ended */
  tail: Promise<unknown>
}

/**
 * The one entry for batches and connections. What it acknowledges is in the hub's log, synced; state and events follow in
 * order, with retries, and catch up from the log after a restart. Nothing here waits for a store but the log.
 */
export class Ingester implements AsyncDisposable {
  readonly #log: SegmentLog
  readonly #clock: Clock
  readonly #check = batchCheck()
  readonly #entries = new Map<ClusterName, Entry>()
  readonly #applier: Applier
  readonly #maxWaiting: number
  readonly #count: (result: 'accepted' | 'duplicate' | 'refused' | 'failed') => void
  /** no sequence below was ever given to a cluster that is gone: a late batch of it never hides a new one */
  #sequenceFloor = 0
  #closed = false

  private constructor(options: IngesterOptions) {
    const { log, state, events, clock = systemClock, logger = silentLogger, metrics, random = Math.random } = options
    this.#log = log
    this.#clock = clock
    this.#maxWaiting = options.maxWaitingPerCluster ?? 64
    const batches = metrics?.counter('clusterpulse_ingest_batches_total', 'Batches by how they ended.', ['result'])
    this.#count = (result) => batches?.inc({ result })
    if (metrics) logMetrics(log, metrics)
    this.#applier = new Applier({
      log,
      state,
      events,
      clock,
      logger,
      ...(metrics && { metrics }),
      maxPendingBytes: options.maxPendingBytes ?? 64 * 2 ** 20,
      backoff: (attempt) => backoffMs(attempt, { fromMs: 100, toMs: 5_000, random }),
    })
  }

  /** Reads what state has not seen yet, then begins to apply it. The log and the stores stay the caller's to close. */
  static async open(options: IngesterOptions, signal?: AbortSignal): Promise<Ingester> {
    const ingester = new Ingester(options)
    const { state, log } = options
    // State may be ahead of a log that was lost with its disk.
    log.advance(state.position() + 1)
    for (const { name, connection, sequence } of state.clusters()) {
      if (connection) ingester.#entries.set(name, { ...newEntry(connection), durable: sequence })
    }
    for await (const { payload } of log.read(state.position() + 1, signal)) {
      const record = decodeLogRecord(payload)
      if (record) ingester.#remember(record)
    }
    ingester.#applier.start(state.position() + 1)
    return ingester
  }

  /**
   * Resolves when the batch is on disk in the hub's log. An old sequence is acknowledged and dropped.
   * @throws InvalidBatchError, ClusterNotConnectedError, IngestBusyError, RecordTooLargeError
   * @throws StoreUnavailableError when the log does not take it (its disk is full): nothing was kept, send it again
   */
  async accept(batch: Batch, signal?: AbortSignal, _samples?: SampleSet): Promise<Accepted> {
    try {
      this.#check(batch)
      const { sequence } = batch
      const accepted = await this.#inTurn(batch.cluster, async (entry) => {
        signal?.throwIfAborted()
        if (!entry.facts) throw new ClusterNotConnectedError(batch.cluster)
        if (sequence <= entry.durable) return { sequence, duplicate: true }
        await this.#append({ kind: 'batch', batch, receivedAt: this.#clock.now() })
        entry.durable = sequence
        return { sequence, duplicate: false }
      })
      this.#count(accepted.duplicate ? 'duplicate' : 'accepted')
      return accepted
    } catch (error) {
      this.#count(error instanceof FleetError && !error.retryable ? 'refused' : 'failed')
      throw error
    }
  }

  /** Resolves when the loss is on disk. */
  lost(cluster: ClusterName, loss: Loss): Promise<Accepted> {
    return this.#inTurn(cluster, async (entry) => {
      if (!entry.facts) throw new ClusterNotConnectedError(cluster)
      await this.#append({ kind: 'lost', cluster, loss, at: this.#clock.now() })
      return { sequence: loss.sequence, duplicate: false }
    })
  }

  /** How the agent of the cluster is, from now on. A repeat is free. */
  async agent(cluster: ClusterName, facts: AgentFacts): Promise<void> {
    await this.#inTurn(cluster, async (entry) => {
      if (!entry.facts) throw new ClusterNotConnectedError(cluster)
      await this.#append({ kind: 'agent', cluster, agent: facts, at: this.#clock.now() })
    })
  }

  /** The sequences of this origin that are safe on disk here, as ascending ranges; [] where none is. */
  received(_cluster: ClusterName, _origin: string): readonly SequenceRange[] {
    return []
  }

  /** Whether a connection of this cluster is declared: its batches are taken. */
  knows(cluster: ClusterName): boolean {
    return this.#entries.get(cluster)?.facts !== undefined
  }

  /** The connection is declared so, from now on: the cluster is known and its batches are taken. A repeat is free. */
  async connect(cluster: ClusterName, facts: ConnectionFacts): Promise<void> {
    if (!this.#entries.has(cluster)) this.#entries.set(cluster, newEntry(undefined))
    await this.#inTurn(cluster, async (entry) => {
      if (isDeepStrictEqual(entry.facts, facts)) return
      await this.#append({ kind: 'connection', cluster, connection: facts, at: this.#clock.now() })
      entry.facts = facts
    })
  }

  /** The connection is gone: every trace of the cluster goes, and its late batches are refused. A repeat is free. */
  async remove(cluster: ClusterName): Promise<void> {
    if (!this.#entries.has(cluster)) return
    await this.#inTurn(cluster, async (entry) => {
      if (!entry.facts) return
      await this.#append({ kind: 'removed', cluster, at: this.#clock.now() })
      this.#forget(entry)
    })
  }

  /** A sequence above every one that was accepted or given out for this cluster. */
  nextSequence(cluster: ClusterName): number {
    const entry = this.#entries.get(cluster)
    const next = Math.max(this.#sequenceFloor, entry?.durable ?? 0, entry?.issued ?? 0) + 1
    if (entry) entry.issued = next
    return next
  }

  /** Resolves when everything accepted so far is in state and published. */
  flushed(): Promise<void> {
    return this.#applier.reached(this.#log.lastIndex())
  }

  /** Records that are in the log and not yet in state. */
  backlog(): number {
    return this.#applier.backlog()
  }

  /** Takes nothing more; what is in the log and not applied waits there for the next start. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.allSettled([...this.#entries.values()].map((entry) => entry.tail))
    await this.#applier[Symbol.asyncDispose]()
  }

  // One thing at a time per cluster: a repeat of a batch on its way must not be acknowledged before that one is on disk.
  #inTurn<T>(cluster: ClusterName, action: (entry: Entry) => Promise<T>): Promise<T> {
    const entry = this.#entries.get(cluster)
    if (this.#closed) return Promise.reject(new StoreUnavailableError('ingester', 'the hub is stopping'))
    if (!entry) return Promise.reject(new ClusterNotConnectedError(cluster))
    if (entry.waiting >= this.#maxWaiting) return Promise.reject(new IngestBusyError(cluster, entry.waiting))
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

  async #append(record: StateRecord): Promise<void> {
    const payload = encodeLogRecord(record)
    const enqueue = (index: number) => this.#applier.add({ index, record, bytes: payload.length })
    try {
      await this.#log.append(payload, enqueue).catch(async (error: unknown) => {
        if (!(error instanceof LogFullError)) throw error
        // What state has safe by now need not stay: without this a full log that takes nothing would never be emptied.
        await this.#applier.keepCheckpoint()
        await this.#log.append(payload, enqueue)
      })
    } catch (error) {
      if (!(error instanceof FleetError && error.retryable)) throw error
      throw new StoreUnavailableError("the hub's log", error.message, { cause: error })
    }
  }

  #remember(record: StateRecord): void {
    const name = record.kind === 'batch' ? record.batch.cluster : record.cluster
    const entry = this.#entries.get(name)
    if (record.kind === 'batch') {
      if (entry) entry.durable = Math.max(entry.durable, record.batch.sequence)
    } else if (record.kind === 'connection') {
      this.#entries.set(name, { ...(entry ?? newEntry(undefined)), facts: record.connection })
    } else if (entry) {
      this.#forget(entry)
      this.#entries.delete(name)
    }
  }

  #forget(entry: Entry): void {
    this.#sequenceFloor = Math.max(this.#sequenceFloor, entry.durable, entry.issued)
    entry.facts = undefined
    entry.durable = 0
    entry.issued = 0
  }
}

const newEntry = (facts: ConnectionFacts | undefined): Entry => ({
  facts,
  durable: 0,
  issued: 0,
  waiting: 0,
  tail: Promise.resolve(),
})

function logMetrics(log: SegmentLog, metrics: Metrics): void {
  const gauge = (name: string, help: string, value: () => number) =>
    metrics.gauge(`clusterpulse_log_${name}`, help, [], (one) => one.set(value()))
  gauge('bytes', "Size of the hub's log.", () => log.stats().bytes)
  gauge('syncs', 'Times the log was synced since the start; many records share one.', () => log.stats().syncs)
  gauge('refused_records', 'Records the log did not take since the start.', () => log.stats().refusedRecords)
  gauge('damaged_bytes', 'Bytes of the log that could not be read back.', () => log.stats().damagedBytes)
}
