import { setImmediate as nextTurn } from 'node:timers/promises'
import {
  type Change,
  type Clock,
  type ClusterName,
  type ClusterState,
  isClusterName,
  StoreUnavailableError,
  systemClock,
} from '#model'
import { type Logger, silentLogger } from '#runtime'
import { FleetMemory } from './memory.ts'
import { type FieldChange, type Moment, StateJournal } from './state-journal.ts'
import { changedFields, damageLogger, decodeCluster } from './stored.ts'
import { StoredRows } from './stored-rows.ts'
import type { Availability, StateStore } from './types.ts'

/** Where state is kept on disk. */
export interface EmbeddedStateOptions {
  /** made where missing; one process at a time */
  readonly directory: string
  readonly clock?: Clock
  readonly logger?: Logger
  /** what is applied reaches the disk at the latest so long after, in one transaction; default 250 ms */
  readonly writeBehindMs?: number
  /** records applied but not yet on disk; above it `apply` waits for the disk; default 20 000 */
  readonly maxUnwritten?: number
}

const STORE = 'embedded state'
/** Clusters turned into text before others get a turn. */
const SLICE = 20

/**
 * State in memory, written behind to a journal. What the disk holds is always one moment of memory together with its position
 * in the hub's log: after a crash the log is replayed from there. Nothing waits in a queue but the names of clusters.
 */
export class EmbeddedStateStore implements StateStore {
  readonly #journal: StateJournal
  readonly #memory: FleetMemory
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #writeBehindMs: number
  readonly #maxUnwritten: number
  /** as the disk has them */
  readonly #written: Map<ClusterName, ClusterState>
  #rows: StoredRows
  readonly #dirty = new Set<ClusterName>()
  readonly #closing = new AbortController()
  #writing: Promise<void> | undefined
  #loop: Promise<void> | undefined
  #applied: number
  #safe: number
  #unwritten = 0
  #commitMs = 0

  private constructor(
    { clock = systemClock, logger = silentLogger, writeBehindMs = 250, maxUnwritten = 20_000 }: EmbeddedStateOptions,
    journal: StateJournal,
    { position, version }: Moment,
    { clusters, rows }: { readonly clusters: readonly ClusterState[]; readonly rows: StoredRows },
  ) {
    this.#journal = journal
    this.#rows = rows
    this.#clock = clock
    this.#logger = logger
    this.#writeBehindMs = writeBehindMs
    this.#maxUnwritten = maxUnwritten
    this.#applied = position
    this.#safe = position
    this.#memory = new FleetMemory(version ?? clock.now())
    this.#written = new Map(clusters.map((state) => [state.name, state]))
    this.#memory.keep({ clusters: this.#written, version: this.#memory.version() })
  }

  /** @throws DirectoryLockedError while another process holds the directory */
  static async open(options: EmbeddedStateOptions): Promise<EmbeddedStateStore> {
    const { directory, logger = silentLogger } = options
    const { journal, moment, fields } = await StateJournal.open(directory, logger)
    return new EmbeddedStateStore(options, journal, moment, decodeClusters(fields, logger))
  }

