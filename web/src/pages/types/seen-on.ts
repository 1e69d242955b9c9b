import { useSyncExternalStore } from 'react'
import type { TypeOnClusterView } from '../../contract.ts'

/** How rows of each cluster were last read, for cells that tell it: what moves with every step draws a cell, not the table. */
export class SeenOn {
  #on: ReadonlyMap<string, TypeOnClusterView> = new Map()
  readonly #listeners = new Set<() => void>()

  get(cluster: string): TypeOnClusterView | undefined {
    return this.#on.get(cluster)
  }

  /** Known from now on; who shows it is told by `tell`. */
  set(on: readonly TypeOnClusterView[]): void {
    this.#on = new Map(on.map((one) => [one.cluster, one]))
  }

  tell(): void {
    for (const listener of this.#listeners) listener()
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}

/** How rows of a cluster stand, for what says it by itself. */
export const useSeenOn = (seen: SeenOn, cluster: string): TypeOnClusterView | undefined =>
  useSyncExternalStore(seen.subscribe, () => seen.get(cluster))

/** When rows of a cluster were read, ms since the Unix epoch; null: never. */
export const useReadAt = (seen: SeenOn, cluster: string): number | null =>
  useSyncExternalStore(seen.subscribe, () => seen.get(cluster)?.part.freshness?.observedAt ?? null)
