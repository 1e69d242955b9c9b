import type { Expression, Value } from '#expression'
import type { KubeObject } from '#kube'
import { type CustomRow, type CustomValue, customRowId, type FieldReport, invariant, Table } from '#model'
import { MAX_TEXT } from './convert.ts'
import { cut } from './draft.ts'
import { MISSING } from './find.ts'
import { exampleOf, type FieldPlan, MALFORMED, readField } from './read-field.ts'
import { Shared } from './shared.ts'
import type { Collecting } from './types.ts'

/** A computed value, ready to be evaluated. */
export interface ComputedPlan {
  readonly name: string
  /** undefined: it could not be compiled, and has no value */
  readonly expression: Expression | undefined
  /** makes the result what was declared; undefined: it cannot be */
  readonly convert: (value: Exclude<Value, null>) => CustomValue | undefined
}

export interface RowPlan {
  readonly fields: readonly FieldPlan[]
  readonly computed: readonly ComputedPlan[]
  /** of fields, then computed */
  readonly names: readonly string[]
}

/** How a value came to be; a row has one letter for each, or null where all are fine. */
const [FINE, NOTHING, UNFIT] = ['.', '-', '!']

/** Labels of an object that are kept; more are a way to fill our memory. */
const MAX_LABELS = 256
const NO_LABELS: Readonly<Record<string, string>> = Object.freeze({})
/** Longer texts are rarely equal, and looking costs more; shorter ones the JSON parser keeps once by itself. */
const [MIN_SHARED_TEXT, MAX_SHARED_TEXT] = [11, 64]
const MAX_SHARED_NAMESPACES = 10_000
/** Text of all rows of one collection, UTF-16 units, short values not counted: whoever fills annotations does not fill us. */
const MAX_KEPT_TEXT = 32 * 2 ** 20

/**
 * Takes objects apart into columns; an object is garbage when `add` returns.
 *
 * A list is appended and put in order when rows are asked for. From then on (or from the first removal) the rows stand, and
 * what comes is kept by name until it is asked for again: the life of a watch.
 */
export class ColumnCollecting implements Collecting {
  readonly #plan: RowPlan
  readonly #slots: Value[]
  readonly #codes: string[]
  readonly #examples = new Map<number, string>()
  /** of each column: most hold a few words again and again */
  readonly #texts: readonly Shared<string>[]
  readonly #sharedStatuses = new Shared<string>()
  readonly #namespaces = new Shared<string>(MAX_SHARED_NAMESPACES)
  readonly #labelSets = new Shared<Readonly<Record<string, string>>>()
  readonly #context: { readonly now: number; readonly exceeded: () => void }
  #isExceeded = false

  #rows: Table
  /** of each of the rows */
  #statuses: readonly (string | null)[] = []
  #columns: Columns
  /** by id: the places of rows that came since; undefined while the first list is read */
  #places: Map<string, number> | undefined
  #free: number[] = []
  #removed = new Set<string>()
  #size = 0
  #textLeft = MAX_KEPT_TEXT
  #isCounted = false

  constructor(plan: RowPlan, now: number) {
    this.#plan = plan
    this.#slots = plan.names.map(() => null)
    this.#codes = plan.names.map(() => FINE)
    this.#texts = plan.names.map(() => new Shared())
    this.#columns = emptyColumns(plan.names.length)
    this.#rows = Table.of(plan.names, [])
    this.#context = { now, exceeded: () => (this.#isExceeded = true) }
  }

  get size(): number {
    return this.#size
  }

  add(object: KubeObject): void {
    const identity = identityOf(object)
    if (!identity) return
    const status = this.#evaluate(object)
    const place = this.#placeFor(identity)
    const { namespaces, names, labels, values, statuses } = this.#columns
    namespaces[place] = this.#namespaces.of(identity.namespace, identity.namespace)
    names[place] = identity.name
    labels[place] = this.#sharedLabels(object.metadata.labels)
    for (let i = 0; i < values.length; i++) (values[i] as CustomValue[])[place] = this.#slots[i] ?? null
    statuses[place] = status
  }

  remove(namespace: string, name: string): void {
    const places = this.#byName()
    const id = customRowId(namespace, name)
    const place = places.get(id)
    if (place === undefined && (this.#removed.has(id) || this.#rows.indexOf(namespace, name) < 0)) return
    if (place !== undefined) {
      places.delete(id)
      this.#free.push(place)
    }
    this.#removed.add(id)
    this.#size--
  }

  rows(): Table {
    this.#settle()
    return this.#rows
  }

  reports(): readonly FieldReport[] {
    this.#settle()
    const numbers = new Map<string, number>()
    for (const status of this.#statuses) {
      if (status !== null) numbers.set(status, (numbers.get(status) ?? 0) + 1)
    }
    const count = (place: number, code: string | undefined) => {
      let sum = 0
      for (const [status, rows] of numbers) if (status[place] === code) sum += rows
      return sum
    }
    return this.#plan.names.map((field, place) => ({
      field,
      missing: count(place, NOTHING),
      malformed: count(place, UNFIT),
      example: count(place, UNFIT) > 0 ? (this.#examples.get(place) ?? '') : '',
    }))
  }

