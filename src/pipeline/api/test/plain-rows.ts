import type { RowsAccessView } from '#access'
import { type ClusterState, type JsonValue, scalarOf, type Table, type TableRow } from '#model'
import { SeenChunks } from '../seen-rows.ts'
import type { RowsQuery } from '../type-rows.ts'
import { nobody } from '../views.ts'
import { VisibleType } from '../visible-types.ts'
import { aSource, seenBy } from './sources.ts'

// The plain way to answer a question over rows: every row is made, looked at, and sorted.

/** A row with its cluster. */
export interface PlainRow extends TableRow {
  readonly cluster: string
}

export interface PlainCluster {
  readonly name: string
  readonly rows: Table
}

const source = aSource()

/** What an access view that looks at these things shows. */
export interface Shown {
  readonly shows: RowsAccessView['shows']
  readonly looksAt: NonNullable<RowsAccessView['looksAt']>
}

const decided = new SeenChunks()

/** As the hub sees the clusters: through what it keeps of chunks from question to question. */
export const typesOf = (clusters: readonly PlainCluster[], person: string, shown: Shown | undefined): VisibleType[] =>
  clusters.map(({ name, rows }) => {
    const state = seenBy(source, [], { rows })
    const cluster: ClusterState = { ...nobody(name), tables: new Map([[source.id, state]]) }
    const custom: RowsAccessView = {
      ...{ result: shown ? 'partial' : 'allow', reason: '', whole: !shown, metrics: true, basis: [] },
      ...(shown ?? { shows: () => true }),
      aggregation: () => true,
    }
    const left = (of: Table) =>
      Object.assign(decided.of(`${person} ${name}`, of, custom, source), { sums: new WeakMap() })
    return new VisibleType({ cluster, source, name: source.typeName, custom, state, left })
  })

/** In order. */
export function plainRows(clusters: readonly PlainCluster[], shown: Shown | undefined, query: RowsQuery): PlainRow[] {
  const all = clusters.flatMap(({ name, rows }) => [...rows.rows()].map((row) => ({ ...row, cluster: name })))
  const passing = all.filter((row) => (shown?.shows(row) ?? true) && passes(row, query))
  const { sort = 'name', order = 'asc' } = query
  const direction = order === 'asc' ? 1 : -1
  const places = new Map(passing.map((row, place) => [row, place]))
  return passing.toSorted((a, b) => {
    const [left, right] = [shownValue(a, sort), shownValue(b, sort)]
    const byPlace = direction * ((places.get(a) ?? 0) - (places.get(b) ?? 0))
    if (left === null || right === null) return left === right ? byPlace : left === null ? 1 : -1
    if (typeof left !== typeof right) return direction * (kinds.indexOf(typeof left) - kinds.indexOf(typeof right))
    return left === right ? byPlace : direction * (left < right ? -1 : 1)
  })
}

const kinds = ['number', 'boolean', 'string']

function shownValue(row: PlainRow, field: string): string | number | boolean | null {
  if (field === 'name' || field === 'namespace' || field === 'cluster') return row[field]
  const value: JsonValue = row.values[field] ?? null
  return Array.isArray(value) ? value.join(', ') || null : scalarOf(value)
}

/** The largest first, then by values. */
export function plainGroups(rows: readonly PlainRow[], by: readonly string[]) {
  const groups = new Map<string, { values: ReturnType<typeof shownValue>[]; count: number }>()
  for (const row of rows) {
    const values = by.map((name) => shownValue(row, name))
    const key = JSON.stringify(values)
    const group = groups.get(key) ?? { values, count: 0 }
    group.count += 1
    groups.set(key, group)
  }
  return groups
}

/** Names of rows that have each word in name or namespace, best first: by how the words stand in the name, then by its length. */
export function plainSearch(rows: readonly PlainRow[], words: readonly string[]): string[] {
  const rank = (name: string, word: string): number => {
    const lower = name.toLowerCase()
    const at = lower.indexOf(word)
    if (at < 0) return 4
    if (at === 0) return lower === word ? 0 : 1
    return /[a-z0-9]/.test(lower[at - 1] ?? '') ? 3 : 2
  }
  const found = rows
    .filter(({ name, namespace }) =>
      words.every((word) => name.toLowerCase().includes(word) || namespace.includes(word)),
    )
    .map((row) => ({ row, rank: words.reduce((sum, word) => sum + rank(row.name, word), 0) }))
  const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  found.sort(
    (a, b) =>
      a.rank - b.rank ||
      a.row.name.length - b.row.name.length ||
      compare(a.row.name, b.row.name) ||
      compare(a.row.cluster, b.row.cluster) ||
      compare(a.row.namespace, b.row.namespace),
  )
  return found.map(({ row }) => `${row.cluster} ${row.namespace} ${row.name}`)
}

function passes(row: PlainRow, { namespace, labels, q = '', where = [] }: RowsQuery): boolean {
  if (namespace !== undefined && row.namespace !== namespace) return false
  if (labels !== undefined) {
    const [key = '', value] = labels.split('=')
    if (row.labels[key] !== value) return false
  }
  const has = (word: string) =>
    [row.name, row.namespace, ...Object.keys(row.values).map((field) => shownValue(row, field))].some((value) =>
      String(value ?? '')
        .toLowerCase()
        .includes(word),
    )
  return (
    q.split(' ').filter(Boolean).every(has) && where.every((one) => one.split('||').some((text) => holds(row, text)))
  )
}

function holds(row: PlainRow, text: string): boolean {
  const [, field = '', operator = '', operand = ''] = /^(\w+)(!=|!~|>|<|=|~)(.*)$/.exec(text) ?? []
  const value = shownValue(row, field)
  const raw = row.values[field]
  const isSame = (one: unknown) => String(one ?? '').toLowerCase() === operand
  const isSaid = Array.isArray(raw) ? raw.some(isSame) : isSame(value)
  const isHeld = String(value ?? '')
    .toLowerCase()
    .includes(operand)
  switch (operator) {
    case '=':
      return isSaid
    case '!=':
      return !isSaid
    case '~':
      return isHeld
    case '!~':
      return !isHeld
    case '>':
      return typeof value === 'number' && value > Number(operand)
    default:
      return typeof value === 'number' && value < Number(operand)
  }
}
