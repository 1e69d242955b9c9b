import { type Aggregated, type JsonValue, type ScalarValue, scalarOf, type Table } from '#model'
import { textForm } from './convert.ts'
import { type Budget, numericOf, type Test } from './filter.ts'
import type { AggregationFunction, SumsOfNothing } from './types.ts'

/** One aggregation, ready to run. */
export interface AggregationPlan {
  readonly name: string
  readonly function: AggregationFunction
  readonly field: string | undefined
  readonly filter: AggregationFilter | undefined
  readonly groupBy: string | undefined
  /** 0 to 100 */
  readonly percentile: number
  /** no field is named where one is needed: always null */
  readonly isVoid: boolean
}

export interface AggregationFilter {
  readonly field: string
  readonly start: (budget: Budget) => Test
  readonly usesBudget: boolean
  /** equal keys filter equally */
  readonly key: string
}

/** Groups that are named; rows of any further ones are one group. */
export const MAX_GROUPS = 1000
export const OTHER_GROUP = '_other_'
/** of rows without a value */
export const UNKNOWN_GROUP = '_unknown_'
const MAX_KEY = 256

/** What can be named besides columns: where an object lives, and what it is called. */
export const IDENTITY_COLUMNS: readonly string[] = ['_namespace', '_name']

/** What the regular expressions of all filters may cost in one pass over rows. */
const MAX_MATCHING_MS = 1000

/**
 * All aggregations over these rows. Filters and groups that several share are worked out once, and each aggregation goes once
 * over the column it is of. Results are finite or null; null as well where its regular expression, and those before it, take
 * more than a second. As in the original a sum of nothing is 0: what people are shown passes `withoutSumsOfNothing`.
 */
export function aggregate(plans: readonly AggregationPlan[], rows: Table): Readonly<Record<string, Aggregated>> {
  const selecting = new Selecting(rows)
  const results = plans.map((plan): readonly [string, Aggregated] => {
    const selection = plan.isVoid ? undefined : selecting.selection(plan)
    if (!selection) return [plan.name, null]
    const values = evaluate(plan, rows, selection)
    if (!selection.keys) return [plan.name, values[0] ?? null]
    const named = selection.keys.map((group, i): readonly [string, ScalarValue] => [group, values[i] ?? null])
    return [plan.name, Object.fromEntries(named.toSorted(([a], [b]) => (a < b ? -1 : 1)))]
  })
  return Object.fromEntries(results)
}

/**
 * Which sums over these rows are over nothing that was read: there are rows, and none has a number. A sum of no rows is a 0 that
 * is true.
 */
export function sumsOfNothing(plans: readonly AggregationPlan[], rows: Table): SumsOfNothing {
  const sums = plans.filter(({ function: fn, isVoid }) => fn === 'sum' && !isVoid)
  const counts = aggregate(
    sums.map((plan) => ({ ...plan, function: 'count' })),
    rows,
  )
  const averages = aggregate(
    sums.map((plan) => ({ ...plan, function: 'avg' })),
    rows,
  )
  return new Map(
    sums.flatMap(({ name }): (readonly [string, 'whole' | ReadonlySet<string>])[] => {
      const [count, average] = [counts[name], averages[name]]
      if (typeof average === 'object' && average !== null)
        return [[name, new Set(Object.keys(average).filter((group) => average[group] === null))]]
      return average === null && typeof count === 'number' && count > 0 ? [[name, 'whole']] : []
    }),
  )
}

/** The same with null for each 0 that is a sum of nothing: not known is not zero. */
export function withoutSumsOfNothing(
  values: Readonly<Record<string, Aggregated>>,
  nothing: SumsOfNothing,
): Readonly<Record<string, Aggregated>> {
  const known = ([name, value]: readonly [string, Aggregated]): readonly [string, Aggregated] => {
    const of = nothing.get(name)
    if (of === 'whole') return [name, value === 0 ? null : value]
    if (!of || typeof value !== 'object' || value === null) return [name, value]
    const groups = Object.entries(value).map(([group, sum]) => [group, sum === 0 && of.has(group) ? null : sum])
    return [name, Object.fromEntries(groups)]
  }
  return Object.fromEntries(Object.entries(values).map(known))
}

