import type { RowKey } from '#sinks'
import { rowKeyOf } from './packed-row.ts'

/** A row that went. */
export interface Departure {
  /** the target it was of, as `targetText` writes it */
  readonly target: string
  readonly key: RowKey
  readonly sequence: number
}

/**
 * Rows that went, by their keys and in the order they went: with the sequence that each row carries, all that a journal tells. A key stands
 * here at most once, and not while its row is there. The oldest are forgotten beyond a bound; who asks for earlier ones needs a snapshot.
 */
export class Departures {
  readonly #max: number
  readonly #byKey = new Map<string, Departure>()
  #floor = 0

  /** @param max keys that are remembered */
  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#byKey.size
  }

  add(target: string, row: RowKey, sequence: number): void {
    const text = textOf(target, row)
    this.#byKey.delete(text)
    this.#byKey.set(text, { target, key: rowKeyOf(row), sequence })
    if (this.#byKey.size <= this.#max) return
    const [oldest] = this.#byKey
    if (!oldest) return
    this.#floor = oldest[1].sequence
    this.#byKey.delete(oldest[0])
  }

  /** The row is there again. */
  remove(target: string, row: RowKey): void {
    if (this.#byKey.size > 0) this.#byKey.delete(textOf(target, row))
  }

  /** What went after this sequence; undefined: some of it is forgotten. */
  since(sequence: number): readonly Departure[] | undefined {
    if (sequence < this.#floor) return undefined
    return [...this.#byKey.values()].filter((gone) => gone.sequence > sequence)
  }
}

const textOf = (target: string, { targetNamespace, namespace, name, uid }: RowKey): string =>
  `${target}\n${targetNamespace}\n${namespace}\n${name}\n${uid}`
