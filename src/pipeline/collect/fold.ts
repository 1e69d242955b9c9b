import { isKubeError, KubeError, type KubeObject } from '#kube'
import { sameJson } from '#model'
import type { Fold, Read, ReadEvent } from './types.ts'

/** A list of every object of a resource, which may be followed by a watch. */
export const listOf = <T>(
  resource: NonNullable<Read<T>['resource']>,
  over: Partial<Read<T>> = {},
): Read<T> & { readonly resource: NonNullable<Read<T>['resource']> } => ({
  resource,
  verbs: ['get', 'list', 'watch'],
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

export interface KeptOptions<T, S> {
  /** names an object among those of the read */
  readonly key: (object: T) => string
  /** what is kept of it */
  readonly of: (object: T) => S
  /** what could not be read; default: never */
  readonly canDoWithout?: (error: unknown) => boolean
}

/** What was made of everything a read gave: of facts, or of what is few. What is equal to what was kept of an object leaves that. */
export class Kept<T, S = T> implements Taker<T> {
  readonly #all = new Map<string, S>()
  readonly #options: KeptOptions<T, S>
  #values: readonly S[] | undefined
  isServed = true
  /** why it could not be read, where the fold can do without */
  error: unknown

  constructor(options: KeptOptions<T, S>) {
    this.#options = options
  }

  /** the same list until something changes */
  values(): readonly S[] {
    this.#values ??= [...this.#all.values()]
    return this.#values
  }

  reset(): void {
    this.#all.clear()
    this.#values = undefined
    this.isServed = true
    this.error = undefined
  }

  changed(before: T | undefined, after: T | undefined): void {
    const { key, of } = this.#options
    if (after === undefined) {
      if (before !== undefined && this.#all.delete(key(before))) this.#values = undefined
      return
    }
    const [name, made] = [key(after), of(after)]
    const known = this.#all.get(name)
    if (known !== undefined && sameJson(known, made)) return
    if (known === undefined && this.#all.size >= MAX_KEPT)
      throw new KubeError('protocol', `the list has more than ${MAX_KEPT} objects`)
    this.#all.set(name, made)
    this.#values = undefined
  }

  absent(): void {
    this.reset()
    this.isServed = false
  }

  failed(error: unknown): void {
    if (!this.#options.canDoWithout?.(error)) throw error
    this.reset()
    this.error = error
  }
}

/** Objects as they are, which are few. */
export const keptWhole = (canDoWithout?: (error: unknown) => boolean): Kept<KubeObject> =>
  new Kept({ key: placeOf, of: (object: KubeObject) => object, ...(canDoWithout && { canDoWithout }) })

/** `namespace/name` */
export const placeOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`

export const isForbidden = (error: unknown): boolean => isKubeError(error, 'forbidden')
