/** What one owner told in the stream: a cluster moved. */
export interface Entry {
  readonly id: string
  readonly op: string
  readonly cluster: string
  readonly version: number
  /** index of who wrote it; 0: it is about all of them */
  readonly owner: number
  /** of its share */
  readonly generation: string
  readonly writer: string
  /** of the writer's entries */
  readonly count: number
}

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
  take({ op, owner, generation, writer, count }: Entry): string | undefined {
    if (op === 'reload' || generation !== this.#generations.get(owner)) return 'all of it was written again'
    const known = this.#writers.get(owner)
    if (known && known.name !== writer) return 'another process writes'
    if (count !== (known?.count ?? 0) + 1) return 'a piece of the stream is missing'
    this.#writers.set(owner, { name: writer, count })
    return undefined
  }
}
