import type { Freshness, Outcome } from './batch.ts'

/**
 * What MetricSources collect: rows of scalars under the field names their author chose. Kept in columns, because a cluster
 * may hold a hundred thousand of them and each must cost little.
 */

/** A value of a field. Numbers are finite; a list or an object was made text (compact JSON) or counted. */
export type CustomValue = string | number | boolean | null

/** `namespace/name` of a MetricSource; the plural of a kind of row that is compiled in, such as `pods`. */
export type SourceId = string

/** Whether it is of a MetricSource; else it names a kind of row that is compiled in. */
export const isDeclaredSource = (id: SourceId): boolean => id.includes('/')

/** One object as a MetricSource saw it. `namespace` is '' for objects of the cluster. */
export interface CustomRow {
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** by field and computed name; what is missing is null */
  readonly values: Readonly<Record<string, CustomValue>>
}

/**
 * Names the row within its source and cluster: `namespace/name`, or `name` for objects of the cluster. No two rows share one
 * as long as neither has a `/`, which no name of Kubernetes has; batches with others are refused.
 */
export function customRowId(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}/${name}`
}

/** The columns of CustomRows as plain JSON: for stores, the log and the wire. All lists have the same length. */
export interface CustomColumns {
  readonly namespaces: readonly string[]
  readonly names: readonly string[]
  readonly labels: readonly Readonly<Record<string, string>>[]
  /** in the order of the declaration: fields, then computed */
  readonly fields: readonly string[]
  /** `values[i]` belongs to `fields[i]` */
  readonly values: readonly (readonly CustomValue[])[]
}

const NO_LABELS: Readonly<Record<string, string>> = Object.freeze({})

/**
 * All rows of one source on one cluster, sorted by namespace, then name (code units); no two have the same. Immutable.
 * Rows are made when asked for; loops over one field take its column.
 */
export class CustomRows {
  readonly #columns: CustomColumns
  readonly #places: ReadonlyMap<string, number>

  private constructor(columns: CustomColumns) {
    this.#columns = columns
    this.#places = new Map(columns.fields.map((field, place) => [field, place]))
  }

  static readonly empty = new CustomRows({ namespaces: [], names: [], labels: [], fields: [], values: [] })

  /** From rows in any order; of two with the same namespace and name the later counts. Equal labels are kept once. */
  static of(fields: readonly string[], rows: Iterable<CustomRow>): CustomRows {
    const sorted = sortedOnce([...rows])
    const shared = new Map<string, Readonly<Record<string, string>>>()
    return new CustomRows({
      fields,
      namespaces: sorted.map(({ namespace }) => namespace),
      names: sorted.map(({ name }) => name),
      labels: sorted.map(({ labels }) => sharedLabels(labels, shared)),
      values: fields.map((field) =>
        // A field may be called like something every object has.
        sorted.map(({ values }) => (Object.hasOwn(values, field) ? (values[field] ?? null) : null)),
      ),
    })
  }

  /**
   * From what `columns` gave, or somebody else wrote. Of two rows with the same namespace and name the later counts.
   * @returns undefined where it is nothing of the sort: lists of unlike length, values that are no scalars
   */
  static from(columns: CustomColumns): CustomRows | undefined {
    if (typeof columns !== 'object' || columns === null) return undefined
    const { namespaces, names, labels, fields, values } = columns
    if (!areTexts(names) || !areTexts(namespaces) || !areTexts(fields)) return undefined
    const count = names.length
    const fits =
      namespaces.length === count &&
      areLabels(labels) &&
      labels.length === count &&
      Array.isArray(values) &&
      values.length === fields.length &&
      values.every((column) => areScalars(column) && column.length === count) &&
      new Set(fields).size === fields.length
    if (!fits) return undefined
    const rows = new CustomRows({ namespaces, names, labels, fields, values })
    return isSorted(namespaces, names) ? rows : CustomRows.of(fields, rows.rows())
  }

  get size(): number {
    return this.#columns.names.length
  }

  get fields(): readonly string[] {
    return this.#columns.fields
  }

  /** Plain JSON, shared with this value: not to be changed. */
  get columns(): CustomColumns {
    return this.#columns
  }

  /** Values of one field by row; undefined: it is not among the fields. */
  column(field: string): readonly CustomValue[] | undefined {
    const place = this.#places.get(field)
    return place === undefined ? undefined : this.#columns.values[place]
  }

  idAt(row: number): string {
    return customRowId(this.#columns.namespaces[row] ?? '', this.#columns.names[row] ?? '')
  }

  /** @throws RangeError beyond the last row */
  row(row: number): CustomRow {
    const { namespaces, names, labels, fields, values } = this.#columns
    const namespace = namespaces[row]
    const name = names[row]
    if (namespace === undefined || name === undefined) throw new RangeError(`there is no row ${row}`)
    const made: Record<string, CustomValue> = {}
    for (const [place, field] of fields.entries()) setOwn(made, field, values[place]?.[row] ?? null)
    return { namespace, name, labels: labels[row] ?? NO_LABELS, values: made }
  }

  *rows(): Generator<CustomRow> {
    for (let row = 0; row < this.size; row++) yield this.row(row)
  }

  /** Where the row with this namespace and name is; -1 where it is not. */
  indexOf(namespace: string, name: string): number {
    const { namespaces, names } = this.#columns
    let [low, high] = [0, this.size - 1]
    while (low <= high) {
      const middle = (low + high) >> 1
      const order = compareKeys(namespaces[middle] ?? '', names[middle] ?? '', namespace, name)
      if (order === 0) return middle
      if (order < 0) low = middle + 1
      else high = middle - 1
    }
    return -1
  }

  /** Only the rows at these places, which must rise. */
  only(places: readonly number[]): CustomRows {
    if (places.length === this.size) return this
    const { namespaces, names, labels, fields, values } = this.#columns
    const take = <T>(column: readonly T[]): T[] => places.map((place) => column[place] as T)
    return new CustomRows({
      fields,
      namespaces: take(namespaces),
      names: take(names),
      labels: take(labels),
      values: values.map(take),
    })
  }

  /**
   * With these rows put in place of their older selves, and those of these ids gone. Fields are those of `put` where it has
   * rows or fields.
   */
  patched(put: CustomRows, removed: Iterable<string>): CustomRows {
    const fields = put.size > 0 || put.fields.length > 0 ? put.fields : this.fields
    const gone = this.#placesOf(removed)
    const isSame = sameTexts(fields, this.fields)
    if (put.size === 0 && gone.size === 0 && isSame) return this
    return this.#merged(put, gone, isSame ? this.fields : fields)
  }

  /** What must be put and removed so that `older` becomes this. Everything, where the fields differ. */
  since(older: CustomRows): { readonly put: CustomRows; readonly removed: readonly string[] } {
    if (older === this) return { put: this.only([]), removed: [] }
    const differs = !sameTexts(older.fields, this.fields)
    const put: number[] = []
    const removed: string[] = []
    let [a, b] = [0, 0]
    while (a < older.size || b < this.size) {
      const order = this.#orderOf(older, a, b)
      if (order < 0) removed.push(older.idAt(a++))
      else if (order > 0) put.push(b++)
      else {
        if (differs || !this.#sameRow(older, a, b)) put.push(b)
        a++
        b++
      }
    }
    return { put: this.only(put), removed }
  }

  /** Equal fields and rows. 0 and -0 are one number. */
  equals(other: CustomRows): boolean {
    if (other === this) return true
    if (other.size !== this.size) return false
    const [theirs, ours] = [other.#columns, this.#columns]
    return (
      sameTexts(theirs.fields, ours.fields) &&
      sameColumn(theirs.names, ours.names) &&
      sameColumn(theirs.namespaces, ours.namespaces) &&
      ours.values.every((column, place) => sameColumn(theirs.values[place], column)) &&
      (theirs.labels === ours.labels ||
        ours.labels.every((labels, row) => sameLabels(theirs.labels[row] ?? NO_LABELS, labels)))
    )
  }

  #placesOf(ids: Iterable<string>): ReadonlySet<number> {
    const places = new Set<number>()
    for (const id of ids) {
      const slash = id.indexOf('/')
      const found = [this.indexOf('', id), slash < 0 ? -1 : this.indexOf(id.slice(0, slash), id.slice(slash + 1))]
      for (const place of found) if (place >= 0) places.add(place)
    }
    return places
  }

  #merged(put: CustomRows, gone: ReadonlySet<number>, fields: readonly string[]): CustomRows {
    // Rows of ours by their place, rows of `put` by -1 - place.
    const order: number[] = []
    let isInPlace = true
    let [a, b] = [0, 0]
    while (a < this.size || b < put.size) {
      const side = put.#orderOf(this, a, b)
      if (side < 0) {
        if (gone.has(a)) isInPlace = false
        else order.push(a)
        a++
        continue
      }
      order.push(-1 - b++)
      if (side === 0) a++
      else isInPlace = false
    }
    const [ours, theirs] = [this.#columns, put.#columns]
    const take = <T>(mine: readonly T[] | undefined, other: readonly T[] | undefined, blank: T): readonly T[] =>
      order.map((place) => (place >= 0 ? mine?.[place] : other?.[-1 - place]) ?? blank)
    return new CustomRows({
      fields,
      namespaces: isInPlace ? ours.namespaces : take(ours.namespaces, theirs.namespaces, ''),
      names: isInPlace ? ours.names : take(ours.names, theirs.names, ''),
      labels: take(ours.labels, theirs.labels, NO_LABELS),
      values: fields.map((field) => take(this.column(field), put.column(field), null)),
    })
  }

  #orderOf(older: CustomRows, a: number, b: number): number {
    if (a >= older.size) return 1
    if (b >= this.size) return -1
    const [theirs, ours] = [older.#columns, this.#columns]
    return compareKeys(theirs.namespaces[a] ?? '', theirs.names[a] ?? '', ours.namespaces[b] ?? '', ours.names[b] ?? '')
  }

  #sameRow(older: CustomRows, a: number, b: number): boolean {
    const [theirs, ours] = [older.#columns, this.#columns]
    for (let place = 0; place < ours.values.length; place++) {
      if (theirs.values[place]?.[a] !== ours.values[place]?.[b]) return false
    }
    return sameLabels(theirs.labels[a] ?? NO_LABELS, ours.labels[b] ?? NO_LABELS)
  }
}

function compareKeys(namespaceA: string, nameA: string, namespaceB: string, nameB: string): number {
  if (namespaceA !== namespaceB) return namespaceA < namespaceB ? -1 : 1
  return nameA === nameB ? 0 : nameA < nameB ? -1 : 1
}

/** Sorted; of two with the same key the later one. */
function sortedOnce(rows: readonly CustomRow[]): readonly CustomRow[] {
  const sorted = rows.toSorted((a, b) => compareKeys(a.namespace, a.name, b.namespace, b.name))
  return sorted.filter((row, i) => {
    const next = sorted[i + 1]
    return !next || next.namespace !== row.namespace || next.name !== row.name
  })
}

function isSorted(namespaces: readonly string[], names: readonly string[]): boolean {
  for (let row = 1; row < names.length; row++) {
    if (compareKeys(namespaces[row - 1] ?? '', names[row - 1] ?? '', namespaces[row] ?? '', names[row] ?? '') >= 0) {
      return false
    }
  }
  return true
}

function sharedLabels(
  labels: Readonly<Record<string, string>>,
  shared: Map<string, Readonly<Record<string, string>>>,
): Readonly<Record<string, string>> {
  const key = JSON.stringify(labels)
  const known = shared.get(key)
  if (known) return known
  shared.set(key, labels)
  return labels
}

function sameLabels(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  if (a === b) return true
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key])
}

/** Sets a property of any name: an assignment to `__proto__` would make none. */
function setOwn(made: Record<string, CustomValue>, field: string, value: CustomValue): void {
  if (field !== '__proto__') made[field] = value
  else Object.defineProperty(made, field, { value, enumerable: true, configurable: true, writable: true })
}

function sameColumn<T>(a: readonly T[] | undefined, b: readonly T[]): boolean {
  if (a === b) return true
  for (let row = 0; row < b.length; row++) if (a?.[row] !== b[row]) return false
  return true
}

const sameTexts = (a: readonly string[], b: readonly string[]) =>
  a === b || (a.length === b.length && a.every((text, i) => text === b[i]))
const isText = (value: unknown): value is string => typeof value === 'string'
const areTexts = (list: unknown): list is readonly string[] => areAll(list, isText)
const areScalars = (list: unknown) => areAll(list, isScalar)
const isScalar = (value: unknown) =>
  value === null ||
  typeof value === 'string' ||
  typeof value === 'boolean' ||
  (typeof value === 'number' && Number.isFinite(value))
const isLabels = (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isText)

/** Most rows have the labels of another: one object, looked at once. */
function areLabels(list: unknown): boolean {
  const known = new Set<unknown>()
  return areAll(list, (labels) => {
    if (known.has(labels)) return true
    if (!isLabels(labels)) return false
    known.add(labels)
    return true
  })
}

/** Of holes in a list, too, which `every` passes over. */
function areAll(list: unknown, is: (value: unknown) => boolean): boolean {
  if (!Array.isArray(list)) return false
  for (let i = 0; i < list.length; i++) if (!is(list[i])) return false
  return true
}

/** The result of one aggregation: a value, or a value per group. */
export type Aggregated = CustomValue | Readonly<Record<string, CustomValue>>

/** How often a field could be read in one collection: of `rows` objects, `missing` had nothing there, `malformed` something that did not fit its type. */
export interface FieldReport {
  readonly field: string
  readonly missing: number
  readonly malformed: number
  /** the first text that did not fit, cut; '' where none */
  readonly example: string
}

/** A namespace, or the list as a whole (namespace ''), that could not be read. */
export interface CustomError {
  readonly namespace: string
  readonly outcome: 'absent' | 'forbidden' | 'unreachable'
  readonly code: string
  readonly message: string
}

/** How many errors of namespaces are named; the count tells of all. */
export const CUSTOM_ERRORS_KEPT = 20

/** What a collection says besides its rows. */
export interface CustomFacts {
  readonly aggregations: Readonly<Record<string, Aggregated>>
  /** rows beyond the limit were left out */
  readonly truncated: boolean
  readonly errors: readonly CustomError[]
  /** of all namespaces that could not be read; `errors` names the first of them */
  readonly errorCount: number
  readonly reports: readonly FieldReport[]
}

/**
 * What one MetricSource saw on one cluster at one time. `complete` replaces all its rows (namespaces that could not be read are
 * named, and their rows are gone); `changed` is a complete collection told as a difference to the batch's `base`.
 * The others replace nothing.
 */
export type CustomPart = {
  readonly source: SourceId
  /** of the definition it was collected by */
  readonly hash: string
  readonly durationMs: number
} & (
  | ({ readonly outcome: 'complete'; readonly rows: CustomRows } & CustomFacts)
  | ({ readonly outcome: 'changed'; readonly put: CustomRows; readonly removed: readonly string[] } & CustomFacts)
  | { readonly outcome: 'absent' | 'forbidden' | 'unreachable'; readonly code: string; readonly message: string }
)

/** What the hub knows of one MetricSource on one cluster. Rows and facts are those of the last complete collection. */
export interface CustomState extends CustomFacts {
  readonly source: SourceId
  readonly hash: string
  readonly durationMs: number
  readonly outcome: Outcome
  /** why the last collection was not complete; empty otherwise */
  readonly code: string
  readonly message: string
  /** when the last collection was tried, by the collector's clock */
  readonly attemptedAt: number
  /** null when none was ever complete */
  readonly freshness: Freshness | null
  readonly rows: CustomRows
}
