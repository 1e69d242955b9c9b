import { join } from 'node:path'
import { openEvents } from '#events'
import { encodeSamples, type HistoryRecord, type HistoryStore } from '#history'
import { type Clock, type ClusterName, type ClusterState, FleetError, ownerOf } from '#model'
import { type Log, type LogOptions, openLog, silentLogger } from '#runtime'
import type { StateStore } from '#state'
import { FleetMemory } from '../../state/memory.ts'
import { changedFields } from '../../state/stored.ts'
import { StoredRows } from '../../state/stored-rows.ts'
import { isFor } from '../audience.ts'
import { type Divided, divideLogs } from '../division.ts'
import { type Accepted, Ingester } from '../ingester.ts'
import type { LogSink } from '../log-consumer.ts'
import { decodeLogEntry } from '../log-record.ts'
import { HUB_ORIGIN } from '../origins.ts'
import { historySink, stateSink } from '../sinks.ts'

/** Resolves when the signal aborts. */
const ended = (signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))

/** A store that may be held: then it takes nothing until it is let go, or the test says up to which record. */
class Held {
  isHeld = true
  protected last = -1

  position(): number {
    return this.last
  }

  protected async waited(signal: AbortSignal | undefined): Promise<void> {
    if (!this.isHeld) return
    await ended(signal)
    throw new Error('it is held')
  }
}

/** State in memory, with what others had before. */
class KeptState extends Held implements StateStore {
  readonly #memory = new FleetMemory(0)

  constructor(clusters: readonly ClusterState[]) {
    super()
    this.#memory.keep({ clusters: new Map(clusters.map((state) => [state.name, state])), version: 0 })
  }

  async apply(...[records, position, signal, onApplied]: Parameters<StateStore['apply']>) {
    await this.waited(signal)
    const draft = this.#memory.draft(records)
    this.#memory.keep(draft)
    this.last = position
    onApplied?.(draft.changes)
    return draft.changes
  }

  availability() {
    return { state: 'available' } as const
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

  alerts() {
    return []
  }

  sequence(cluster: ClusterName): number {
    return this.#memory.cluster(cluster)?.sequence ?? 0
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve()
  }
}

/** A writer into a history that all share; each owner has a position of its own. */
class KeptHistory extends Held implements Pick<HistoryStore, 'append' | 'position'> {
  readonly #all: HistoryRecord[]

  constructor(all: HistoryRecord[]) {
    super()
    this.#all = all
  }

  async append(records: readonly HistoryRecord[], position: number, signal?: AbortSignal) {
    await this.waited(signal)
    if (position <= this.last) return
    this.#all.push(...records)
    this.last = position
  }

  /** only what an ingester asks for */
  asStore(): HistoryStore {
    return this as unknown as HistoryStore
  }
}

interface Owner {
  readonly log: Log
  readonly state: KeptState
  readonly history: KeptHistory
  ingester: Ingester
}

/** How far the stores of an owner get before its end: a share of what its log holds, 0 … 1. */
export interface Reach {
  readonly state: number
  readonly history: number
}

/** Owners that share a fleet, each with a log of its own; they may be divided anew, again and again. */
export class Owners implements AsyncDisposable {
  readonly #directory: string
  readonly #clock: Clock
  readonly #logOptions: Partial<LogOptions>
  /** what history was given, by whomever */
  readonly kept: HistoryRecord[] = []
  #owners: Owner[] = []
  #generation = 0

  constructor(directory: string, clock: Clock, logOptions: Partial<LogOptions> = {}) {
    this.#directory = directory
    this.#clock = clock
    this.#logOptions = logOptions
  }

  async begin(count: number): Promise<void> {
    this.#owners = await this.#openAll(await this.#newLogs(count), [])
  }

