import { isOlder } from '#kube'
import type { RowKey } from '#sinks'
import type { TargetKey, TargetRows } from '../rows.ts'
import type { Outcome } from './compile.ts'
import { type Failed, Failures } from './failures.ts'
import { RowSpace } from './row-space.ts'

/** An object as it is left on arrival: what it is, and what became of it. */
export interface Reduced {
  readonly uid: string
  /** '' for an object of the cluster */
  readonly namespace: string
  readonly name: string
}

interface Place extends Reduced {
  /** of its row, about */
  readonly bytes: number
}

/** With what became of it in one target; undefined: not chosen. */
export type Taken = readonly [Reduced, Outcome | undefined]

/** So many rows are handed over at once; others get their turn in between. */
const CHUNK = 1000

/**
 * The rows of one target that come of one kind, and which of its objects have none. Keeps keys only. Before an object that is there loses
 * its row, the rows are said to be incomplete: whoever composes an inventory in this moment takes it for no deletion.
 */
export class KindRows {
  readonly #key: TargetKey
  readonly #rows: TargetRows
  readonly space: RowSpace
  readonly #places = new Map<string, Place>()
  readonly #failures: Failures
  /** by namespace: the version of what was told of it last, since its list */
  readonly #told = new Map<string, string>()

  /** @param space of the namespace of the target */
  constructor(key: TargetKey, rows: TargetRows, space = new RowSpace(Number.MAX_SAFE_INTEGER)) {
    this.#key = key
    this.#rows = rows
    this.space = space
    this.#failures = new Failures(space)
  }

  /** Something of this version was told of a namespace. */
  tell(namespace: string, version: string): void {
    if (!isOlder(version, this.#told.get(namespace) ?? '')) this.#told.set(namespace, version)
  }

  /** Whether something later than this version was told, of one of these namespaces: a list of that version is older than the rows. */
  isLaterThan(version: string, of: (namespace: string) => boolean): boolean {
    for (const [namespace, told] of this.#told) if (of(namespace) && isOlder(version, told)) return true
    return false
  }

  /** objects that are chosen and have no row */
  get failures(): number {
    return this.#failures.size
  }

  /** of the object that failed last, while it does */
  get lastFailure(): string | undefined {
    return this.#failures.last
  }

  /**
   * One object is new, or changed: what cannot be extracted, or is not chosen any more, has no row.
   * @returns false: there was no room for its row
   */
  take([object, outcome]: Taken): boolean {
    const { uid, namespace } = object
    this.#failures.delete(uid)
    const isKept = outcome?.row !== undefined && this.#keep(object, outcome.bytes)
    if (isKept) {
      this.#rows.put([outcome.row])
      return true
    }
    if (outcome) this.#rows.setComplete(false, true)
    this.#remove([uid])
    if (outcome) this.#failures.add({ uid, namespace, message: outcome.failure ?? this.space.noRoom })
    return outcome?.row === undefined
  }

  /** @returns whether there is room for its row */
  #keep({ uid, namespace, name }: Reduced, bytes: number): boolean {
    if (!this.space.keep(bytes - (this.#places.get(uid)?.bytes ?? 0))) return false
    this.#places.set(uid, { uid, namespace, name, bytes })
    return true
  }

  gone(uid: string): void {
    this.#failures.delete(uid)
    this.#remove([uid])
  }

  /**
   * All objects there are of a namespace, or of the cluster where it is undefined: those that are not among them are gone.
   * @param breathe lets others have their turn
   * @param uncounted so many objects besides have no row
   * @returns false: there was no room for some of the rows
   */
  async replace(
    namespace: string | undefined,
    all: Iterable<Taken>,
    breathe: () => Promise<void>,
    uncounted = 0,
  ): Promise<boolean> {
    const present = new Set<string>()
    const failed: Failed[] = []
    let chunk: NonNullable<Outcome['row']>[] = []
    const hand = async () => {
      this.#rows.put(chunk)
      chunk = []
      await breathe()
    }
    let hadRoom = true
    for (const [object, outcome] of all) {
      const { uid, namespace: of } = object
      if (outcome?.row && this.#keep(object, outcome.bytes)) {
        present.add(uid)
        chunk.push(outcome.row)
        if (chunk.length >= CHUNK) await hand()
      } else if (outcome) {
        failed.push({ uid, namespace: of, message: outcome.failure ?? this.space.noRoom })
        if (outcome.row) hadRoom = false
      }
    }
    if (chunk.length > 0) await hand()
    if (failed.length + uncounted > 0) this.#rows.setComplete(false, true)
    const isThere = (of: string) => namespace === undefined || of === namespace
    for (const of of this.#told.keys()) if (isThere(of)) this.#told.delete(of)
    const gone = [...this.#places.values()].filter((one) => isThere(one.namespace) && !present.has(one.uid))
    this.#remove(gone.map(({ uid }) => uid))
    this.#failures.replace(namespace, failed, uncounted)
    return hadRoom
  }

  /** All of it is gone already, with its target. */
  release(): void {
    for (const { bytes } of this.#places.values()) this.space.keep(-bytes)
    this.#places.clear()
    this.#failures.clear()
  }

  /** Rows of other namespaces are not wanted any more; [] takes all away. */
  limitTo(isWanted: (namespace: string) => boolean): void {
    this.#failures.limitTo(isWanted)
    this.#remove([...this.#places.values()].filter(({ namespace }) => !isWanted(namespace)).map(({ uid }) => uid))
  }

  #remove(uids: readonly string[]): void {
    const keys = uids.flatMap((uid): RowKey[] => {
      const place = this.#places.get(uid)
      if (!place) return []
      this.#places.delete(uid)
      const { bytes, ...object } = place
      this.space.keep(-bytes)
      return [{ targetNamespace: this.#key.namespace || place.namespace, targetName: this.#key.name, ...object }]
    })
    if (keys.length > 0) this.#rows.remove(keys)
  }
}
