import { collectOne } from '#collect'
import type { KubeClient } from '#kube'
import type { Clock, RowsPart } from '#model'
import type { ResourceDescriptor } from '../types.ts'
import { ownCollector } from './row-collector.ts'

export interface CollectSourceOptions {
  readonly kube: KubeClient
  readonly source: ResourceDescriptor
  /** ends it; its own limit is `source.collection.timeoutMs` */
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly random?: () => number
  /** at most this many rows, whatever the source says; for previews */
  readonly limit?: number
  /** told of rows so far, for progress */
  readonly onProgress?: (rows: number) => void
}

/**
 * Reads one cluster once, as the source declares it, within the source's time limit. What cannot be read is said in the part:
 * single namespaces by name beside the rows of the others, anything else as absent, forbidden or unreachable.
 * Never throws, except when `signal` aborts: then nothing is known and nothing must be said.
 */
export async function collectSource({ source, limit, ...options }: CollectSourceOptions): Promise<RowsPart> {
  const { collection } = source
  const maxResources = Math.min(limit ?? Number.POSITIVE_INFINITY, collection.maxResources)
  const collector = ownCollector({ ...source, collection: { ...collection, maxResources } })
  return (await collectOne({ ...options, collector })).part
}
