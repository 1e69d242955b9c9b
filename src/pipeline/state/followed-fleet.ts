import { randomBytes } from 'node:crypto'
import type { Change, ChangeStep, Clock, ClusterName, ClusterState, Table } from '#model'
import { NO_CONNECTION } from '#redis'
import { difference } from './difference.ts'
import { disappearance } from './fleet.ts'
import { FleetMemory } from './memory.ts'
import type { AlertsReader } from './redis-alerts.ts'
import type { Availability, StateReader } from './types.ts'

/**
 * A fleet that others write to Redis, in the memory of this process. Reads never wait: while Redis is away the last picture stays
 * and says so.
 *
 *   loading ─► available ◄─► unavailable
 */
export abstract class FollowedFleet implements StateReader {
  protected readonly clock: Clock
  protected readonly closing = new AbortController()
  protected readonly memory = new FleetMemory(0)
  protected abstract readonly alertsReader: AlertsReader
  /** something was read since the start */
  protected isLoaded = false
  protected seen: Availability = { state: 'loading' }
  readonly #listeners = new Set<(steps: readonly ChangeStep[]) => void>()
  readonly #process = randomBytes(6).toString('hex')
  #steps = 0
  #heardAt = 0
  /** what a listener is told that comes now */
  #begin: readonly ChangeStep[] = []

  constructor(clock: Clock) {
    this.clock = clock
  }

  availability(): Availability {
    return this.seen
  }

  version(): number {
    return this.memory.version()
  }

  clusters(): readonly ClusterState[] {
    return this.memory.clusters()
  }

  cluster(name: string): ClusterState | undefined {
    return this.memory.cluster(name)
  }

  alerts(name: string): readonly Readonly<Record<string, string>>[] {
    return this.alertsReader.of(name)
  }

  /**
   * Tells every step in the turn in which it can be read here, and at once which state is there, if any. The listener must not
   * wait nor throw.
   */
  onSteps(listener: (steps: readonly ChangeStep[]) => void): () => void {
    this.#listeners.add(listener)
    if (this.#begin.length > 0) listener(this.#begin)
    return () => void this.#listeners.delete(listener)
  }

  /** Which of two tables with equal rows is kept: see `difference`. */
  protected keepTable(_came: Table, shares: Table): Table {
    return shares
  }

  /**
   * Takes what was read, as one step; undefined: the cluster is gone.
   * @param id names the state after it; default: a name that only this process knows
   */
  protected take(
    clusters: ReadonlyMap<ClusterName, ClusterState | undefined>,
    version: number,
    { id, past = [] }: { readonly id?: string | undefined; readonly past?: readonly ChangeStep[] } = {},
  ): void {
    const at = this.clock.now()
    const changes: Change[] = []
    const kept = new Map<ClusterName, ClusterState | undefined>()
    for (const [name, after] of clusters) {
      const before = this.memory.cluster(name)
      if (after && after.version === before?.version) continue
      const step = after && difference(before, after, at, (came, shares) => this.keepTable(came, shares))
      kept.set(name, step?.next)
      changes.push(...(step?.changes ?? (before ? disappearance(name, at) : [])))
    }
    const isFirst = !this.isLoaded
    if (kept.size > 0 || isFirst) this.memory.keep({ clusters: kept, version })
    this.isLoaded = true
    this.noteHeard()
    // The first load is no news.
    if (isFirst) this.#tell([...past, { id: id ?? this.#ownId(), changes: [], isPast: true }])
    else if (id !== undefined || changes.length > 0) this.#tell([{ id: id ?? this.#ownId(), changes }])
  }

  /** Takes steps that say what they change. @param clusters what they lead to */
  protected takeSteps(
    clusters: ReadonlyMap<ClusterName, ClusterState | undefined>,
    version: number,
    steps: readonly ChangeStep[],
  ): void {
    if (clusters.size > 0) this.memory.keep({ clusters, version })
    this.noteHeard()
    this.#tell(steps)
  }

  #tell(steps: readonly ChangeStep[]): void {
    const last = steps.at(-1)
    if (!last) return
    this.#begin = last.isPast ? steps : [{ id: last.id, changes: [], isPast: true }]
    for (const listener of this.#listeners) listener(steps)
  }

  #ownId(): string {
    this.#steps++
    return `${this.#process}-${this.#steps}`
  }

  /** Redis answered, and what is there is the state. */
  protected noteHeard(): void {
    this.seen = { state: 'available' }
    this.#heardAt = this.clock.now()
  }

  /** Redis answers, and what is there cannot be read. */
  protected noteMissing(missing: string): void {
    if (this.isLoaded) this.noteTrouble(missing)
    else this.seen = { state: 'loading', missing }
  }

  protected noteTrouble(reason: string): void {
    if (this.closing.signal.aborted) return
    // Nothing was ever read: "loading" is the truth, the log has the reason.
    if (!this.isLoaded) {
      this.seen = { state: 'loading' }
      return
    }
    const known = this.seen.state === 'unavailable' ? this.seen : undefined
    this.seen = {
      state: 'unavailable',
      since: known?.since ?? this.#heardAt,
      reason: reason === NO_CONNECTION ? (known?.reason ?? reason) : reason,
    }
  }

  protected forgetListeners(): void {
    this.#listeners.clear()
  }
}
