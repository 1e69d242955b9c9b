import { createHash } from 'node:crypto'
import pLimit from 'p-limit'
import type { Batch } from '#model'

/** What a batch tells anew: sources by their ids, which no type of snapshot is called. */
export const saidBy = ({ parts, tables = [] }: Batch): readonly string[] => [
  ...parts.filter(({ outcome }) => outcome === 'complete').map(({ type }) => `type ${type}`),
  ...tables.map(({ source }) => source),
]

/** Names what a batch between two rounds tells; 0 for a round. Two sets of it may share a lane by chance: no harm. */
export function laneOf(batch: Batch): number {
  if (!batch.partial) return 0
  const said = saidBy(batch).toSorted()
  return createHash('sha256').update(JSON.stringify(said)).digest().readUInt32LE(0) || 1
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
