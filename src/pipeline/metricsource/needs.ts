import type { DraftComputed } from './draft.ts'

const TEXTS = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'/gs
const WORDS = /[\p{L}_][\p{L}\p{N}_]*/gu

/** Which computed values name which others: read from their words alone, for expressions that cannot be compiled. */
export class Needs {
  readonly #computed: readonly DraftComputed[]
  #needs: ReadonlyMap<string, readonly string[]> | undefined

  constructor(computed: readonly DraftComputed[]) {
    this.#computed = computed
  }

  has(name: string): boolean {
    return this.#computed.some((one) => one.name === name)
  }

  /** The circle on which `name` needs itself by way of `next`, from `name` to `name`; undefined where there is none. */
  circle(name: string, next: string): readonly string[] | undefined {
    const cameFrom = new Map<string, string>([[next, name]])
    const queue = [next]
    for (const one of queue) {
      if (one === name) return this.#way(name, cameFrom)
      for (const needed of this.#of(one)) {
        if (cameFrom.has(needed)) continue
        cameFrom.set(needed, one)
        queue.push(needed)
      }
    }
    return undefined
  }

  #of(name: string): readonly string[] {
    this.#needs ??= this.#read()
    return this.#needs.get(name) ?? []
  }

  #read(): ReadonlyMap<string, readonly string[]> {
    const names = new Set(this.#computed.map(({ name }) => name))
    return new Map(
      this.#computed.map(({ name, expression }) => {
        const words = new Set(expression.replace(TEXTS, ' ').match(WORDS))
        return [name, [...words].filter((word) => names.has(word))]
      }),
    )
  }

  /** Back from `name` along what each was reached by, until it comes round. */
  #way(name: string, cameFrom: ReadonlyMap<string, string>): readonly string[] {
    const way = [name]
    for (let one = cameFrom.get(name); one !== undefined && one !== name; one = cameFrom.get(one)) way.unshift(one)
    return [name, ...way]
  }
}
