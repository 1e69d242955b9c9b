import type {
  AggregatedView,
  AggregationInfoView,
  ClusterView,
  ColumnView,
  SourceView,
  TableRowView,
  TypeOnClusterView,
  TypeView,
} from '../contract.ts'
import { lineOf, momentOf, nearest } from '../contract.ts'
import { hasFailedSince, notReadWords } from './current.ts'
import { parseFilter, type Term, type Value, wordFault } from './filter.ts'
import { formatBytes, formatCores, formatSpan } from './format.ts'
import type { Basis } from './sums.ts'

export type Scalar = string | number | boolean | null
/** A scalar, or a list or an object of a column of kind `any`. */
export type CellValue = TableRowView['values'][string]
export type Unit = ColumnView['unit']

/** What a table shows of a value: items of a list with commas, of an object its fields behind their names. */
export function scalarOf(value: CellValue | undefined): Scalar {
  if (typeof value !== 'object' || value === null) return value ?? null
  const isPlain = Array.isArray(value) && value.every((one) => typeof one !== 'object' || one === null)
  return isPlain ? value.join(', ') || null : lineOf(value)
}

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
  return restartsText(value) ?? value
}

/**
 * What a pod keeps of its containers, `[["web",3,true]]`, in words: "web 3, out of memory". undefined: it is another text.
 * @see containerRestarts of the kind of pods
 */
export function restartsText(text: string): string | undefined {
  if (!text.startsWith('[[')) return undefined
  let list: unknown
  try {
    list = JSON.parse(text)
  } catch {
    return undefined // a text that merely begins so
  }
  if (!Array.isArray(list)) return undefined
  const words = list.flatMap((one) => {
    const [name, count, isOomKilled]: unknown[] = Array.isArray(one) ? one : []
    if (typeof name !== 'string' || typeof count !== 'number') return []
    return [`${name} ${count}${isOomKilled === true ? ', out of memory' : ''}`]
  })
  return words.length === list.length ? words.join('; ') : undefined
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

/** Small, as far as it is no abbreviation: restarts, OOM kills. */
const inSentence = (title: string): string => title.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase())

