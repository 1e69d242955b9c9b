import { isMap, type Json, own, stableText } from '../schema/json.ts'

/** Equal ids are equal texts. Lists are compared by them, so that time grows with their lengths and not with the product. */
export const idText = (id: unknown): string => (id === undefined ? '' : stableText(id))

/** A list of objects whose items are found by one of their fields. Several may have the same id: the first is found. */
export class KeyedList {
  readonly #items: unknown[]
  readonly #key: string
  readonly #removed = new Set<number>()
  /** places of each id, in order */
  #places = new Map<string, number[]>()

  constructor(items: readonly unknown[], key: string) {
    this.#items = [...items]
    this.#key = key
    this.#index()
  }

  /** Puts what `change` makes of the item with this id in its place; of none, at the end. */
  update(id: unknown, change: (item: Json | undefined) => Json): void {
    const text = idText(id)
    const at = this.#places.get(text)?.[0]
    const changed = change(at === undefined ? undefined : (this.#items[at] as Json)) // only maps have places
    if (at === undefined) this.#note(changed, this.#items.push(changed) - 1)
    else this.#items[at] = changed
    // Merging can take nulls out of an id that is an object, which no valid object has.
    if (at !== undefined && idText(own(changed, this.#key)) !== text) this.#index()
  }

  /** Takes away every item with this id. */
  remove(id: unknown): void {
    const text = idText(id)
    for (const at of this.#places.get(text) ?? []) this.#removed.add(at)
    this.#places.delete(text)
  }

  items(): unknown[] {
    return this.#items.filter((_, at) => !this.#removed.has(at))
  }

  #index(): void {
    this.#places = new Map()
    this.#items.forEach((item, at) => {
      if (!this.#removed.has(at)) this.#note(item, at)
    })
  }

  #note(item: unknown, at: number): void {
    if (!isMap(item) || own(item, this.#key) === undefined) return
    const text = idText(own(item, this.#key))
    const places = this.#places.get(text)
    if (places) places.push(at)
    else this.#places.set(text, [at])
  }
}