  availability(): Availability {
    return { state: 'available' }
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

  alerts(): readonly Readonly<Record<string, string>>[] {
    return []
  }

  position(): number {
    return this.#safe
  }

  sequence(cluster: ClusterName): number {
    return this.#memory.cluster(cluster)?.sequence ?? 0
  }

  async apply(...[records, position, signal, onApplied]: Parameters<StateStore['apply']>): Promise<Change[]> {
    signal?.throwIfAborted()
    if (this.#unwritten >= this.#maxUnwritten) await this.flush()
    const draft = this.#memory.draft(records)
    this.#memory.keep(draft)
    for (const name of draft.clusters.keys()) this.#dirty.add(name)
    this.#applied = position
    this.#unwritten += records.length
    this.#loop ??= this.#writeLater()
    onApplied?.(draft.changes)
    return draft.changes
  }

  /**
   * Resolves when what was applied before is on disk.
   * @throws StoreUnavailableError when the disk does not take it; it stays in memory and is tried again
   */
  async flush(): Promise<void> {
    await this.#writing?.catch(() => undefined) // its own caller heard of it; ours is the next try
    if (this.#safe === this.#applied && this.#dirty.size === 0) return
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
    await this.#writing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#closing.signal.aborted) return
    this.#closing.abort()
    await this.#loop
    try {
      await this.flush()
    } catch (error) {
      this.#logger.error({ error }, 'state was not written at the end: the next start replays the log')
    }
    await this.#journal[Symbol.asyncDispose]()
  }

  async #writeLater(): Promise<void> {
    const { signal } = this.#closing
    // A commit stands in everybody's way: on a slow disk it takes at most a tenth of the time.
    const normalMs = () => Math.max(this.#writeBehindMs, this.#commitMs * 10)
    let waitMs = normalMs()
    while (this.#safe !== this.#applied || this.#dirty.size > 0) {
      await this.#clock.sleep(waitMs, signal)
      if (signal.aborted) break // the closing writes what is left
      try {
        await this.flush()
        waitMs = normalMs()
      } catch (error) {
        this.#logger.error({ error, retryInMs: waitMs }, 'state could not be written to disk: trying again')
        waitMs = Math.min(Math.max(waitMs, 100) * 2, 5_000)
      }
    }
    this.#loop = undefined
  }

  async #write(): Promise<void> {
    // One moment of memory: states are immutable, so holding them is a snapshot.
    const names = [...this.#dirty]
    const states = names.map((name) => this.#memory.cluster(name))
    const position = this.#applied
    const version = this.#memory.version()
    const unwritten = this.#unwritten
    this.#dirty.clear()
    try {
      const changes: FieldChange[] = []
      for (const [i, state] of states.entries()) {
        if (i % SLICE === SLICE - 1) await nextTurn()
        changes.push(...this.#changesOf(names[i] as ClusterName, state))
      }
      const begun = performance.now()
      await this.#journal.write({ position, version }, changes)
      this.#commitMs = performance.now() - begun
    } catch (error) {
      for (const name of names) this.#dirty.add(name)
      throw new StoreUnavailableError(STORE, error instanceof Error ? error.message : String(error), { cause: error })
    }
    for (const [i, name] of names.entries()) {
      const state = states[i]
      if (state) this.#written.set(name, state)
      else this.#written.delete(name)
    }
    this.#unwritten -= unwritten
    this.#safe = position
    if (!this.#journal.isLong()) return
    const rows = new StoredRows()
    try {
      await this.#journal.writeAnew({ position, version }, allOf(this.#written, rows))
      this.#rows = rows
    } catch (error) {
      // What was written counts; everything is tried again after the next write.
      this.#logger.warn({ error }, 'state could not be written anew: its journal grows')
    }
  }

  *#changesOf(name: ClusterName, state: ClusterState | undefined): Generator<FieldChange> {
    const before = this.#written.get(name)
    if (!state || !before) yield [name]
    if (!state) return
    for (const [field, text] of changedFields(before, state, this.#rows)) yield [name, field, text ?? null]
  }
}

function* allOf(states: ReadonlyMap<ClusterName, ClusterState>, rows: StoredRows): Generator<FieldChange> {
  for (const [name, state] of states)
    for (const [field, text] of changedFields(undefined, state, rows)) yield [name, field, text ?? null]
}

function decodeClusters(
  fields: ReadonlyMap<string, ReadonlyMap<string, string>>,
  logger: Logger,
): { readonly clusters: readonly ClusterState[]; readonly rows: StoredRows } {
  const rows = new StoredRows()
  const clusters = [...fields].flatMap(([cluster, own]) => {
    const state = isClusterName(cluster)
      ? decodeCluster(Object.fromEntries(own), rows, { onDamage: damageLogger(cluster, logger) })
      : undefined
    if (!state) logger.error({ cluster }, 'what is stored of the cluster cannot be read: it waits for the next round')
    return state ? [state] : []
  })
  return { clusters, rows }
}
