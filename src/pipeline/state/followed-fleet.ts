import { randomBytes } from 'node:crypto'
import type { Change, ChangeStep, Clock, ClusterName, ClusterState } from '#model'
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

  /** Tells every step in the turn in which it can be read here. The first load is no news. The listener must not wait nor throw. */
  onSteps(listener: (steps: readonly ChangeStep[]) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /**
   * Takes what was read, as one step; undefined: the cluster is gone.
   * @param id names the state after it; default: a name that only this process knows
   */
  protected take(clusters: ReadonlyMap<ClusterName, ClusterState | undefined>, version: number, id?: string): void {
    const at = this.clock.now()
    const changes: Change[] = []
    const kept = new Map<ClusterName, ClusterState | undefined>()
    for (const [name, after] of clusters) {
      const before = this.memory.cluster(name)
      if (after && after.version === before?.version) continue
      const step = after && difference(before, after, at)
      kept.set(name, step?.next)
      changes.push(...(step?.changes ?? (before ? disappearance(before, at) : [])))
    }
    const isFirst = !this.isLoaded
    if (kept.size > 0 || isFirst) this.memory.keep({ clusters: kept, version })
    this.isLoaded = true
    this.seen = { state: 'available' }
    if (!isFirst && changes.length > 0) this.tell([{ id: id ?? this.#ownId(), changes }])
  }

  protected tell(steps: readonly ChangeStep[]): void {
    for (const listener of this.#listeners) listener(steps)
  }

  #ownId(): string {
    this.#steps++
    return `${this.#process}-${this.#steps}`
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
      since: known?.since ?? this.clock.now(),
      reason: reason === NO_CONNECTION ? (known?.reason ?? reason) : reason,
    }
  }

  protected forgetListeners(): void {
    this.#listeners.clear()
  }
}
