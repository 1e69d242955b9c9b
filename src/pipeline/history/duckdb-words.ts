import type { DuckDBConnection } from '@duckdb/node-api'

/** Names as numbers: known ones from memory, new ones to be written with the samples that use them. */
export class Words {
  readonly #ids = new Map<string, number>()
  readonly #words = new Map<number, string>()
  #fresh: string[] = []
  #next = 1

  async load(connection: DuckDBConnection): Promise<void> {
    const [ids = [], words = []] = (await connection.runAndReadAll('SELECT id, word FROM words')).getColumns()
    this.#ids.clear()
    this.#words.clear()
    this.#fresh = []
    for (const [i, id] of ids.entries()) {
      this.#keep(Number(id), String(words[i]))
      // Never the number of a word that is gone: somebody may still be asking with it.
      this.#next = Math.max(this.#next, Number(id) + 1)
    }
  }

  get size(): number {
    return this.#ids.size
  }

  find(word: string): number | undefined {
    return this.#ids.get(word)
  }

  wordOf(id: number): string | undefined {
    return this.#words.get(id)
  }

  /** ids of the words that begin so */
  idsBeginning(prefix: string): readonly number[] {
    return [...this.#ids].filter(([word]) => word.startsWith(prefix)).map(([, id]) => id)
  }

  idOf(word: string): number {
    const known = this.#ids.get(word)
    if (known !== undefined) return known
    const id = this.#next++
    this.#keep(id, word)
    this.#fresh.push(word)
    return id
  }

  /** Writes the new ones, inside the caller's transaction. */
  async write(connection: DuckDBConnection): Promise<void> {
    if (this.#fresh.length === 0) return
    const appender = await connection.createAppender('words')
    for (const word of this.#fresh) {
      appender.appendInteger(this.#ids.get(word) ?? 0)
      appender.appendVarchar(word)
      appender.endRow()
    }
    appender.closeSync()
  }

  committed(): void {
    this.#fresh = []
  }

  rolledBack(): void {
    for (const word of this.#fresh) {
      const id = this.#ids.get(word)
      this.#ids.delete(word)
      if (id !== undefined) this.#words.delete(id)
    }
    this.#fresh = []
  }

  #keep(id: number, word: string): void {
    this.#ids.set(word, id)
    this.#words.set(id, word)
  }
}

/** The word of a narrow metric, which names its scope as well. */
export const metricWord = (scope: string, metric: string): string => `${scope}/${metric}`
