import { comparePositions, type Position, type Writing } from '../sink.ts'

/** Inventories of one sink that are remembered. */
const MAX_WRITINGS = 10_000

/**
 * Later snapshots of the same content: nothing is written for them, so the sink does not know of them. Lost with the process, which then
 * takes an older one for newer than what stands there, until its next snapshot.
 */
export class HeldPositions {
  readonly #positions = new Map<string, { readonly written: Position; readonly held: Position }>()

  /** @param written what the sink says itself */
  of(writing: Writing, written: Position): Position {
    const known = this.#positions.get(keyOf(writing))
    return known && comparePositions(known.written, written) === 0 ? known.held : written
  }

  set(writing: Writing, written: Position, held: Position): void {
    const key = keyOf(writing)
    this.#positions.delete(key)
    if (comparePositions(written, held) === 0) return
    const [oldest] = this.#positions.keys()
    if (this.#positions.size >= MAX_WRITINGS && oldest !== undefined) this.#positions.delete(oldest)
    this.#positions.set(key, { written, held })
  }
}

const keyOf = ({ cluster, namespace, inventory }: Writing): string => JSON.stringify([cluster, namespace, inventory])