  row(object: KubeObject): CustomRow {
    this.#evaluate(object)
    const entries = this.#plan.names.map((name, i): readonly [string, CustomValue] => [name, this.#slots[i] ?? null])
    return {
      namespace: identityOf(object)?.namespace ?? '',
      name: identityOf(object)?.name ?? '',
      labels: checkedLabels(object.metadata?.labels),
      values: Object.fromEntries(entries),
    }
  }

  /** Fills the slots; null where every value is as it should be, else how each came to be. */
  #evaluate(object: KubeObject): string | null {
    const { fields, computed } = this.#plan
    const codes = this.#codes
    let isFine = true
    for (let i = 0; i < fields.length; i++) {
      const field = fields[i] as FieldPlan
      const value = readField(field, object)
      const isKept = typeof value !== 'symbol' && this.#keep(i, value)
      isFine &&= isKept
      codes[i] = isKept ? FINE : value === MISSING ? NOTHING : UNFIT
      if (isKept) continue
      this.#slots[i] = field.fallback
      if (value === MALFORMED && !this.#examples.has(i)) this.#keepExample(i, exampleOf(field, object))
    }
    for (let i = 0; i < computed.length; i++) {
      const place = fields.length + i
      const isGood = this.#compute(computed[i] as ComputedPlan, place)
      codes[place] = isGood ? FINE : UNFIT
      isFine &&= isGood
    }
    if (isFine) return null
    const status = codes.join('')
    return this.#sharedStatuses.of(status, status)
  }

  /** Whether the result could be kept. */
  #compute({ expression, convert }: ComputedPlan, place: number): boolean {
    this.#isExceeded = false
    // What is there is of the object before. Later names no expression can read.
    this.#slots[place] = null
    if (!expression) return this.#unfit(place, 'its expression cannot be compiled')
    const result = expression.evaluate(this.#slots, this.#context)
    if (this.#isExceeded) return this.#unfit(place, 'it costs more than an expression may')
    if (result === null) return true
    const value = convert(result)
    if (value === undefined) return this.#unfit(place, String(result))
    if (typeof value === 'string' && value.length > MAX_TEXT) return this.#unfit(place, value)
    return this.#keep(place, value)
  }

  #unfit(place: number, example: string): false {
    if (!this.#examples.has(place)) this.#keepExample(place, cut(example))
    return false
  }

  /** By itself: a piece of a text can hold on to the whole of it. */
  #keepExample(place: number, text: string): void {
    this.#examples.set(place, JSON.parse(JSON.stringify(text)))
  }

  /** Whether there is room for it. */
  #keep(place: number, value: CustomValue): boolean {
    if (typeof value !== 'string' || value.length < MIN_SHARED_TEXT) this.#slots[place] = value
    else if (value.length <= MAX_SHARED_TEXT) this.#slots[place] = this.#texts[place]?.of(value, value) ?? value
    else if (this.#affords(value.length)) this.#slots[place] = value
    else return this.#unfit(place, `there is too much text in all: ${value.length} characters more`)
    return true
  }

  #affords(length: number): boolean {
    if (this.#textLeft < length && !this.#isCounted) {
      // Rows that went, or came anew, have left what they took.
      this.#settle()
      this.#textLeft = MAX_KEPT_TEXT - longTextOf(this.#rows)
      this.#isCounted = true
    }
    if (this.#textLeft < length) return false
    this.#textLeft -= length
    return true
  }

  #sharedLabels(given: unknown): Readonly<Record<string, string>> {
    const labels = checkedLabels(given)
    if (labels === NO_LABELS || this.#labelSets.isUseless) return labels
    let key = ''
    for (const name of Object.keys(labels)) key += `${name}=${labels[name]}\n`
    return this.#labelSets.of(key, labels)
  }

  #placeFor({ namespace, name }: Identity): number {
    if (!this.#places) {
      this.#size++
      return this.#columns.names.length
    }
    const id = customRowId(namespace, name)
    const known = this.#places.get(id)
    if (known !== undefined) return known
    if (this.#removed.has(id) || this.#rows.indexOf(namespace, name) < 0) this.#size++
    this.#removed.delete(id)
    const place = this.#free.pop() ?? this.#columns.names.length
    this.#places.set(id, place)
    return place
  }

