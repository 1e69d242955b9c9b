import { cutText } from '../cut-text.ts'
import type { RowSpace } from './row-space.ts'

/** Of an object without a row, bytes: its uid and namespace, and its place in a map. */
export const FAILURE_BYTES = 200
/** So many of a target are told in words. */
const MAX_TEXTS = 4
const MAX_LETTERS = 2000
const NO_TEXT = 'an object that failed earlier, and is told of when it changes or is read anew'

/** An object that has no row, and why. */
export interface Failed {
  readonly uid: string
  readonly namespace: string
  readonly message: string
}

/**
 * The objects of one target that have no row. Which they are takes of the room of its namespace, as rows do; of those that there is no
 * room for only the number is known, until all are read anew.
 */
export class Failures {
  readonly #space: RowSpace
  /** namespace by uid */
  readonly #known = new Map<string, string>()
  /** by uid, the newest last */
  readonly #texts = new Map<string, string>()
  /** by the namespace that was read; undefined: the whole cluster */
  readonly #unknown = new Map<string | undefined, number>()
  /** of those that are not known */
  #lastUnknown = ''

  constructor(space: RowSpace) {
    this.#space = space
  }

  /** where there was no room to know them: at least so many */
  get size(): number {
    return [...this.#unknown.values()].reduce((sum, count) => sum + count, this.#known.size)
  }

  /** of the object that failed last, while it does */
  get last(): string | undefined {
    const text = [...this.#texts.values()].at(-1)
    if (text !== undefined || this.size === 0) return text
    return this.#unknown.size > 0 ? this.#lastUnknown : NO_TEXT
  }

  add(failed: Failed): void {
    if (this.#keep(failed)) return
    this.#lastUnknown = cutText(failed.message, MAX_LETTERS)
    if (!this.#unknown.has(failed.namespace)) this.#unknown.set(failed.namespace, 1)
  }

  /**
   * These are all there are of a namespace, or of the cluster where it is undefined.
   * @param uncounted so many besides
   */
  replace(namespace: string | undefined, all: readonly Failed[], uncounted: number): void {
    this.limitTo((of) => namespace !== undefined && of !== namespace)
    this.#unknown.delete(undefined)
    let unknown = uncounted
    if (uncounted > 0) this.#lastUnknown = this.#space.noRoom
    for (const failed of all) {
      if (this.#keep(failed)) continue
      this.#lastUnknown = cutText(failed.message, MAX_LETTERS)
      unknown++
    }
    if (unknown > 0) this.#unknown.set(namespace, unknown)
  }

  delete(uid: string): void {
    this.#texts.delete(uid)
    if (this.#known.delete(uid)) this.#space.keep(-FAILURE_BYTES)
  }

  /** Those of other namespaces are not of interest any more. */
  limitTo(isWanted: (namespace: string) => boolean): void {
    for (const [uid, namespace] of this.#known) if (!isWanted(namespace)) this.delete(uid)
    for (const namespace of this.#unknown.keys())
      if (namespace !== undefined && !isWanted(namespace)) this.#unknown.delete(namespace)
  }

  clear(): void {
    this.limitTo(() => false)
    this.#unknown.clear()
  }

  /** @returns false: there is no room to know it */
  #keep({ uid, namespace, message }: Failed): boolean {
    this.#texts.delete(uid)
    if (!this.#known.has(uid) && !this.#space.keep(FAILURE_BYTES)) return false
    this.#known.set(uid, namespace)
    this.#texts.set(uid, cutText(message, MAX_LETTERS))
    const [oldest] = this.#texts.keys()
    if (this.#texts.size > MAX_TEXTS && oldest !== undefined) this.#texts.delete(oldest)
    return true
  }
}
