import type { Batch } from '#model'
import type { BatchRecord } from './buffer-record.ts'
import { saidBy } from './sources.ts'

export interface FreshBatch {
  readonly batch: Batch
  readonly record: BatchRecord
  /** The record has nothing of what the batch says: only this process can say it, and the next round says it anew. */
  readonly isHollow: boolean
}

interface Entry extends FreshBatch {
  /** what it says of which no later batch spoke */
  readonly said: Set<string>
}

/** What is said apart from others every time: beyond this the oldest goes as backlog. */
const MAX_PARTIAL = 64

/**
 * Batches of this process that say something no later one says: the newest round, and of what is told between rounds the newest of
 * each. They are what the hub wants first, and what differences are made of.
 */
export class Fresh {
  readonly #entries = new Map<number, Entry>()

  /** In the order of their sequences. */
  add(batch: Batch, record: BatchRecord, isHollow: boolean): void {
    const said = new Set(saidBy(batch))
    for (const [sequence, entry] of this.#entries) {
      for (const one of said) entry.said.delete(one)
      const isRound = entry.batch.partial !== true
      if (isRound ? batch.partial !== true : entry.said.size === 0) this.#entries.delete(sequence)
    }
    this.#entries.set(record.sequence, { batch, record, isHollow, said })
    const partial = [...this.#entries].filter(([, entry]) => entry.batch.partial)
    if (partial.length > MAX_PARTIAL && partial[0]) this.#entries.delete(partial[0][0])
  }

  /** rising */
  sequences(): readonly number[] {
    return [...this.#entries.keys()]
  }

  get(sequence: number): FreshBatch | undefined {
    return this.#entries.get(sequence)
  }

  /** Lets go of the others. */
  keep(isOpen: (sequence: number) => boolean): void {
    for (const sequence of this.#entries.keys()) if (!isOpen(sequence)) this.#entries.delete(sequence)
  }
}
