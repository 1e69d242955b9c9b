import type { ClusterState } from '#model'
import type { StateReader } from '#state'

type Alert = Readonly<Record<string, string>>

/** State that is what a test says; every saying is a new version. */
export class GivenState implements StateReader {
  #version = 0
  #clusters: readonly ClusterState[] = []
  #alerts: ReadonlyMap<string, readonly Alert[]> = new Map()

  set(clusters: readonly ClusterState[], alerts: ReadonlyMap<string, readonly Alert[]>): void {
    this.#version += 1
    this.#clusters = clusters.toSorted((left, right) => (left.name < right.name ? -1 : 1))
    this.#alerts = alerts
  }

  availability() {
    return { state: 'available' } as const
  }

  version(): number {
    return this.#version
  }

  clusters(): readonly ClusterState[] {
    return this.#clusters
  }

  cluster(name: string): ClusterState | undefined {
    return this.#clusters.find((cluster) => cluster.name === name)
  }

  alerts(name: string): readonly Alert[] {
    return this.#alerts.get(name) ?? []
  }
}
