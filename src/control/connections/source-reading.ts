import type { SourceCatalog } from '#catalog'
import { CollectorLoop } from '#collect'
import type { Ingester } from '#ingest'
import type { KubeClient } from '#kube'
import { ownCollector } from '#metricsource'
import type { Clock, ClusterName } from '#model'
import type { Logger, Metrics } from '#runtime'

export interface SourceReadingOptions {
  readonly catalog: Pick<SourceCatalog, 'sources' | 'onChange'>
  readonly ingester: Pick<Ingester, 'accept' | 'nextSequence'>
  /** the client of a cluster as its connection says now; undefined: there is no way in */
  readonly kube: (cluster: ClusterName) => Promise<KubeClient | undefined>
  /** bounds the collections that read at once, over all clusters */
  readonly turn: <T>(read: () => Promise<T>) => Promise<T>
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly metrics?: Metrics
}

/**
 * MetricSources of the clusters the hub reads by itself: a loop for each, with everything that is in force. What a loop
 * collects goes into the hub as batches of their own, beside the rounds and numbered with them.
 */
export class SourceReading {
  readonly #options: SourceReadingOptions
  readonly #loops = new Map<ClusterName, CollectorLoop>()
  readonly #ending = new Set<Promise<void>>()
  #unsubscribe: (() => void) | undefined

  constructor(options: SourceReadingOptions) {
    this.#options = options
  }

  /** Follows the catalog from now on. Which clusters are read is told by `read`. */
  start(): void {
    if (this.#unsubscribe) return
    this.#unsubscribe = this.#options.catalog.onChange(() => {
      const wanted = this.#wanted()
      for (const loop of this.#loops.values()) loop.replan(wanted)
    })
  }

  /** The hub reads this cluster, until `leave`. A repeat is free. */
  read(cluster: ClusterName): void {
    if (this.#loops.has(cluster) || !this.#unsubscribe) return
    const { catalog: _, ingester, kube, ...shared } = this.#options
    const loop = new CollectorLoop({
      ...shared,
      cluster,
      source: 'pull',
      kube: () => kube(cluster),
      // Numbered in the moment it is handed in: of two batches the one that comes later must have the higher number.
      onBatch: async (batch, left) => {
        await ingester.accept({ batch: { ...batch, sequence: ingester.nextSequence(cluster) } }, left)
      },
    })
    this.#loops.set(cluster, loop)
    loop.replan(this.#wanted())
  }

  /** Nothing of this cluster is read, or taken, from now on. A repeat is free. */
  leave(cluster: ClusterName): void {
    const loop = this.#loops.get(cluster)
    if (!loop) return
    this.#loops.delete(cluster)
    const ended: Promise<void> = loop.stop().finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  /** Leaves all clusters; resolves when nothing runs any more. May be started again. */
  async stop(): Promise<void> {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    for (const cluster of [...this.#loops.keys()]) this.leave(cluster)
    await Promise.all(this.#ending)
  }

  #wanted = () => this.#options.catalog.sources().map(ownCollector)
}
