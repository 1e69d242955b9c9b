import type { WindowDifference, WindowRow } from './stream-window.ts'

/** What became of a row, by its key: `gone`, nowhere any more; what it is now, as JSON, where it changed; undefined: it did not. */
export type Fate = (key: string) => 'gone' | { readonly json: string } | undefined

type RowName = Pick<WindowRow, 'key' | 'cluster' | 'id'>

/** Of more it is not told what becomes of them. */
const mostLeft = 100

/** Rows that left a window lately. Whoever holds the order of a list still shows them, and is told what becomes of them. */
export class LeftRows {
  readonly #latest = new Map<string, RowName>()

  /** @returns what to tell of a step of the window, with what became of those that left before it */
  take(difference: WindowDifference, fate: Fate): string[] {
    const { removed, put } = difference
    for (const key of put) this.#latest.delete(key)
    const texts = this.texts(difference, fate)
    for (const { key, cluster, id } of removed) {
      this.#latest.delete(key)
      this.#latest.set(key, { key, cluster, id })
    }
    for (const key of this.#latest.keys()) {
      if (this.#latest.size <= mostLeft) break
      this.#latest.delete(key)
    }
    return texts
  }

  /** The same of a step to the present that ends where the last one did. */
  texts({ removed, puts }: WindowDifference, fate: Fate): string[] {
    const leaving = new Set(removed.map(({ key }) => key))
    const others = [...this.#latest.values()].filter(({ key }) => !leaving.has(key) && fate(key) !== undefined)
    return [...[...removed, ...others].map((row) => removeText(row, fate)), ...puts]
  }
}

function removeText({ key, cluster, id }: RowName, fate: Fate): string {
  const now = fate(key)
  const name = JSON.stringify({ op: 'remove', cluster, id, ...(now === 'gone' && { gone: true }) })
  return now === undefined || now === 'gone' ? name : `${name.slice(0, -1)},"row":${now.json}}`
}