/** What an amount is called behind its number: of a kind that is built in as its column, of a declared one by its own name. */
export function amountWord(
  { name, unit, field }: Pick<AggregationInfoView, 'name' | 'unit' | 'field'>,
  source: { readonly columns: readonly ColumnView[]; readonly isDeclared: boolean } | undefined,
): string {
  const column = source?.isDeclared === false ? source.columns.find((one) => one.name === field) : undefined
  return inSentence(column?.label ?? titleOf(name, unit))
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

/** By which column the rows of kinds with a tab of their own come, for who cannot wait until the hub has said so. */
export const usualOrder: Readonly<Record<string, string>> = {
  ...{ nodes: 'status', namespaces: 'phase', deployments: 'status', operators: 'status' },
  'cluster-operators': 'status',
}

/** What policies call the rows that decide about a type: its own, but for kinds that follow others. */
export const policyType = (type: string): string =>
  ({ deployments: 'namespaces', 'cluster-operators': 'operators' })[type] ?? type

/** How a type stands on a cluster; each has a picture of its own. */
export type CollectionStatus =
  | 'collected'
  | 'partly'
  | 'stale'
  | 'empty'
  | 'absent'
  | 'forbidden'
  | 'unreachable'
  | 'waiting'

export const collectionStatusWord: Readonly<Record<CollectionStatus, string>> = {
  collected: 'Collected',
  partly: 'In part',
  stale: 'Old',
  empty: 'None there',
  absent: 'Not served',
  forbidden: 'Forbidden',
  unreachable: 'Unreachable',
  waiting: 'Not yet read',
}

export function collectionStatusOf({ part, stale, errorCount }: TypeOnClusterView): CollectionStatus {
  if (part.outcome !== 'complete') return part.outcome
  if (part.freshness === null) return 'waiting'
  if (stale) return 'stale'
  if (errorCount > 0) return 'partly'
  return part.count === 0 ? 'empty' : 'collected'
}

/** Not all of it is known: what is gone may still be among its rows. */
export const isIncomplete = ({ errors }: TypeOnClusterView): boolean => errors.some(({ code }) => code === 'incomplete')

/** Something is wrong that somebody may mend; what a cluster does not serve is not wrong. */
export const isWrong = (on: TypeOnClusterView): boolean =>
  ['partly', 'stale', 'forbidden', 'unreachable'].includes(collectionStatusOf(on))

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

/** Old from the first round on that failed, not only when its time is over. */
export function asOfNow(on: TypeOnClusterView, cluster: ClusterView | undefined): TypeOnClusterView {
  const at = on.part.freshness?.observedAt
  return cluster && at !== undefined && !on.stale && hasFailedSince(cluster, at) ? { ...on, stale: true } : on
}

/** The rows are what the last collection saw; else they are of the one before. */
export const isCurrentOn = ({ part, stale }: TypeOnClusterView): boolean =>
  !stale && part.outcome === 'complete' && part.freshness !== null

/** Since when, and why, what the rows use is older than the rows. */
export interface PastUsage {
  readonly at: number
  readonly why: string
}

/** @returns null: it was read last time it was its turn, or there are no numbers of it */
export function pastUsage({ measured }: Pick<TypeOnClusterView, 'measured'>): PastUsage | null {
  if (!measured?.freshness || measured.outcome === 'complete') return null
  return { at: measured.freshness.observedAt, why: measured.message || notReadWords[measured.outcome] }
}

/** Over which clusters a sum of what rows use is, and how old the oldest number in it is; null: no cluster tells any. */
export function usageBasis(clusters: readonly TypeOnClusterView[]): Basis | null {
  const served = clusters.filter((on) => hasRows(on) && on.measured && on.measured.outcome !== 'absent')
  const counted = served.flatMap((on) => (on.measured?.freshness ? { on, at: on.measured.freshness.observedAt } : []))
  if (counted.length === 0) return null
  const current = counted.filter(({ on }) => isCurrentOn(on) && pastUsage(on) === null).length
  return {
    ...{ of: served.length, counted: counted.length, current },
    oldestAt: Math.min(...counted.map(({ at }) => at)),
  }
}

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
  const told = clusters.filter((on) => hasRows(on) && on.aggregations?.[name] !== undefined)
  if (told.length === 0) return undefined
  // A cluster whose rows have no number to sum up is not in the sum.
  const tellers = told.filter(({ aggregations }) => kind !== 'sum' || aggregations?.[name] !== null)
  const known = tellers.map(({ aggregations }): AggregatedView => aggregations?.[name] ?? null)
  const served = clusters.filter(({ part }) => part.outcome !== 'absent')
  const counts = {
    clusters: known.length,
    missing: served.length - known.length,
    current: tellers.filter(isCurrentOn).length,
    oldestAt: Math.min(...told.map(({ part }) => part.freshness?.observedAt ?? Number.POSITIVE_INFINITY)),
  }
  if (known.some(isGroups)) {
    const groups = new Map<string, number | null>()
    for (const value of known) {
      for (const [group, amount] of Object.entries(isGroups(value) ? value : {})) {
        const before = groups.get(group) ?? null
        if (typeof amount !== 'number') groups.set(group, before)
        else groups.set(group, before === null ? amount : join(before, amount))
      }
    }
    return { value: Object.fromEntries(groups), ...counts }
  }
  const numbers = known.filter((value) => typeof value === 'number')
  return { value: numbers.length === 0 ? null : numbers.reduce((sum, each) => join(sum, each)), ...counts }
}

/** A field may be called as one of the built-in columns, which the hub then means: it is shown, and not sorted by. */
export const columnId = (name: string): string => (name === 'name' || name === 'namespace' ? `value.${name}` : name)

export interface RowsQuestion {
  readonly q?: string
  readonly namespace?: string
  readonly labels?: string
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
  ...{ extra: false, refersTo: null, amount: null, health: null, restricted: false },
  absence: 'none',
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
  const labels: string[] = []
  let namespace: string | undefined
  for (const term of parseFilter(byName(text, [...columns, readAt]))) {
    if (term.kind === 'word') {
      const why = wordFault(term)
      if (why !== undefined) faults.push(why)
      else if (term.not) where.push(`*!~${term.text}`)
      else words.push(term.text)
      continue
    }
    const asked = askTerm(term, columns)
    if ('fault' in asked) faults.push(asked.fault)
    else if ('label' in asked) labels.push(asked.label)
    else if ('namespace' in asked && namespace === undefined) namespace = asked.namespace
    else if ('namespace' in asked) where.push(`namespace=${asked.namespace}`)
    else where.push(...asked.where)
  }
  if (where.length > mostTerms) faults.push(`only the first ${mostTerms} terms are asked`)
  return {
    question: {
      ...(words.length > 0 && { q: words.join(' ').slice(0, 200) }),
      ...(namespace !== undefined && { namespace }),
      ...(labels.length > 0 && { labels: labels.join(',') }),
      ...(where.length > 0 && { where: where.slice(0, mostTerms) }),
    },
    faults,
  }
}
const mostTerms = 10
/** A column of lists over many clusters; it is of the cluster, not of the row, and the hub is not asked for it. */
const readAt = { name: 'asOf', label: 'As of' }

/** Headings of several words, with or without quotes, as the names of their columns. */
function byName(text: string, columns: readonly Pick<ColumnView, 'name' | 'label'>[]): string {
  let named = text
  for (const { name, label } of columns) {
    if (!label.includes(' ')) continue
    const words = label.split(' ').map((word) => word.replace(/[^\w]/g, '\\$&'))
    const heading = new RegExp(`(^|\\s)(-?)"?${words.join('\\s+')}"?\\s*(?=[:=~<>]|!=)`, 'gi')
    named = named.replace(heading, (_, before: string, not: string) => `${before}${not}${name}`)
  }
  return named
}

