import type { WindowDifference, WindowRow } from './stream-window.ts'

/** What became of a row, by its key: `gone`, nowhere any more; what it is now, as JSON, where it changed; undefined: it did not. */
export type Fate = (key: string) => 'gone' | { readonly json: string } | undefined

export type RowName = Pick<WindowRow, 'key' | 'cluster' | 'id'>

/** Of more it is not told what becomes of them. */
const mostLeft = 100

/**
 * Rows outside of a window: those that left it lately, and those that somebody asked for besides. Whoever holds the order of a list still
 * shows them, and is told what becomes of them.
 */
export class LeftRows {
  readonly #latest = new Map<string, RowName>()
  readonly #asked: ReadonlySet<string>
  /** of the ones that were asked for, those that are not in the window */
  readonly #besides: Map<string, RowName>

  /** @param shown what the window begins with */
  constructor(asked: readonly RowName[] = [], shown: readonly Pick<RowName, 'key'>[] = []) {
    this.#asked = new Set(asked.map(({ key }) => key))
    this.#besides = new Map(asked.map((row) => [row.key, row]))
    for (const { key } of shown) this.#besides.delete(key)
  }

  /** @returns what to tell of a step of the window, with what became of those that left before it */
  take(difference: WindowDifference, fate: Fate): string[] {
    const { removed, put } = difference
    for (const key of put) {
      this.#latest.delete(key)
      this.#besides.delete(key)
    }
    const texts = this.texts(difference, fate)
    for (const { key, cluster, id } of removed) {
      const rows = this.#asked.has(key) ? this.#besides : this.#latest
      rows.delete(key)
      rows.set(key, { key, cluster, id })
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
    const known = [...this.#besides.values(), ...this.#latest.values()]
    const others = known.filter(({ key }) => !leaving.has(key) && fate(key) !== undefined)
    return [...[...removed, ...others].map((row) => removeText(row, fate)), ...puts]
  }

  /** Those that were asked for and are not in the window, for who knows nothing of them. */
  asked(fate: Fate): string[] {
    return [...this.#besides.values()].map((row) => removeText(row, fate))
  }
}

function removeText({ key, cluster, id }: RowName, fate: Fate): string {
  const now = fate(key)
  const name = JSON.stringify({ op: 'remove', cluster, id, ...(now === 'gone' && { gone: true }) })
  return now === undefined || now === 'gone' ? name : `${name.slice(0, -1)},"row":${now.json}}`
}
