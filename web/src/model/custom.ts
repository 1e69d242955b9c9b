import type {
  AggregatedView,
  AggregationInfoView,
  ColumnView,
  CustomRowView,
  SourceView,
  TypeOnClusterView,
  TypeView,
} from '../contract.ts'
import { momentOf } from '../contract.ts'
import { parseFilter, type Term, type Value } from './filter.ts'
import { formatBytes, formatCores, formatSpan } from './format.ts'

export type Scalar = CustomRowView['values'][string]
export type Unit = ColumnView['unit']

const few = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 })
const tiny = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 2 })

/** A number without a unit. What is not nothing is not rounded to nothing. */
export const formatNumber = (value: number): string =>
  value !== 0 && Math.abs(value) < 0.005 ? tiny.format(value) : few.format(value)

/** A span in seconds, to the tenth where it is short. Spans run backwards too: what is overdue has a minus. */
export function formatSeconds(seconds: number): string {
  const size = Math.abs(seconds)
  const text = size < 10 ? `${formatNumber(size)} s` : formatSpan(size * 1000)
  return seconds < 0 ? `−${text}` : text
}

/** A number with its unit; of time the moment is shown by `momentOf`. */
export function formatQuantity(value: number, unit: Unit): string {
  switch (unit) {
    case 'bytes':
      return formatBytes(value)
    case 'cores':
      return formatCores(value)
    case 'percent':
      return `${formatNumber(value)} %`
    case 'seconds':
      return formatSeconds(value)
    default:
      return formatNumber(value)
  }
}

/** How it reads in a text, such as a tip. A moment stays as it was written. */
export function sayScalar(value: Scalar, unit: Unit): string {
  if (value === null || value === '') return 'none'
  if (typeof value === 'number') return formatQuantity(value, unit)
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return value
}

/** The one value of an aggregation, in words. */
export const sayAmount = (value: AggregatedView | undefined, unit: Unit): string =>
  value === undefined || isGroups(value) ? '' : sayScalar(value, unit)

/** A declared name as people read it: `total_capacity_bytes` as "total capacity", where the unit says bytes itself. */
export function titleOf(name: string, unit: Unit = 'none'): string {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .split(/[\s_-]+/)
    .filter((word) => word !== '')
    .map((word) => (/^[A-Z][a-z]/.test(word) ? word.toLowerCase() : word))
    .map((word) => (/^avg$/i.test(word) ? 'average' : word))
  if (words.length > 1 && words.at(-1)?.toLowerCase() === unit) words.pop()
  const title = words.join(' ')
  return title === '' ? name : `${title.slice(0, 1).toUpperCase()}${title.slice(1)}`
}

const functionWord: Readonly<Record<string, string>> = {
  count: 'rows',
  sum: 'sum of',
  avg: 'average of',
  min: 'least of',
  max: 'greatest of',
  percentile: 'percentile of',
  distinct: 'different values of',
}

/** What an aggregation is made of: "sum of capacity by storageClass". */
export function explainAggregation({ function: name, field, groupBy }: AggregationInfoView): string {
  const of = name === 'count' ? 'count' : `${functionWord[name] ?? name} ${field ?? 'rows'}`
  return groupBy === null ? of : `${of} by ${groupBy}`
}

export const isGroups = (value: AggregatedView | undefined): value is Readonly<Record<string, Scalar>> =>
  typeof value === 'object' && value !== null

export interface Bar {
  readonly group: string
  readonly value: Scalar
  /** of the greatest, 0 to 1; 0 where the value is no amount */
  readonly share: number
}

/** The groups of an aggregation, the greatest first; those without a value last. */
export function barsOf(groups: Readonly<Record<string, Scalar>>): Bar[] {
  const entries = Object.entries(groups)
  const amount = (value: Scalar) => (typeof value === 'number' ? value : Number.NEGATIVE_INFINITY)
  let greatest = 0
  for (const [, value] of entries) if (typeof value === 'number') greatest = Math.max(greatest, value)
  return entries
    .map(([group, value]) => ({
      group,
      value,
      share: typeof value === 'number' && greatest > 0 ? Math.max(0, value / greatest) : 0,
    }))
    .sort((a, b) => amount(b.value) - amount(a.value) || (a.group < b.group ? -1 : 1))
}

/** Of one source where several have the type name; the first one is shown. */
export const sourceOf = ({ sources }: Pick<TypeView, 'sources'>): SourceView | undefined => sources[0]

