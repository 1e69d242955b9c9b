import type { KubeClient } from '#kube'
import { type Clock, FleetError, invariant } from '#model'
import { Collection, readFor, type WholePart } from './collection.ts'
import { withinLimit } from './ending.ts'
import type { ListEnd } from './list.ts'
import type { OwnCollector, Read } from './types.ts'

export interface CollectOneOptions {
  readonly collector: OwnCollector
  readonly kube: KubeClient
  /** ends it; its own limit is that of the collector */
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly random?: () => number
  /** told of rows so far, for progress */
  readonly onProgress?: (rows: number) => void
}

/** What was collected, and what is needed to follow what comes after it. */
export interface CollectedOne {
  readonly part: WholePart
  readonly collection: Collection
  /** where each read ended; undefined where there is nothing to follow: it failed, or is not whole */
  readonly ends: ReadonlyMap<Read, readonly ListEnd[]> | undefined
}

/** A collection was not finished within its limit. */
class CollectionTimeoutError extends FleetError {
  override readonly name = 'CollectionTimeoutError'
  readonly code = 'collection_timeout'
  readonly retryable = true

  constructor(timeoutMs: number, rows: number) {
    super(`not finished within ${timeoutMs / 1000} s, after ${rows} rows; raise collection.timeoutSeconds or read less`)
  }
}

/**
 * Reads what one collector of rows wants, once, within its limit. Never throws, except where `signal` aborts or our own client was
 * closed: then nothing is known and nothing must be said.
 */
export async function collectOne(options: CollectOneOptions): Promise<CollectedOne> {
  const { collector, kube, signal, clock, random = Math.random, onProgress } = options
  signal.throwIfAborted()
  const limitMs = collector.own.timeoutMs
  const collection = new Collection(collector, { endpoint: kube.endpoint, onMalformed: () => undefined }, clock)
  const over = () => new CollectionTimeoutError(limitMs, collection.size)
  const onPage = () => onProgress?.(collection.size)
  const ends = await withinLimit({ signal, limitMs, clock, over }, async (end) => {
    const reads = readFor([collection], { kube, signal: end.signal, clock, random, onPage })
    void collection.failed.then(() => end.abort(new Error('nothing can be told any more')))
    return new Map(await Promise.all([...reads].map(async ([read, ended]) => [read, await ended] as const)))
  })
  signal.throwIfAborted()
  const { tables, error } = collection.result(clock.now())
  const [part] = tables
  invariant(part, `${collector.name} makes rows`)
  const isWhole = error === undefined && [...ends.values()].every(({ length }) => length > 0)
  return { part, collection, ends: isWhole ? ends : undefined }
}
