import { type ChangeStep, type ClusterName, type ClusterState, isClusterName } from '#model'
import { changesOf, stateAfter } from './cluster-step.ts'
import { disappearance } from './fleet.ts'
import { type Entry, nameOf, timeOf } from './redis-entry.ts'
import type { StoredRows } from './stored-rows.ts'

/** What an entry needs from Redis before it can be taken: some fields of its cluster, or all of them. */
export type Needed = 'nothing' | 'all' | readonly string[]

/** The hash of a cluster is older than an entry that was written with it: Redis came back with a former memory. */
export class StaleCluster extends Error {
  readonly cluster: ClusterName
  constructor(cluster: ClusterName) {
    super(
      'Redis holds an older state of a cluster than it told of, as one that came back with a former memory; ' +
        'a running manager writes it again within seconds',
    )
    this.cluster = cluster
  }
}

/**
 * What entries lead to, taken in their order, until it can be told. A cluster that had to be read may be newer than the entry whose
 * turn it is; then the state is that of no entry until those up to it are taken as well.
 */
export class PendingSteps {
  readonly #before: (name: ClusterName) => ClusterState | undefined
  readonly #rows: StoredRows
  /** versions that were read too early; undefined: it was read as gone */
  readonly #ahead: Map<ClusterName, number | undefined>
  /** undefined: the cluster is gone */
  readonly clusters = new Map<ClusterName, ClusterState | undefined>()
  readonly steps: ChangeStep[] = []
  /** every entry said itself what it changed */
  isSaid = true

  /** @param before the state that was told last. @param ahead of one that goes before this, and was not exact */
  constructor(
    before: (name: ClusterName) => ClusterState | undefined,
    rows: StoredRows,
    ahead: ReadonlyMap<ClusterName, number | undefined> = new Map(),
  ) {
    this.#before = before
    this.#rows = rows
    this.#ahead = new Map(ahead)
  }

  /** Ends here: what was taken is told. @returns the one that goes on */
  next(before: (name: ClusterName) => ClusterState | undefined): PendingSteps {
    return new PendingSteps(before, this.#rows, this.#ahead)
  }

  /** Whether the state is the one after the last entry. */
  get isExact(): boolean {
    return this.#ahead.size === 0
  }

  /** A cluster was read as gone, and no entry said so yet. */
  get lacksOne(): boolean {
    return [...this.#ahead.values()].includes(undefined)
  }

  cluster(name: ClusterName): ClusterState | undefined {
    return this.clusters.has(name) ? this.clusters.get(name) : this.#before(name)
  }

  /** Takes the next entry, unless something is needed for it: then `give` does. */
  take(entry: Entry): Needed {
    const { op, cluster: name, version, step } = entry
    if (!isClusterName(name)) return this.#note(entry, [])
    if (op === 'remove') return this.#remove(entry, name)
    if (this.#ahead.has(name)) {
      if (this.#ahead.get(name) === version) this.#ahead.delete(name)
      return this.#said(entry, name)
    }
    const before = this.cluster(name)
    if (before && before.version >= version) return this.#note(entry, [])
    if (!step || step.base !== (before?.version ?? 0)) return 'all'
    return step.read.length > 0 ? step.read : this.#lead(entry, new Map())
  }

  /**
   * @param read the fields that were needed, as they were when the cluster had this version
   * @returns what is needed beyond that
   */
  give(entry: Entry, version: number | undefined, read: ReadonlyMap<string, string>): Needed {
    return version === entry.version ? this.#lead(entry, read) : 'all'
  }

  /** @param state as it was read; undefined: it is gone. @throws StaleCluster */
  giveAll(entry: Entry, state: ClusterState | undefined): void {
    const name = entry.cluster as ClusterName // `take` asked for it
    if (state && state.version < entry.version) throw new StaleCluster(name)
    if (state?.version !== entry.version) this.#ahead.set(name, state?.version)
    this.clusters.set(name, state)
    this.#said(entry, name)
  }

  #lead(entry: Entry, read: ReadonlyMap<string, string>): Needed {
    const { cluster, version, step } = entry
    const name = cluster as ClusterName
    const after = step && stateAfter(this.cluster(name), step, { rows: this.#rows, read })
    if (after?.name !== name || after.version !== version) return 'all'
    this.clusters.set(name, after)
    return this.#said(entry, name)
  }

  #remove(entry: Entry, name: ClusterName): Needed {
    const ahead = this.#ahead.get(name)
    const isThere = this.#ahead.has(name) || this.cluster(name) !== undefined
    // What was read too early may be of a cluster that came back under the same name.
    if (ahead === undefined || ahead <= entry.version) {
      this.#ahead.delete(name)
      this.clusters.set(name, undefined)
    }
    return this.#note(entry, isThere ? disappearance(name, timeOf(entry)) : [])
  }

  #said(entry: Entry, name: ClusterName): 'nothing' {
    const { step, isAgain } = entry
    if (!step && !isAgain) this.isSaid = false
    return this.#note(entry, step ? changesOf(name, step, timeOf(entry)) : [])
  }

  #note(entry: Entry, changes: ChangeStep['changes']): 'nothing' {
    this.steps.push({ id: nameOf(entry), changes })
    return 'nothing'
  }
}

/**
 * Steps that the end of a stream tells, for those who come back after a restart of this process.
 * @param newest entries, newest first
 * @param generations marks of the shares as they are now
 */
export function pastSteps(newest: readonly Entry[], generations: ReadonlyMap<number, string>): ChangeStep[] {
  const steps: ChangeStep[] = []
  const writers = new Map<number, Pick<Entry, 'writer' | 'count'>>()
  for (const entry of newest) {
    const { op, owner, generation, writer, count, cluster: name, step, isAgain } = entry
    const later = writers.get(owner)
    if (later && (later.writer !== writer || later.count !== count + 1)) break
    if (owner !== 0 && generation !== generations.get(owner)) break
    writers.set(owner, entry)
    const at = timeOf(entry)
    const isSaid = isClusterName(name) && (op === 'remove' || step || isAgain)
    const told = isSaid && step ? changesOf(name, step, at) : []
    steps.unshift({
      id: nameOf(entry),
      changes: isSaid && op === 'remove' ? disappearance(name, at) : told,
      isPast: true,
    })
    // What it led to is known, and not by what.
    if (!isSaid) break
  }
  return steps
}