/** How a type stands on a cluster; each has a picture of its own. */
export type Standing = 'collected' | 'partly' | 'stale' | 'empty' | 'absent' | 'forbidden' | 'unreachable' | 'waiting'

export const standingWord: Readonly<Record<Standing, string>> = {
  collected: 'Collected',
  partly: 'In part',
  stale: 'Old',
  empty: 'None there',
  absent: 'Not served',
  forbidden: 'Forbidden',
  unreachable: 'Unreachable',
  waiting: 'Not yet read',
}

export function standingOf({ part, stale, errorCount }: TypeOnClusterView): Standing {
  if (part.outcome !== 'complete') return part.outcome
  if (part.freshness === null) return 'waiting'
  if (stale) return 'stale'
  if (errorCount > 0) return 'partly'
  return part.count === 0 ? 'empty' : 'collected'
}

/** Something is wrong that somebody may mend; what a cluster does not serve is not wrong. */
export const isWrong = (on: TypeOnClusterView): boolean =>
  ['partly', 'stale', 'forbidden', 'unreachable'].includes(standingOf(on))

export const hasRows = ({ part }: TypeOnClusterView): boolean => part.freshness !== null && part.outcome !== 'absent'

/** Newest collection of any cluster, ms; null where there was none. */
export function newestOf(clusters: readonly TypeOnClusterView[]): number | null {
  let newest: number | null = null
  for (const { part } of clusters) {
    const at = part.freshness?.observedAt
    if (at !== undefined && (newest === null || at > newest)) newest = at
  }
  return newest
}

export interface FleetTotal {
  readonly value: AggregatedView
  /** clusters it is over, and those that do not tell it although they serve it */
  readonly clusters: number
  readonly missing: number
  /** of those it is over: the ones in which the last collection ended well, and lately */
  readonly current: number
  /** when the oldest of them was collected, ms */
  readonly oldestAt: number
}

/** The rows are what the last collection saw; else they are of the one before. */
export const isCurrentOn = ({ part, stale }: TypeOnClusterView): boolean =>
  !stale && part.outcome === 'complete' && part.freshness !== null

const joins: Readonly<Record<string, (a: number, b: number) => number>> = {
  count: (a, b) => a + b,
  sum: (a, b) => a + b,
  min: Math.min,
  max: Math.max,
}

/**
 * One number for all clusters, where the clusters' numbers make one: counts and sums add up, the least of the least is the
 * least. An average of averages is no average.
 * @returns undefined where there is no such number, or no cluster tells it
 */
export function fleetTotal(
  { name, function: kind }: AggregationInfoView,
  clusters: readonly TypeOnClusterView[],
): FleetTotal | undefined {
  const join = joins[kind]
  if (!join) return undefined
  const tellers = clusters.filter((on) => hasRows(on) && on.aggregations?.[name] !== undefined)
  const told = tellers.map(({ aggregations }): AggregatedView => aggregations?.[name] ?? null)
  if (told.length === 0) return undefined
  const served = clusters.filter(({ part }) => part.outcome !== 'absent')
  const counts = {
    clusters: told.length,
    missing: served.length - told.length,
    current: tellers.filter(isCurrentOn).length,
    oldestAt: Math.min(...tellers.map(({ part }) => part.freshness?.observedAt ?? Number.POSITIVE_INFINITY)),
  }
  if (told.some(isGroups)) {
    const groups = new Map<string, number>()
    for (const value of told) {
      for (const [group, amount] of Object.entries(isGroups(value) ? value : {})) {
        if (typeof amount !== 'number') continue
        const before = groups.get(group)
        groups.set(group, before === undefined ? amount : join(before, amount))
      }
    }
    return { value: Object.fromEntries(groups), ...counts }
  }
  const numbers = told.filter((value) => typeof value === 'number')
  return { value: numbers.length === 0 ? null : numbers.reduce((sum, each) => join(sum, each)), ...counts }
}

/** A field may be called as one of the built-in columns, which the hub then means: it is shown, and not sorted by. */
export const columnId = (name: string): string => (name === 'name' || name === 'namespace' ? `value.${name}` : name)

export interface RowsQuestion {
  readonly q?: string
  readonly namespace?: string
  readonly where?: readonly string[]
}

