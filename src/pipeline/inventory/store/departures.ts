import type { RowKey } from '#sinks'
import { rowKeyOf } from './packed-row.ts'

/**
 * Rows that went, by their keys and in the order they went: with the sequence that each row carries, all that a journal tells. A key stands
 * here at most once, and not while its row is there. The oldest are forgotten beyond a bound; who asks for earlier ones needs a snapshot.
 */
export class Departures {
  readonly #max: number
  readonly #byKey = new Map<string, { readonly key: RowKey; readonly sequence: number }>()
  #floor = 0

  /** @param max keys that are remembered */
  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#byKey.size
  }

  add(row: RowKey, sequence: number): void {
    const text = textOf(row)
    this.#byKey.delete(text)
    this.#byKey.set(text, { key: rowKeyOf(row), sequence })
    if (this.#byKey.size <= this.#max) return
    const [oldest] = this.#byKey
    if (!oldest) return
    this.#floor = oldest[1].sequence
    this.#byKey.delete(oldest[0])
  }

  /** The row is there again. */
  remove(row: RowKey): void {
    if (this.#byKey.size > 0) this.#byKey.delete(textOf(row))
  }

  /** What went after this sequence; undefined: some of it is forgotten. */
  since(sequence: number): readonly RowKey[] | undefined {
    if (sequence < this.#floor) return undefined
    return [...this.#byKey.values()].filter((gone) => gone.sequence > sequence).map(({ key }) => key)
  }
}

const textOf = ({ targetNamespace, targetName, namespace, name, uid }: RowKey): string =>
  `${targetNamespace}\n${targetName}\n${namespace}\n${name}\n${uid}`
