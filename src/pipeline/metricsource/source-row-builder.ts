import type { Expression, Value } from '#expression'
import type { KubeObject } from '#kube'
import { type Chunk, type FieldReport, invariant, type ScalarValue, Table } from '#model'
import { MISSING } from '#path'
import { MAX_TEXT } from './convert.ts'
import { cut } from './draft.ts'
import { GrowingRows } from './growing-rows.ts'
import { exampleOf, type FieldPlan, MALFORMED, readField } from './read-field.ts'
import { Shared } from './shared.ts'
import type { RowBuilder } from './types.ts'

/** A computed value, ready to be evaluated. */
export interface ComputedPlan {
  readonly name: string
  /** undefined: it could not be compiled, and has no value */
  readonly expression: Expression | undefined
  /** makes the result what was declared; undefined: it cannot be */
  readonly convert: (value: Exclude<Value, null>) => ScalarValue | undefined
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

/** What a row has besides its fields while it grows: how its values came to be. No field is called so. */
const STATUS = ''

/** Takes objects apart into columns; an object is garbage when `add` returns. */
export class SourceRowBuilder implements RowBuilder {
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

  readonly #rows: GrowingRows
  readonly #shown = new WeakMap<Chunk, Chunk>()
  #last: { readonly whole: Table; readonly rows: Table } | undefined
  #textLeft = MAX_KEPT_TEXT
  #isCounted = false

  constructor(plan: RowPlan, now: number) {
    this.#plan = plan
    this.#slots = plan.names.map(() => null)
    this.#codes = plan.names.map(() => FINE)
    this.#texts = plan.names.map(() => new Shared())
    this.#rows = new GrowingRows([...plan.names, STATUS])
    this.#context = { now, exceeded: () => (this.#isExceeded = true) }
  }

  get size(): number {
    return this.#rows.size
  }

  add(object: KubeObject): void {
    const identity = identityOf(object)
    if (!identity) return
    const status = this.#evaluate(object)
    const namespace = this.#namespaces.of(identity.namespace, identity.namespace)
    const labels = this.#sharedLabels(object.metadata.labels)
    this.#slots[this.#plan.names.length] = status
    // What is kept of values is scalar: `convert` makes it so.
    this.#rows.add(namespace, identity.name, labels, this.#slots as ScalarValue[])
  }

  remove(namespace: string, name: string): void {
    this.#rows.remove(namespace, name)
  }

  rows(): Table {
    const whole = this.#rows.rows()
    if (this.#last?.whole === whole) return this.#last.rows
    const rows = Table.ofChunks(
      this.#plan.names,
      whole.chunks.map((chunk) => this.#withoutStatus(chunk)),
    )
    invariant(rows, 'a table without one of its columns is one')
    this.#last = { whole, rows }
    this.#isCounted = false
    return rows
  }

  reports(): readonly FieldReport[] {
    const whole = this.#rows.rows()
    const statusAt = whole.column(STATUS)
    const numbers = new Map<string, number>()
    for (let row = 0; statusAt && row < whole.size; row++) {
      const status = statusAt(row)
      if (typeof status === 'string') numbers.set(status, (numbers.get(status) ?? 0) + 1)
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

  /** The same chunk of the same one: what did not change is known by that. */
  #withoutStatus(chunk: Chunk): Chunk {
    const known = this.#shown.get(chunk)
    if (known) return known
    const { keys, labels, columns } = chunk
    const shown = { keys, labels, columns: columns.slice(0, -1) }
    this.#shown.set(chunk, shown)
    return shown
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
  #keep(place: number, value: ScalarValue): boolean {
    if (typeof value !== 'string' || value.length < MIN_SHARED_TEXT) this.#slots[place] = value
    else if (value.length <= MAX_SHARED_TEXT) this.#slots[place] = this.#texts[place]?.of(value, value) ?? value
    else if (this.#affords(value.length)) this.#slots[place] = value
    else return this.#unfit(place, `there is too much text in all: ${value.length} characters more`)
    return true
  }

  #affords(length: number): boolean {
    if (this.#textLeft < length && !this.#isCounted) {
      // Rows that went, or came anew, have left what they took.
      this.#textLeft = MAX_KEPT_TEXT - longTextOf(this.rows())
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
