import { invariant, type JsonValue, Table, type TableRow, tableRowId } from '#model'

type Labels = Readonly<Record<string, string>>

/**
 * Rows under way: a list is appended, and put in order when rows are asked for or one goes. From then on the rows stand, and what
 * comes, changes and goes is kept by name until they are asked for again: the life of a watch.
 */
export class GrowingRows {
  readonly #fields: readonly string[]
  #columns: Columns
  #rows: Table | undefined
  /** what came, changed or went since the rows stand; undefined: it went */
  readonly #later = new Map<string, TableRow | undefined>()
  #size = 0

  constructor(fields: readonly string[]) {
    this.#fields = fields
    this.#columns = emptyColumns(fields.length)
  }

  get size(): number {
    return this.#size
  }

  /** whether the first list is over: what comes takes the place of its older self */
  get areStanding(): boolean {
    return this.#rows !== undefined
  }

  /** @param values in the order of the fields, which are not kept as a list */
  add(namespace: string, name: string, labels: Labels, values: readonly JsonValue[]): void {
    if (this.#rows) {
      if (!this.#has(this.#rows, namespace, name)) this.#size++
      const entries = this.#fields.map((field, place) => [field, values[place] ?? null] as const)
      this.#later.set(tableRowId(namespace, name), { namespace, name, labels, values: Object.fromEntries(entries) })
      return
    }
    this.#size++
    this.#columns.namespaces.push(namespace)
    this.#columns.names.push(name)
    this.#columns.labels.push(labels)
    for (let place = 0; place < values.length; place++) this.#columns.values[place]?.push(values[place] ?? null)
  }

  /** Unknown: nothing happens. */
  remove(namespace: string, name: string): void {
    if (!this.#has(this.#stand(), namespace, name)) return
    this.#later.set(tableRowId(namespace, name), undefined)
    this.#size--
  }

  /** as of now; the same value until something comes or goes */
  rows(): Table {
    const rows = this.#stand()
    if (this.#later.size === 0) return rows
    const put = [...this.#later.values()].filter((row) => row !== undefined)
    const gone = [...this.#later.keys()].filter((id) => !this.#later.get(id))
    this.#rows = rows.patch(Table.of(this.#fields, put), gone)
    this.#later.clear()
    return this.#rows
  }

  #stand(): Table {
    if (this.#rows) return this.#rows
    const rows = Table.from({ fields: this.#fields, ...this.#columns })
    invariant(rows, 'columns are of equal length and hold scalars')
    this.#columns = emptyColumns(0)
    this.#size = rows.size
    this.#rows = rows
    return rows
  }

  #has(rows: Table, namespace: string, name: string): boolean {
    const id = tableRowId(namespace, name)
    return this.#later.has(id) ? this.#later.get(id) !== undefined : rows.indexOf(namespace, name) >= 0
  }
}

interface Columns {
  readonly namespaces: string[]
  readonly names: string[]
  readonly labels: Labels[]
  readonly values: JsonValue[][]
}

const emptyColumns = (count: number): Columns => ({
  namespaces: [],
  names: [],
  labels: [],
  values: Array.from({ length: count }, () => []),
})
