import type { Table } from '#model'
import type { Steps } from '#runtime'

/*
 * What was found out about chunks of rows, their columns and keys, for the next question:
 *
 *   question ── a column, keys, a chunk or a table ── what was found
 *
 * None of these ever changes, so nothing here is ever out of date: a row that changes makes a new chunk, and what was known of the others
 * stays. A chunk that is gone takes what was known of it along. There are two generations: when the young one holds half of the
 * bytes, it becomes the old one, and what nobody asked for since the last time is gone. Bytes of chunks that are gone count until then.
 */

/** Chunks of fewer rows are steps of a stream, of which each is looked at once: nothing is kept of them. */
export const FEW_ROWS = 32

/** Of tables of fewer rows nothing is kept: they are steps of a stream, too, or quickly looked at. */
const FEW_ROWS_OF_TABLE = 128
export const isKept = ({ size }: Table): boolean => size >= FEW_ROWS_OF_TABLE

/** A WeakMap and its place in a Map, about. */
const BYTES_OF_QUESTION = 400
const BYTES_OF_ENTRY = 64

type Found = Map<string, WeakMap<object, unknown>>

/** Answers about chunks, bounded in bytes; what was not asked for longest goes first. */
export class ChunkMemo {
  readonly #maxBytes: number
  #young: Found = new Map()
  #old: Found = new Map()
  #bytes = 0
  /** rises where generations change */
  generation = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * What is known in answer to one question.
   * @param bytesOf of a value, about
   */
  answers<V>(question: string, bytesOf: (value: V) => number): Answers<V> {
    return new Answers(this, question, bytesOf)
  }

  /** of both generations, at most */
  get bytes(): number {
    return this.#bytes
  }

  /** For `Answers` alone. */
  found(question: string): {
    readonly young: WeakMap<object, unknown>
    readonly old: WeakMap<object, unknown> | undefined
  } {
    let young = this.#young.get(question)
    if (!young) {
      young = new WeakMap()
      this.#young.set(question, young)
      this.#bytes += BYTES_OF_QUESTION + 2 * question.length
    }
    return { young, old: this.#old.get(question) }
  }

  /** For `Answers` alone. */
  added(bytes: number): void {
    this.#bytes += bytes + BYTES_OF_ENTRY
    if (this.#bytes <= this.#maxBytes / 2) return
    this.#old = this.#young
    this.#young = new Map()
    this.#bytes = 0
    this.generation += 1
  }
}

/** Answers to one question by what it was asked of. */
export class Answers<V> {
  readonly #memo: ChunkMemo
  readonly #question: string
  readonly #bytesOf: (value: V) => number
  #generation = -1
  #young: WeakMap<object, unknown> = new WeakMap()
  #old: WeakMap<object, unknown> | undefined

  constructor(memo: ChunkMemo, question: string, bytesOf: (value: V) => number) {
    this.#memo = memo
    this.#question = question
    this.#bytesOf = bytesOf
  }

  /** @param make answers where nothing is known yet */
  of<K extends object>(about: K, make: (about: K) => V): V {
    return this.known(about) ?? this.#put(about, make(about))
  }

  /** The same step by step. */
  *steps(about: object, make: () => Steps<V>): Steps<V> {
    return this.known(about) ?? this.#put(about, yield* make())
  }

  /** @returns undefined where nobody asked */
  known(about: object): V | undefined {
    if (this.#generation !== this.#memo.generation) this.#refresh()
    const young = this.#young.get(about) as V | undefined // values of one question are of one type
    if (young !== undefined) return young
    const old = this.#old?.get(about) as V | undefined
    return old === undefined ? undefined : this.#put(about, old)
  }

  #put(about: object, value: V): V {
    // What was asked for meanwhile may have begun a generation.
    if (this.#generation !== this.#memo.generation) this.#refresh()
    this.#young.set(about, value)
    this.#memo.added(this.#bytesOf(value))
    return value
  }

  #refresh(): void {
    const { young, old } = this.#memo.found(this.#question)
    this.#young = young
    this.#old = old
    this.#generation = this.#memo.generation
  }
}
