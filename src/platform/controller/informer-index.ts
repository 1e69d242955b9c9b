import type { KubeObject } from '#kube'
import type { Informer } from './informer.ts'
import { keyText } from './work-queue.ts'

/** The objects of an informer by what they belong to, such as a cluster: found without looking through all of them. */
export class InformerIndex<T extends KubeObject> {
  readonly #groups = new Map<string, Map<string, T>>()
  readonly #keysOf: (object: T) => readonly string[]

  /** Made before the informer starts. @param keysOf [] for an object that belongs to nothing */
  constructor(informer: Pick<Informer<T>, 'onChange'>, keysOf: (object: T) => readonly string[]) {
    this.#keysOf = keysOf
    informer.onChange((change) => {
      const text = keyText(change.key)
      if (change.kind !== 'added') this.#drop(text, change.previous)
      if (change.kind !== 'deleted') this.#put(text, change.object)
    })
  }

  /** Those that belong to it, as far as the informer saw. */
  of(key: string): readonly T[] {
    return [...(this.#groups.get(key)?.values() ?? [])]
  }

  #put(text: string, object: T): void {
    for (const key of this.#keysOf(object)) {
      const group = this.#groups.get(key) ?? new Map<string, T>()
      this.#groups.set(key, group.set(text, object))
    }
  }

  #drop(text: string, object: T): void {
    for (const key of this.#keysOf(object)) {
      const group = this.#groups.get(key)
      group?.delete(text)
      if (group?.size === 0) this.#groups.delete(key)
    }
  }
}
