import type { SourceCatalog } from '#catalog'
import type { Ingester } from '#ingest'
import type { KubeClient } from '#kube'
import { type ResourceDescriptor, SourceLoop } from '#metricsource'
import { type Batch, type Clock, type ClusterName, type CustomPart, FleetError } from '#model'
import type { Logger, Metrics } from '#runtime'

export interface SourceReadingOptions {
  readonly catalog: Pick<SourceCatalog, 'sources' | 'onChange'>
  /** kinds of rows, compiled in, that are read besides */
  readonly resources?: readonly ResourceDescriptor[]
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

interface Reading {
  readonly loop: SourceLoop
  readonly left: AbortController
}

/**
 * MetricSources of the clusters the hub reads by itself: a loop for each, with everything that is in force. What a loop
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
    this.#unsubscribe ??= this.#options.catalog.onChange(() => {
      const wanted = this.#wanted()
      for (const { loop } of this.#readings.values()) loop.replan(wanted)
    })
  }

  /** The hub reads this cluster, until `leave`. A repeat is free. */
  read(cluster: ClusterName): void {
    if (this.#readings.has(cluster) || !this.#unsubscribe) return
    const { kube, turn, clock, random, logger, metrics } = this.#options
    const left = new AbortController()
    const loop = new SourceLoop({
      cluster,
      kube: () => kube(cluster),
      onParts: (parts, collectedAt) => this.#take(cluster, parts, collectedAt, left.signal),
      turn,
      clock,
      random,
      logger,
      ...(metrics && { metrics }),
    })
    this.#readings.set(cluster, { loop, left })
    loop.replan(this.#wanted())
  }

  #wanted(): readonly ResourceDescriptor[] {
    const { catalog, resources = [] } = this.#options
    return [...resources, ...catalog.sources()]
  }

  /** Nothing of this cluster is read, or taken, from now on. A repeat is free. */
  leave(cluster: ClusterName): void {
    const reading = this.#readings.get(cluster)
    if (!reading) return
    this.#readings.delete(cluster)
    reading.left.abort()
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

  async #take(
    cluster: ClusterName,
    parts: readonly CustomPart[],
    collectedAt: number,
    left: AbortSignal,
  ): Promise<void> {
    if (left.aborted) return
    const { ingester, logger } = this.#options
    try {
      // Numbered in the moment it is handed in: of two batches the one that comes later must have the higher number.
      await ingester.accept({ batch: partialBatch(cluster, ingester.nextSequence(cluster), parts, collectedAt) }, left)
    } catch (error) {
      if (left.aborted) return
      // The next collection says it again.
      logger.warn({ cluster, err: FleetError.from(error) }, 'what sources collected could not be kept')
    }
  }
}

function partialBatch(
  cluster: ClusterName,
  sequence: number,
  custom: readonly CustomPart[],
  collectedAt: number,
): Batch {
  const durationMs = Math.max(0, ...custom.map((part) => part.durationMs))
  return { cluster, sequence, source: 'pull', collectedAt, durationMs, parts: [], custom, partial: true }
}