/** Whether a sum may be one of nothing. */
export const hasZero = (sum: Aggregated | undefined): boolean =>
  sum === 0 || (typeof sum === 'object' && sum !== null && Object.values(sum).includes(0))

/** Which rows count, and for whom. */
interface Selection {
  /** places of the rows that pass; undefined: all */
  readonly places: Uint32Array | undefined
  readonly count: number
  /** group of each of them; undefined: one for all */
  readonly groupOf: Uint32Array | undefined
  readonly keys: readonly string[] | undefined
}

/** Chooses rows, each choice once. */
class Selecting {
  readonly #rows: Table
  readonly #budget: Budget = { leftMs: MAX_MATCHING_MS }
  readonly #places = new Map<string, Uint32Array | undefined>()
  readonly #selections = new Map<string, Selection | undefined>()

  constructor(rows: Table) {
    this.#rows = rows
  }

  /** undefined where the filter took too long */
  selection({ filter, groupBy }: Pick<AggregationPlan, 'filter' | 'groupBy'>): Selection | undefined {
    const key = JSON.stringify([filter?.key, groupBy])
    if (!this.#selections.has(key)) this.#selections.set(key, this.#select(filter, groupBy))
    return this.#selections.get(key)
  }

  #select(filter: AggregationFilter | undefined, groupBy: string | undefined): Selection | undefined {
    const places = filter && this.#passing(filter)
    if (filter && !places) return undefined
    const count = places?.length ?? this.#rows.size
    if (groupBy === undefined) return { places, count, groupOf: undefined, keys: undefined }
    return { places, count, ...grouped(columnOf(this.#rows, groupBy), places, count) }
  }

  #passing({ field, start, usesBudget, key }: AggregationFilter): Uint32Array | undefined {
    if (this.#places.has(key)) return this.#places.get(key)
    const places = passing(columnOf(this.#rows, field), this.#rows.size, start(this.#budget))
    const isWhole = !usesBudget || this.#budget.leftMs > 0
    this.#places.set(key, isWhole ? places : undefined)
    return isWhole ? places : undefined
  }
}

function passing(column: Column, size: number, test: Test): Uint32Array {
  const places = new Uint32Array(size)
  let count = 0
  for (let row = 0; row < size; row++) if (test(scalarOf(column(row)))) places[count++] = row
  return places.subarray(0, count)
}

function grouped(column: Column, places: Uint32Array | undefined, count: number) {
  const groupOf = new Uint32Array(count)
  const numbers = new Map<string, number>()
  for (let i = 0; i < count; i++) {
    const key = groupKey(scalarOf(column(places ? (places[i] ?? 0) : i)))
    let group = numbers.get(key)
    if (group === undefined) {
      const name = numbers.size >= MAX_GROUPS ? OTHER_GROUP : key
      group = numbers.get(name) ?? numbers.size
      numbers.set(name, group)
    }
    groupOf[i] = group
  }
  return { groupOf, keys: [...numbers.keys()] }
}

function groupKey(value: ScalarValue): string {
  if (value === null) return UNKNOWN_GROUP
  const text = textForm(value)
  return text.length <= MAX_KEY ? text : `${text.slice(0, MAX_KEY - 1)}…`
}

/** Values by row; of a column that is not there null. */
type Column = (row: number) => JsonValue

function columnOf(rows: Table, name: string): Column {
  const column = rows.column(name)
  if (column) return column
  if (name === '_namespace') return (row) => rows.namespaceAt(row)
  return name === '_name' ? (row) => rows.nameAt(row) : () => null
}

/** A result per group; of the one group where nothing is grouped. */
function evaluate(plan: AggregationPlan, rows: Table, selection: Selection): readonly ScalarValue[] {
  const groups = selection.keys?.length ?? 1
  if (plan.function === 'count') return counts(selection, groups)
  const column = columnOf(rows, plan.field ?? '')
  const each: Each = (visit) => {
    const { places, count, groupOf } = selection
    for (let i = 0; i < count; i++) {
      const value = scalarOf(column(places ? (places[i] ?? 0) : i))
      if (value !== null) visit(groupOf ? (groupOf[i] ?? 0) : 0, value)
    }
  }
  switch (plan.function) {
    case 'sum':
      return sums(each, groups).map(({ sum }) => finite(sum))
    case 'avg':
      return sums(each, groups).map(({ sum, count }) => (count === 0 ? null : finite(sum / count)))
    case 'min':
      return extremes(each, groups, -1)
    case 'max':
      return extremes(each, groups, 1)
    case 'percentile':
      return percentiles(each, groups, plan.percentile)
    case 'distinct':
      return distinct(each, groups)
  }
}

/** Visits every value that is there, in the order of the rows. */
type Each = (visit: (group: number, value: Exclude<ScalarValue, null>) => void) => void

function counts({ groupOf, count }: Selection, groups: number): readonly number[] {
  if (!groupOf) return [count]
  const result = new Array<number>(groups).fill(0)
  for (const group of groupOf) result[group] = (result[group] ?? 0) + 1
  return result
}

/** With what rounding loses carried along (Neumaier), so that 0.1 taken ten times is 1 and order hardly matters. */
function sums(each: Each, groups: number): readonly { readonly sum: number; readonly count: number }[] {
  const sum = new Float64Array(groups)
  const lost = new Float64Array(groups)
  const count = new Uint32Array(groups)
  each((group, value) => {
    const number = numericOf(value)
    if (number === undefined) return
    const before = sum[group] ?? 0
    const after = before + number
    const loss = Math.abs(before) >= Math.abs(number) ? before - after + number : number - after + before
    sum[group] = after
    lost[group] = (lost[group] ?? 0) + loss
    count[group] = (count[group] ?? 0) + 1
  })
  return Array.from(sum, (total, group) => {
    const exact = total + (lost[group] ?? 0)
    return { sum: Number.isNaN(exact) ? total : exact, count: count[group] ?? 0 }
  })
}

/** Of numbers; by letters where all values are text. */
function extremes(each: Each, groups: number, sign: 1 | -1): readonly ScalarValue[] {
  const numbers = new Array<number | undefined>(groups).fill(undefined)
  const texts = new Array<string | undefined>(groups).fill(undefined)
  const hasOther = new Uint8Array(groups)
  each((group, value) => {
    if (typeof value === 'string') {
      const best = texts[group]
      if (best === undefined || (sign < 0 ? value < best : value > best)) texts[group] = value
    } else hasOther[group] = 1
    const number = numericOf(value)
    const best = numbers[group]
    if (number !== undefined && (best === undefined || (number - best) * sign > 0)) numbers[group] = number
  })
  return numbers.map((number, group) => (hasOther[group] === 1 ? number : texts[group]) ?? null)
}

/** Between the two neighbours of the place p/100 × (n − 1), in proportion. */
function percentiles(each: Each, groups: number, percentile: number): readonly ScalarValue[] {
  const values = Array.from({ length: groups }, (): number[] => [])
  each((group, value) => {
    const number = numericOf(value)
    if (number !== undefined) values[group]?.push(number)
  })
  return values.map((list) => {
    if (list.length === 0 || !(percentile >= 0 && percentile <= 100)) return null
    const sorted = Float64Array.from(list).sort()
    const place = (percentile * (sorted.length - 1)) / 100
    const below = sorted[Math.floor(place)] ?? 0
    const above = sorted[Math.ceil(place)] ?? below
    const share = place - Math.floor(place)
    const between = below + (above - below) * share
    return finite(Number.isFinite(between) ? between : below * (1 - share) + above * share)
  })
}

/** Numbers are the same where they are equal; a text is never the same as a number. */
function distinct(each: Each, groups: number): readonly number[] {
  const seen = Array.from({ length: groups }, () => new Set<ScalarValue>())
  each((group, value) => seen[group]?.add(value))
  return seen.map(({ size }) => size)
}

const finite = (number: number): number | null => (Number.isFinite(number) ? number + 0 : null)
