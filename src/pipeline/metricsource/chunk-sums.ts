import { type Aggregated, type Chunk, type ScalarValue, Table } from '#model'
import { MAX_GROUPS } from './aggregate.ts'
import type { RowKind } from './types.ts'

type Sums = Readonly<Record<string, Aggregated>>

/**
 * Aggregations over a table that changes a little at a time: each chunk is gone over once. Only counts and sums of what is compiled
 * in can be added up so; anything else is computed anew from all rows.
 */
export class ChunkSums {
  readonly #kind: Pick<RowKind, 'aggregate'>
  readonly #canAdd: boolean
  readonly #known = new WeakMap<Chunk, Sums>()

  constructor(kind: Pick<RowKind, 'aggregate' | 'aggregations' | 'access'>) {
    this.#kind = kind
    const areSums = kind.aggregations.every(({ function: how }) => how === 'count' || how === 'sum')
    this.#canAdd = kind.access !== 'declared' && areSums
  }

  of(rows: Table): Sums {
    const { chunks, fields } = rows
    if (!this.#canAdd || chunks.length < 2) return this.#kind.aggregate(rows)
    const sums = new Map<string, number | Map<string, number>>()
    for (const chunk of chunks) {
      const own = this.#known.get(chunk) ?? this.#ofChunk(fields, chunk)
      if (!own || !Object.entries(own).every(([name, value]) => add(sums, name, value)))
        return this.#kind.aggregate(rows)
      this.#known.set(chunk, own)
    }
    return Object.fromEntries([...sums].map(([name, sum]) => [name, typeof sum === 'number' ? sum : inOrder(sum)]))
  }

  #ofChunk(fields: readonly string[], chunk: Chunk): Sums | undefined {
    const rows = Table.ofChunks(fields, [chunk])
    return rows && this.#kind.aggregate(rows)
  }
}

/** @returns false where it cannot be added: it is no number, or there are more groups than are named */
function add(sums: Map<string, number | Map<string, number>>, name: string, value: Aggregated): boolean {
  const known = sums.get(name)
  if (typeof value === 'number') {
    sums.set(name, (typeof known === 'number' ? known : 0) + value)
    return true
  }
  if (typeof value !== 'object' || value === null) return false
  const groups = known instanceof Map ? known : new Map<string, number>()
  sums.set(name, groups)
  for (const [group, sum] of Object.entries(value)) {
    if (typeof sum !== 'number') return false
    groups.set(group, (groups.get(group) ?? 0) + sum)
  }
  return groups.size <= MAX_GROUPS
}

const inOrder = (groups: ReadonlyMap<string, number>): Readonly<Record<string, ScalarValue>> =>
  Object.fromEntries([...groups].sort(([a], [b]) => (a < b ? -1 : 1)))
