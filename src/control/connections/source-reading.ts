import type { SourceCatalog } from '#catalog'
import { CollectorLoop, Kubelets, type OwnCollector, summaryByProxy, usageCollectors } from '#collect'
import type { Ingester } from '#ingest'
import type { KubeClient } from '#kube'
import { ownCollector } from '#metricsource'
import { type Clock, type ClusterName, isClusterName } from '#model'
import type { Logger, Metrics } from '#runtime'
import type { UsageDefaults } from './settings.ts'

export interface SourceReadingOptions {
  readonly catalog: Pick<SourceCatalog, 'sources' | 'onChange'>
  readonly ingester: Pick<Ingester, 'accept' | 'nextSequence'>
  /** the client of a cluster as its connection says now; undefined: there is no way in */
  readonly kube: (cluster: ClusterName) => Promise<KubeClient | undefined>
  /** what nodes and pods use is read as well; default: it is not */
  readonly usage?: UsageDefaults
  /** others deliver what is read of it: nothing of ours may come beside it */
  readonly isLeft: (cluster: ClusterName) => boolean
  /** time between two rounds of a cluster, ms */
  readonly roundMs: (cluster: ClusterName) => number
  /** bounds the collections that read at once, over all clusters */
  readonly turn: <T>(read: () => Promise<T>) => Promise<T>
  readonly clock: Clock
  readonly random: () => number
  readonly logger: Logger
  readonly metrics?: Metrics
}

/** A cluster that is read. */
interface Reading {
  readonly loop: CollectorLoop
  /** absent: none is asked from here */
  readonly kubelets?: Kubelets
}

/**
 * MetricSources of the clusters the hub reads by itself, and what nodes and pods use there: a loop for each, with everything that is in force. What a loop
 * collects goes into the hub as batches of their own, beside the rounds and numbered with them.
 */
export class SourceReading {
  readonly #options: SourceReadingOptions
  readonly #readings = new Map<ClusterName, Reading>()
  readonly #ending = new Set<Promise<void>>()
  #unsubscribe: (() => void) | undefined

  constructor(options: SourceReadingOptions) {
    this.#options = options
  }

  /** Follows the catalog from now on. Which clusters are read is told by `read`. */
  start(): void {
    if (this.#unsubscribe) return
    const uncatalogued = this.#options.catalog.onChange(() => {
      for (const cluster of this.#readings.keys()) this.#replan(cluster)
    })
    const unrated = this.#options.usage?.rates.onChange((cluster) => {
      if (isClusterName(cluster)) this.#replan(cluster)
    })
    this.#unsubscribe = () => {
      uncatalogued()
      unrated?.()
    }
  }

  /** The hub reads this cluster, until `leave`. A repeat is free. */
  read(cluster: ClusterName): void {
    if (!this.#unsubscribe) return
    // Its connection may name another interval by now.
    if (this.#readings.has(cluster)) {
      this.#replan(cluster)
      return
    }
    const { catalog: _, ingester, kube, usage, isLeft, roundMs: __, ...shared } = this.#options
    const loop = new CollectorLoop({
      ...shared,
      cluster,
      source: 'pull',
      kube: () => kube(cluster),
      // Numbered in the moment it is handed in: of two batches the one that comes later must have the higher number.
      onBatch: async (batch, left) => {
        if (isLeft(cluster)) return
        await ingester.accept({ batch: { ...batch, sequence: ingester.nextSequence(cluster) } }, left)
      },
    })
    // The hub has no place in the network of its clusters.
    const isAsked = usage?.kubeletsOf(cluster) === 'proxy'
    const { clock } = shared
    const kubelets = isAsked ? new Kubelets({ way: 'proxy', read: summaryByProxy, clock }) : undefined
    this.#readings.set(cluster, { loop, ...(kubelets && { kubelets }) })
    this.#replan(cluster)
  }

  /** Nothing of this cluster is read, or taken, from now on. A repeat is free. */
  leave(cluster: ClusterName): void {
    const reading = this.#readings.get(cluster)
    if (!reading) return
    this.#readings.delete(cluster)
    const ended: Promise<void> = reading.loop.stop().finally(() => this.#ending.delete(ended))
    this.#ending.add(ended)
  }

  /** Leaves all clusters; resolves when nothing runs any more. May be started again. */
  async stop(): Promise<void> {
    this.#unsubscribe?.()
    this.#unsubscribe = undefined
    for (const cluster of [...this.#readings.keys()]) this.leave(cluster)
    await Promise.all(this.#ending)
  }

  #replan(cluster: ClusterName): void {
    const reading = this.#readings.get(cluster)
    const { catalog } = this.#options
    if (reading) reading.loop.replan([...catalog.sources().map(ownCollector), ...this.#usage(cluster, reading)])
  }

  #usage(cluster: ClusterName, { kubelets }: Reading): readonly OwnCollector[] {
    const { usage, roundMs } = this.#options
    if (!usage) return []
    const refreshMs = usage.rates.of(cluster, roundMs(cluster))
    return usageCollectors({ refreshMs, ...(kubelets && { kubelets }) })
  }
}
