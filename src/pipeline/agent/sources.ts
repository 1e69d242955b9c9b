import { createHash } from 'node:crypto'
import pLimit from 'p-limit'
import type { Batch, ClusterName, CustomPart } from '#model'

/** What sources saw between two rounds, as a batch. Its sequence comes from the buffer. */
export function partialBatch(cluster: ClusterName, custom: readonly CustomPart[], collectedAt: number): Batch {
  const durationMs = Math.max(0, ...custom.map((part) => part.durationMs))
  return { cluster, sequence: 0, source: 'push', collectedAt, durationMs, parts: [], custom, partial: true }
}

/** Names what a batch between two rounds speaks of; 0 for a round. Two sets of sources may share a lane by chance: no harm. */
export function laneOf({ partial, custom = [] }: Batch): number {
  if (!partial) return 0
  const sources = custom.map(({ source }) => source).sort()
  return createHash('sha256').update(JSON.stringify(sources)).digest().readUInt32LE(0) || 1
}

/** At most so many at once. */
export function inTurn(count: number): <T>(read: () => Promise<T>) => Promise<T> {
  const limit = pLimit(count)
  return (read) => limit(read)
}

const MAX_REMEMBERED = 1_000

/** Tells each thing that cannot be read once. */
export class Unreadable {
  readonly #known = new Set<string>()

  isNew(document: unknown): boolean {
    const key = createHash('sha256')
      .update(JSON.stringify(document) ?? '')
      .digest('base64')
    if (this.#known.has(key)) return false
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
    this.#known.add(key)
    return true
  }
}