  #byName(): Map<string, number> {
    if (!this.#places) this.#settle()
    invariant(this.#places, 'rows that stand are known by name')
    return this.#places
  }

  /** Puts what came into the rows. */
  #settle(): void {
    if (this.#places?.size === 0 && this.#removed.size === 0) return
    const kept = this.#places && [...this.#places.values()]
    const put = settled(this.#columns, this.#plan.names, kept)
    if (this.#places) {
      const rows = this.#rows.patch(put.rows, this.#removed)
      this.#statuses = statusesOf(rows, put, { rows: this.#rows, statuses: this.#statuses })
      this.#rows = rows
    } else {
      this.#rows = put.rows
      this.#statuses = put.statuses
    }
    this.#columns = emptyColumns(this.#plan.names.length)
    this.#places = new Map()
    this.#free = []
    this.#removed = new Set()
    this.#size = this.#rows.size
    this.#isCounted = false
  }
}

function longTextOf(rows: Table): number {
  let sum = 0
  for (const field of rows.fields) {
    const column = rows.column(field)
    for (let row = 0; column && row < rows.size; row++) {
      const value = column(row)
      if (typeof value === 'string' && value.length > MAX_SHARED_TEXT) sum += value.length
    }
  }
  return sum
}

interface Identity {
  readonly namespace: string
  readonly name: string
}

/** undefined where it has no name, or one that no API server gives: a slash would make two rows one. */
function identityOf(object: unknown): Identity | undefined {
  if (typeof object !== 'object' || object === null) return undefined
  const metadata = (object as Partial<KubeObject>).metadata as Partial<KubeObject['metadata']> | null | undefined
  if (typeof metadata !== 'object' || metadata === null) return undefined
  const { name, namespace } = metadata
  if (typeof name !== 'string' || name === '' || name.includes('/')) return undefined
  return { name, namespace: typeof namespace === 'string' ? namespace : '' }
}

function checkedLabels(given: unknown): Readonly<Record<string, string>> {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return NO_LABELS
  const labels = given as Readonly<Record<string, unknown>>
  const names = Object.keys(labels)
  if (names.length === 0) return NO_LABELS
  if (names.length <= MAX_LABELS && names.every((name) => typeof labels[name] === 'string')) {
    return labels as Readonly<Record<string, string>>
  }
  const kept = Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  return Object.fromEntries(kept.slice(0, MAX_LABELS))
}

interface Columns {
  readonly namespaces: string[]
  readonly names: string[]
  readonly labels: Readonly<Record<string, string>>[]
  readonly values: CustomValue[][]
  readonly statuses: (string | null)[]
}

const emptyColumns = (count: number): Columns => ({
  namespaces: [],
  names: [],
  labels: [],
  values: Array.from({ length: count }, () => []),
  statuses: [],
})

/** Rows that stand, and how each came to be. */
interface Settled {
  readonly rows: Table
  readonly statuses: readonly (string | null)[]
}

/** In order, each once (the later one counts); only those at these places, where some are named. */
function settled(columns: Columns, fields: readonly string[], kept: readonly number[] | undefined): Settled {
  const { namespaces, names, labels, values, statuses } = columns
  const places = kept ?? (isInOrder(columns) ? undefined : Array.from(names.keys()))
  const order = places && inOrder(columns, places)
  const take = <T>(column: readonly T[]): readonly T[] => (order ? order.map((place) => column[place] as T) : column)
  const rows = Table.from({
    fields,
    namespaces: take(namespaces),
    names: take(names),
    labels: take(labels),
    values: values.map((column) => take(column)),
  })
  invariant(rows, 'columns are of equal length and hold scalars')
  return { rows, statuses: take(statuses) }
}

/** The statuses of rows that are some of `older` with all of `put` in their places: all three are in order. */
function statusesOf(rows: Table, put: Settled, older: Settled): readonly (string | null)[] {
  let [i, j] = [0, 0]
  const isAt = (one: Table, place: number, row: number): boolean =>
    place < one.size && one.nameAt(place) === rows.nameAt(row) && one.namespaceAt(place) === rows.namespaceAt(row)
  return Array.from({ length: rows.size }, (_, row) => {
    if (isAt(put.rows, j, row)) return put.statuses[j++] ?? null
    while (i < older.rows.size && !isAt(older.rows, i, row)) i++
    return older.statuses[i++] ?? null
  })
}

function isInOrder(columns: Columns): boolean {
  for (let i = 1; i < columns.names.length; i++) if (compare(columns, i - 1, i) >= 0) return false
  return true
}

function inOrder(columns: Columns, places: readonly number[]): readonly number[] {
  const sorted = places.toSorted((a, b) => compare(columns, a, b))
  return sorted.filter((place, i) => {
    const next = sorted[i + 1]
    return next === undefined || compare(columns, place, next) !== 0
  })
}

function compare({ namespaces, names }: Columns, a: number, b: number): number {
  const [left, right] = [namespaces[a] as string, namespaces[b] as string]
  if (left !== right) return left < right ? -1 : 1
  const [first, second] = [names[a] as string, names[b] as string]
  return first === second ? 0 : first < second ? -1 : 1
}
