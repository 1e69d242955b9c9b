import type { Change, ClusterName, ClusterState } from '#model'
import { applyRecord, clusterOf } from './fleet.ts'
import type { StateRecord } from './types.ts'

/** What applying some records would make of the fleet; nothing is changed until it is kept. */
export interface Draft {
  /** clusters that differ: undefined where the cluster is gone */
  readonly clusters: ReadonlyMap<ClusterName, ClusterState | undefined>
  readonly changes: Change[]
  readonly version: number
}

/** The fleet in memory: the truth for every read, whatever store stands behind. */
export class FleetMemory {
  readonly #clusters = new Map<string, ClusterState>()
  #sorted: readonly ClusterState[] | undefined
  #version: number

  /** @param version to start from; a store that begins anew takes the time, so that no version comes twice */
  constructor(version: number) {
    this.#version = version
  }

  version(): number {
    return this.#version
  }

  clusters(): readonly ClusterState[] {
    this.#sorted ??= [...this.#clusters.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    return this.#sorted
  }

  cluster(name: string): ClusterState | undefined {
    return this.#clusters.get(name)
  }

  draft(records: readonly StateRecord[]): Draft {
    const clusters = new Map<ClusterName, ClusterState | undefined>()
    const changes: Change[] = []
    let version = this.#version
    for (const record of records) {
      const name = clusterOf(record)
      const previous = clusters.has(name) ? clusters.get(name) : this.#clusters.get(name)
      const applied = applyRecord(previous, record, version + 1)
      if (applied.changes.length === 0) continue
      version++
      clusters.set(name, applied.next)
      changes.push(...applied.changes)
    }
    return { clusters, changes, version }
  }

  keep({ clusters, version }: Pick<Draft, 'clusters' | 'version'>): void {
    for (const [name, state] of clusters) {
      if (state) this.#clusters.set(name, state)
      else this.#clusters.delete(name)
    }
    this.#version = Math.max(this.#version, version)
    if (clusters.size > 0) this.#sorted = undefined
  }
}
