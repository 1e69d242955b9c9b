import { isKubeError, KubeError } from '#kube'
import type { Fold, Read, ReadEvent } from './types.ts'

/** A list of every object of a resource. */
export const listOf = <T>(
  resource: NonNullable<Read<T>['resource']>,
  over: Partial<Read<T>> = {},
): Read<T> & { readonly resource: NonNullable<Read<T>['resource']> } => ({
  resource,
  verbs: ['get', 'list'],
  ...over,
})

/** What a fold does with one of its reads. */
export interface Taker<T> {
  /** @param namespace undefined: everything */
  reset(namespace?: string): void
  changed(before: T | undefined, after: T | undefined): void
  /** default: as if there were nothing */
  absent?(): void
  /** Returns where the fold can do without; default: throws it, and nothing is told. */
  failed?(error: unknown, namespace?: string): void
  /** it takes no more; default false */
  readonly isFull?: boolean
}

type Fed = readonly [read: Read, taker: Taker<unknown>]

/** The type of its objects matters to the taker alone. */
export const fed = <T>(read: Read<T>, taker: Taker<T>): Fed => [read, taker as Taker<unknown>]

/** A fold with a taker for each of its reads. */
export function foldOf(feds: readonly Fed[], parts: Fold['parts']): Fold {
  const takers = new Map(feds)
  return { take: (read, event) => give(takers.get(read), event), parts }
}

function give(taker: Taker<unknown> | undefined, event: ReadEvent): boolean {
  if (event.type === 'reset') taker?.reset(event.namespace)
  else if (event.type === 'changed') taker?.changed(event.before, event.after)
  else if (event.type === 'absent') taker?.absent?.()
  else if (taker?.failed) taker.failed(event.error, event.namespace)
  else throw event.error
  return !taker?.isFull
}

/** Objects kept of one read; whoever answers with more has no end. */
const MAX_KEPT = 500_000

/** Everything a read gave: for facts, or what is few. */
export class Kept<T> implements Taker<T> {
  readonly #all = new Set<T>()
  readonly #canDoWithout: (error: unknown) => boolean
  isServed = true
  /** why it could not be read, where the fold can do without */
  error: unknown

  /** @param canDoWithout what could not be read; default: never */
  constructor(canDoWithout: (error: unknown) => boolean = () => false) {
    this.#canDoWithout = canDoWithout
  }

  values(): readonly T[] {
    return [...this.#all]
  }

  reset(): void {
    this.#all.clear()
    this.isServed = true
    this.error = undefined
  }

  changed(before: T | undefined, after: T | undefined): void {
    if (before !== undefined) this.#all.delete(before)
    if (after === undefined) return
    if (this.#all.size >= MAX_KEPT) throw new KubeError('protocol', `the list has more than ${MAX_KEPT} objects`)
    this.#all.add(after)
  }

  absent(): void {
    this.reset()
    this.isServed = false
  }

  failed(error: unknown): void {
    if (!this.#canDoWithout(error)) throw error
    this.reset()
    this.error = error
  }
}

export const isForbidden = (error: unknown): boolean => isKubeError(error, 'forbidden')