  of(cluster: ClusterName): Ingester {
    return (this.#owners[ownerOf(cluster, this.#owners.length) - 1] as Owner).ingester
  }

  /** All end, their stores somewhere; then so many others go on. With `count` undefined the same do, with the same logs. */
  async endAndGoOn(reach: readonly Reach[], count?: number): Promise<Divided | undefined> {
    const former = this.#owners
    for (const [i, owner] of former.entries()) {
      await owner.ingester[Symbol.asyncDispose]()
      await bringUp(owner, reach[i % reach.length] ?? { state: 1, history: 1 })
    }
    if (count === undefined) {
      for (const owner of former) owner.ingester = await this.#open(owner)
      return undefined
    }
    const to = await this.#newLogs(count)
    const from = former.map(({ log, state, history }) => ({
      log,
      positions: { state: state.position(), history: history.position() },
    }))
    const divided = await divideLogs({ from, to, logger: silentLogger })
    const clusters = former.flatMap(({ state }) => state.clusters())
    await Promise.all(former.map(({ log }) => log[Symbol.asyncDispose]()))
    // What was written is all there is: nothing of it lives in the logs that were written.
    await Promise.all(to.map((log) => log[Symbol.asyncDispose]()))
    this.#owners = await this.#openAll(await this.#logs(count), clusters)
    return divided
  }

  /** Lets every store take all there is. */
  async settle(): Promise<void> {
    for (const { state, history } of this.#owners) {
      state.isHeld = false
      history.isHeld = false
    }
    // Consumers that were held are in the middle of something: they begin anew.
    for (const owner of this.#owners) {
      await owner.ingester[Symbol.asyncDispose]()
      owner.ingester = await this.#open(owner)
      await owner.ingester.flushed()
      await owner.ingester.flushed('history')
    }
  }

  /** State as it would be stored, by cluster; numbers of versions mean nothing between stores. */
  stored(): Map<string, unknown> {
    const states = this.#owners.flatMap(({ state }) => state.clusters())
    return new Map(
      states.map((state) => [state.name, changedFields(undefined, { ...state, version: 0 }, new StoredRows())]),
    )
  }

  /**
   * What history was given, in an order that says nothing of who gave it. Without the holes that a hub tells of itself: which of
   * them it tells hangs on how far state had come when it ended (missing.test.ts is about those).
   */
  samples(): string[] {
    return this.kept
      .filter((record) => record.kind === 'samples' || record.loss.origin !== HUB_ORIGIN)
      .map((record) =>
        record.kind === 'samples'
          ? `${record.samples.cluster} ${record.samples.at} ${Buffer.from(encodeSamples(record.samples)).toString('base64')}`
          : `${record.cluster} lost ${JSON.stringify(record.loss)}`,
      )
      .sort()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { ingester, log } of this.#owners) {
      await ingester[Symbol.asyncDispose]()
      await log[Symbol.asyncDispose]()
    }
  }

  #newLogs(count: number): Promise<Log[]> {
    this.#generation++
    return this.#logs(count)
  }

  #logs(count: number): Promise<Log[]> {
    const folder = join(this.#directory, String(this.#generation))
    const open = (i: number) => openLog({ ...this.#logOptions, directory: join(folder, String(i + 1)) })
    return Promise.all(Array.from({ length: count }, (_, i) => open(i)))
  }

  #openAll(logs: readonly Log[], clusters: readonly ClusterState[]): Promise<Owner[]> {
    return Promise.all(
      logs.map(async (log, i) => {
        const state = new KeptState(clusters.filter(({ name }) => ownerOf(name, logs.length) === i + 1))
        const owner = { log, state, history: new KeptHistory(this.kept) }
        return { ...owner, ingester: await this.#open(owner) }
      }),
    )
  }

  #open({ log, state, history }: Omit<Owner, 'ingester'>): Promise<Ingester> {
    const events = openEvents({ kind: 'in-process' })
    return Ingester.open({ log, state, events, history: history.asStore(), clock: this.#clock })
  }
}

async function bringUp({ log, state, history }: Owner, reach: Reach): Promise<void> {
  const events = openEvents({ kind: 'in-process' })
  const kept = stateSink({ state, events, logger: silentLogger, onMissed: () => undefined })
  await carry(log, kept, state, reach.state)
  await carry(log, historySink(history.asStore()), history, reach.history)
}

async function carry<Item>(log: Log, sink: LogSink<Item>, store: Held, share: number): Promise<void> {
  store.isHeld = false
  const from = Math.max(store.position() + 1, log.firstIndex())
  const last = from - 1 + Math.round((log.lastIndex() + 1 - from) * share)
  for await (const { index, payload } of log.read(from)) {
    const entry = decodeLogEntry(payload, sink.want)
    const isMine = entry && index <= last && isFor(entry.audience, sink.name)
    const item = isMine ? sink.take(entry) : undefined
    if (item !== undefined) await sink.apply([item], index, new AbortController().signal)
  }
  store.isHeld = true
}

/** How an offer ended, in a word. */
export const wordOf = (offer: Promise<unknown>): Promise<string> =>
  offer.then(
    (accepted) => (accepted ? ((accepted as Accepted).duplicate ? 'duplicate' : 'accepted') : 'done'),
    (error: unknown) => FleetError.from(error).code,
  )