type Asked =
  | { readonly where: readonly string[] }
  | { readonly namespace: string }
  | { readonly label: string }
  | { readonly fault: string }

const opposite: Readonly<Record<string, string>> = {
  '=': '!=',
  '!=': '=',
  '~': '!~',
  '>': '<=',
  '<': '>=',
  '>=': '<',
  '<=': '>',
}

function askTerm(term: Extract<Term, { kind: 'field' }>, columns: readonly ColumnView[]): Asked {
  const left = (why: string) => ({ fault: `${term.source} is left out: ${why}` })
  const column =
    columns.find(({ name }) => name === term.field) ??
    columns.find(({ name }) => name.toLowerCase() === term.field.toLowerCase()) ??
    // As it is headed: "Created", or "CPU used" in one word.
    columns.find(({ label }) => label.replaceAll(' ', '').toLowerCase() === term.field.toLowerCase()) ??
    (['name', 'namespace', 'cluster'].includes(term.field) ? { ...builtIn, name: term.field } : undefined)
  const [value] = term.values
  if (value === undefined) return left('it lacks a value')
  if (!column && term.field === readAt.name)
    return left(
      'when a row was read is no column that can be asked for; the state of its cluster says whether it is old',
    )
  if (!column) {
    const meant = nearest(term.field, ['name', 'namespace', ...columns.map(({ name }) => name)])
    if (meant !== undefined) return left(`${term.field} is no column here; did you mean ${meant}?`)
    return labelTerm(term) ?? left(`${term.field} is no column here; the ? in the box lists them`)
  }
  const plain = term.op === ':' ? '=' : term.op
  const sign = term.not ? (opposite[plain] ?? plain) : plain
  if (column.name === 'namespace' && sign === '=' && term.values.length === 1) return { namespace: value.toLowerCase() } // as all of them are written
  const isText = ['=', '!=', '~', '!~'].includes(sign)
  if (!isText && column.unit === 'time' && column.kind === 'number')
    return ageTerm(term, column, sign) ?? left(`${value} is no age`)
  const isVersion = column.kind === 'string' && term.values.every((text) => /^v?\d+(\.\d+)*/.test(text))
  if (!isText && isVersion) return { where: [term.values.map((text) => `${column.name}${sign}${text}`).join('||')] }
  const amounts = isText ? [] : term.values.map((text) => parseQuantityText(text, column.unit))
  if (amounts.includes(undefined)) return left(`${value} is no number`)
  const said = isText ? term.values.map((text) => (sign.endsWith('~') ? text : writtenValue(text, column))) : amounts
  const all = said.map((text) => `${column.name}${sign}${text}`)
  // None of several is each of them turned round; one of several is any of them.
  return { where: sign.startsWith('!') ? all : [all.join('||')] }
}

/** Moments are asked for by their age: what is younger than an hour came after this time. */
function ageTerm({ values }: Extract<Term, { kind: 'field' }>, { name }: ColumnView, sign: string): Asked | undefined {
  const ages = values.map((text) => parseQuantityText(text, 'seconds'))
  const turned = sign.startsWith('<') ? sign.replace('<', '>') : sign.replace('>', '<')
  if (ages.includes(undefined)) return undefined
  return { where: [ages.map((seconds = 0) => `${name}${turned}${Math.round(Date.now() - seconds * 1000)}`).join('||')] }
}

/** What is no column is a label, as long as a label can be asked so. */
function labelTerm({ field, op, not, values }: Extract<Term, { kind: 'field' }>): Asked | undefined {
  if ((op !== ':' && op !== '!=') || ![field, ...values].every((text) => /^[\w./-]+$/.test(text))) return undefined
  const isIn = (op === ':') !== not
  if (values.length === 1 && values[0]?.toLowerCase() === 'none') return { label: isIn ? `!${field}` : field }
  return { label: `${field} ${isIn ? 'in' : 'notin'} (${values.join(',')})` }
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
export function cellValue(row: TableRowView, { name, unit }: ColumnView): Value {
  const value = scalarOf(row.values[name])
  return unit === 'time' ? (momentOf(value) ?? value) : value
}

/** Why there is no number of any cluster. */
export function unreadWord({ clusters }: Pick<TypeView, 'clusters'>): string {
  const outcomes = new Set(clusters.map(({ part }) => part.outcome))
  if (outcomes.size === 1 && outcomes.has('absent')) return 'no cluster serves it'
  if (outcomes.size > 0 && !outcomes.has('complete') && !outcomes.has('unreachable'))
    return 'ClusterPulse may not read it on any cluster that serves it'
  return 'never read'
}