const scales: Readonly<Partial<Record<Unit, Readonly<Record<string, number>>>>> = {
  bytes: {
    '': 1,
    k: 1e3,
    m: 1e6,
    g: 1e9,
    t: 1e12,
    ki: 2 ** 10,
    mi: 2 ** 20,
    gi: 2 ** 30,
    ti: 2 ** 40,
    pi: 2 ** 50,
    kib: 2 ** 10,
    mib: 2 ** 20,
    gib: 2 ** 30,
    tib: 2 ** 40,
  },
  cores: { '': 1, m: 0.001 },
  percent: { '': 1, '%': 1 },
  seconds: { '': 1, s: 1, m: 60, min: 60, h: 3600, d: 86_400 },
}

/** A number as it is written beside a unit: 50Gi, 250m, 80%, 2h. */
export function parseQuantityText(text: string, unit: Unit): number | undefined {
  const match = /^(-?\d+(?:\.\d+)?)\s*([a-z%]*)$/i.exec(text)
  if (!match?.[1]) return undefined
  const scale = (scales[unit] ?? { '': 1 })[(match[2] ?? '').toLowerCase()]
  return scale === undefined ? undefined : Number(match[1]) * scale
}

const builtIn: ColumnView = {
  ...{ name: '', label: '', kind: 'string', unit: 'none', computed: false },
  ...{ extra: false, refersTo: null },
}

/**
 * What is typed into the filter, as the hub is asked. What it cannot be asked is left out, and said.
 * @param columns of the source; name and namespace are there always
 */
export function rowsQuestion(
  text: string,
  columns: readonly ColumnView[],
): { readonly question: RowsQuestion; readonly faults: readonly string[] } {
  const faults: string[] = []
  const words: string[] = []
  const where: string[] = []
  let namespace: string | undefined
  for (const term of parseFilter(text)) {
    if (term.kind === 'word') {
      if (term.not) faults.push(`${term.source} is left out: words cannot be turned round here`)
      else words.push(term.text)
      continue
    }
    const asked = askTerm(term, columns)
    if ('fault' in asked) faults.push(asked.fault)
    else if ('namespace' in asked && namespace === undefined) namespace = asked.namespace
    else if ('namespace' in asked) faults.push(`${term.source} is left out: one namespace at a time`)
    else where.push(asked.where)
  }
  if (where.length > mostTerms) faults.push(`only the first ${mostTerms} terms are asked`)
  return {
    question: {
      ...(words.length > 0 && { q: words.join(' ').slice(0, 200) }),
      ...(namespace !== undefined && { namespace }),
      ...(where.length > 0 && { where: where.slice(0, mostTerms) }),
    },
    faults,
  }
}
const mostTerms = 10

type Asked = { readonly where: string } | { readonly namespace: string } | { readonly fault: string }

function askTerm(term: Extract<Term, { kind: 'field' }>, columns: readonly ColumnView[]): Asked {
  const left = (why: string) => ({ fault: `${term.source} is left out: ${why}` })
  const column =
    columns.find(({ name }) => name === term.field) ??
    columns.find(({ name }) => name.toLowerCase() === term.field.toLowerCase()) ??
    (['name', 'namespace', 'cluster'].includes(term.field) ? { ...builtIn, name: term.field } : undefined)
  if (!column) return left(`${term.field} is no column here`)
  const [value] = term.values
  if (value === undefined) return left('it lacks a value')
  if (term.values.length > 1) return left('one value at a time')
  const equal = term.op === ':' ? !term.not : term.not
  if (term.op === ':' || term.op === '!=') {
    if (column.name === 'namespace' && equal) return { namespace: value }
    return { where: `${column.name}${equal ? '=' : '!='}${writtenValue(value, column)}` }
  }
  if (term.op !== '<' && term.op !== '>') return left('only : != < > can be asked here')
  if (term.not) return left('turn the sign round instead')
  const amount = parseQuantityText(value, column.unit)
  if (amount === undefined) return left(`${value} is no number`)
  return { where: `${column.name}${term.op}${amount}` }
}

/** As the hub compares it: nothing is the empty text. */
function writtenValue(value: string, { kind, unit }: ColumnView): string {
  const low = value.toLowerCase()
  if (low === 'none') return ''
  if (kind === 'boolean') return { yes: 'true', no: 'false' }[low] ?? low
  if (kind !== 'number') return value
  return String(parseQuantityText(value, unit) ?? value)
}

/** The value of a cell as a table sorts and exports it: a moment as one. */
export function cellValue(row: CustomRowView, { name, unit }: ColumnView): Value {
  const value = row.values[name] ?? null
  return unit === 'time' ? (momentOf(value) ?? value) : value
}
