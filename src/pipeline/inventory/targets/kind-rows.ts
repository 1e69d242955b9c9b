import type { RowKey } from '#sinks'
import type { TargetKey, TargetRows } from '../rows.ts'
import type { Outcome } from './compile.ts'

/** An object as it is left on arrival: what it is, and what became of it. */
export interface Reduced {
  readonly uid: string
  /** '' for an object of the cluster */
  readonly namespace: string
  readonly name: string
}

/** With what became of it in one target; undefined: not chosen. */
export type Taken = readonly [Reduced, Outcome | undefined]

/** So many rows are handed over at once; others get their turn in between. */
const CHUNK = 1000

/** The rows of one target that come of one kind, and which of its objects have none. Keeps keys only. */
export class KindRows {
  readonly #key: TargetKey
  readonly #rows: TargetRows
  readonly #places = new Map<string, Reduced>()
  readonly #failures = new Map<string, { readonly namespace: string; readonly message: string }>()
  #lastFailed = ''

  constructor(key: TargetKey, rows: TargetRows) {
    this.#key = key
    this.#rows = rows
  }

  /** objects that are chosen and have no row */
  get failures(): number {
    return this.#failures.size
  }

  /** of the object that failed last, while it does */
  get lastFailure(): string | undefined {
    const [first] = this.#failures.values()
    return (this.#failures.get(this.#lastFailed) ?? first)?.message
  }

  /** One object is new, or changed: what cannot be extracted, or is not chosen any more, has no row. */
  take([object, outcome]: Taken): void {
    const { uid, namespace, name } = object
    this.#failures.delete(uid)
    if (outcome?.row) {
      this.#places.set(uid, { uid, namespace, name })
      this.#rows.put([outcome.row])
      return
    }
    if (outcome) this.#fail(uid, { namespace, message: outcome.failure })
    this.#remove([uid])
  }

  gone(uid: string): void {
    this.#failures.delete(uid)
    this.#remove([uid])
  }

  /**
   * All objects there are of a namespace, or of the cluster where it is undefined: those that are not among them are gone.
   * @param breathe lets others have their turn
   */
  async replace(namespace: string | undefined, all: Iterable<Taken>, breathe: () => Promise<void>): Promise<void> {
    const present = new Set<string>()
    const failures = new Map<string, { readonly namespace: string; readonly message: string }>()
    let chunk: NonNullable<Outcome['row']>[] = []
    const hand = async () => {
      this.#rows.put(chunk)
      chunk = []
      await breathe()
    }
    for (const [{ uid, namespace: of, name }, outcome] of all) {
      if (outcome?.row) {
        present.add(uid)
        this.#places.set(uid, { uid, namespace: of, name })
        chunk.push(outcome.row)
        if (chunk.length >= CHUNK) await hand()
      } else if (outcome) failures.set(uid, { namespace: of, message: outcome.failure })
    }
    if (chunk.length > 0) await hand()
    const isThere = (of: string) => namespace === undefined || of === namespace
    for (const [uid, failure] of this.#failures) if (isThere(failure.namespace)) this.#failures.delete(uid)
    for (const [uid, failure] of failures) this.#fail(uid, failure)
    const gone = [...this.#places.values()].filter((one) => isThere(one.namespace) && !present.has(one.uid))
    this.#remove(gone.map(({ uid }) => uid))
  }

  /** Rows of other namespaces are not wanted any more; [] takes all away. */
  limitTo(isWanted: (namespace: string) => boolean): void {
    for (const [uid, { namespace }] of this.#failures) if (!isWanted(namespace)) this.#failures.delete(uid)
    this.#remove([...this.#places.values()].filter(({ namespace }) => !isWanted(namespace)).map(({ uid }) => uid))
  }

  #fail(uid: string, failure: { readonly namespace: string; readonly message: string }): void {
    this.#failures.set(uid, failure)
    this.#lastFailed = uid
  }

  #remove(uids: readonly string[]): void {
    const keys = uids.flatMap((uid): RowKey[] => {
      const place = this.#places.get(uid)
      if (!place) return []
      this.#places.delete(uid)
      return [{ targetNamespace: this.#key.namespace || place.namespace, targetName: this.#key.name, ...place }]
    })
    if (keys.length > 0) this.#rows.remove(keys)
  }
}
