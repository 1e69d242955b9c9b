import { type JsonValue, Table, type TableRow, tableRowId } from '#model'

interface Kept extends TableRow {
  /** what is the newest is kept */
  readonly at: number
}

/**
 * Rows of which only the newest are kept: of what ages, such as events, a busy cluster has more than anybody reads. Holds at most
 * twice as many as it gives, so that a long list costs one sort per half of it.
 */
export class NewestRows {
  readonly #fields: readonly string[]
  readonly #column: number
  readonly #most: number
  readonly #kept = new Map<string, Kept>()
  readonly #changed = new Map<string, Kept>()
  readonly #gone = new Set<string>()
  #table = Table.empty
  #leftOut = 0

  /** @param column whose number says how new a row is; without one it is the oldest @param most rows that are given */
  constructor(fields: readonly string[], { column, most }: { readonly column: string; readonly most: number }) {
    this.#fields = fields
    this.#column = fields.indexOf(column)
    this.#most = most
  }

  get size(): number {
    return this.#kept.size
  }

  /** objects that made room for newer ones */
  get leftOut(): number {
    return this.#leftOut
  }

  /** What has the name already is replaced. */
  add(namespace: string, name: string, labels: Readonly<Record<string, string>>, values: readonly JsonValue[]): void {
    const id = tableRowId(namespace, name)
    const at = values[this.#column]
    const entries = this.#fields.map((field, place) => [field, values[place] ?? null] as const)
    const row = { namespace, name, labels, values: Object.fromEntries(entries), at: typeof at === 'number' ? at : 0 }
    this.#kept.set(id, row)
    this.#changed.set(id, row)
    this.#gone.delete(id)
    if (this.#kept.size >= 2 * this.#most) this.#makeRoom()
  }

  /** Unknown: nothing happens. */
  remove(namespace: string, name: string): void {
    this.#forget(tableRowId(namespace, name))
  }

  /** as of now; the same value until something comes or goes */
  rows(): Table {
    if (this.#kept.size > this.#most) this.#makeRoom()
    if (this.#changed.size + this.#gone.size === 0) return this.#table
    const gone = [...this.#gone].filter((id) => !this.#kept.has(id))
    this.#table = this.#table.patch(Table.of(this.#fields, this.#changed.values()), gone)
    this.#changed.clear()
    this.#gone.clear()
    return this.#table
  }

  /** Of what is equally old, the order of the names decides, so that a list gives the same rows whatever its order. */
  #makeRoom(): void {
    const oldestFirst = [...this.#kept].sort(
      ([id, one], [otherId, other]) => one.at - other.at || (id < otherId ? -1 : 1),
    )
    for (const [id] of oldestFirst.slice(0, -this.#most)) {
      this.#forget(id)
      this.#leftOut++
    }
  }

  #forget(id: string): void {
    const row = this.#kept.get(id)
    if (!row) return
    this.#kept.delete(id)
    this.#changed.delete(id)
    if (this.#table.indexOf(row.namespace, row.name) >= 0) this.#gone.add(id)
  }
}
