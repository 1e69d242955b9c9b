import type { Entry } from './redis-entry.ts'

/** Who wrote last, and its how many-eth entry that was. */
export interface Writer {
  readonly name: string
  readonly count: number
}

/**
 * Whether a stream that several owners write in turn is followed without a hole: what each wrote is counted by itself, so
 * their entries may come in any order among each other.
 */
export class StreamOrder {
  readonly #generations: ReadonlyMap<number, string>
  readonly #writers: Map<number, Writer>

  /** @param writers of the newest entry that is read already, by owner; absent: there was none */
  constructor(generations: ReadonlyMap<number, string>, writers: ReadonlyMap<number, Writer>) {
    this.#generations = generations
    this.#writers = new Map(writers)
  }

  /** Takes the next entry. @returns why all has to be read again; undefined: nothing is missing before it */
  take({
    op,
    owner,
    generation,
    writer,
    count,
  }: Pick<Entry, 'op' | 'owner' | 'generation' | 'writer' | 'count'>): string | undefined {
    if (op === 'reload' || generation !== this.#generations.get(owner)) return 'all of it was written again'
    const known = this.#writers.get(owner)
    if (known && known.name !== writer) return 'another process writes'
    if (count !== (known?.count ?? 0) + 1) return 'a piece of the stream is missing'
    this.#writers.set(owner, { name: writer, count })
    return undefined
  }
}
