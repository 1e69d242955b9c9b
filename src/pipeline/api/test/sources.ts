import type { SourceCatalog } from '#catalog'
import {
  type AggregationInfo,
  type AggregationPlan,
  type ColumnInfo,
  type CompiledSource,
  sumsOfNothing,
} from '#metricsource'
import { type Aggregated, type RowsState, seconds, Table, type TableRow } from '#model'
import { start } from './world.ts'

// Declarations and what they saw, without an engine: counts and sums over rows, as far as a route needs them.

const column = (name: string, kind: ColumnInfo['kind'], unit: ColumnInfo['unit'] = 'none'): ColumnInfo => ({
  name,
  kind,
  type: 'any',
  isComputed: false,
  unit,
})

const aggregation = (name: string, field?: string, unit: AggregationInfo['unit'] = 'none'): AggregationInfo => ({
  name,
  function: field === undefined ? 'count' : 'sum',
  field,
  groupBy: undefined,
  unit,
  hasHistory: true,
})

function aggregate(rows: Table): Readonly<Record<string, Aggregated>> {
  const all = [...rows.rows()].map(({ values }) => values)
  const total = all.reduce((sum, { size }) => sum + (typeof size === 'number' ? size : 0), 0)
  const phases = new Map<string, number>()
  for (const { phase } of rows.fields.includes('phase') ? all : [])
    phases.set(String(phase), (phases.get(String(phase)) ?? 0) + 1)
  return { count: rows.size, total, by_phase: Object.fromEntries(phases) }
}

const total: AggregationPlan = {
  ...{ name: 'total', function: 'sum', field: 'size', filter: undefined, groupBy: undefined, percentile: 0 },
  isVoid: false,
}

/** Claims with a size and a phase; `name` is also the type. */
const target = {
  apiVersion: 'v1',
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  scope: 'Namespaced',
  plural: 'persistentvolumeclaims',
  isPluralDeclared: false,
} as const

export const aSource = (name = 'pvc', changes: Partial<CompiledSource> = {}): CompiledSource => ({
  id: `test/${name}`,
  namespace: 'test',
  name,
  hash: '0123456789abcdef',
  typeName: name,
  access: 'declared',
  rowName: (one) => one,
  target,
  targets: [target],
  labelSelector: undefined,
  wantsNamespace: () => true,
  exactNamespaces: undefined,
  wantsAllNamespaces: true,
  columns: [column('size', 'number', 'bytes'), column('phase', 'string')],
  aggregations: [
    aggregation('count'),
    aggregation('total', 'size', 'bytes'),
    { ...aggregation('by_phase'), groupBy: 'phase', hasHistory: false },
  ],
  filterableFields: undefined,
  filterAggregations: true,
  collection: {
    intervalMs: seconds(60),
    timeoutMs: seconds(30),
    maxResources: 5000,
    batchSize: 500,
    retryAttempts: 3,
    parallelism: 3,
    watch: false,
  },
  definition: {},
  collect: () => {
    throw new Error('nothing is collected here')
  },
  aggregate,
  sumsOfNothing: (rows) => sumsOfNothing([total], rows),
  ...changes,
})

/** What is in force is what a test says. */
export class GivenCatalog implements SourceCatalog {
  #sources: readonly CompiledSource[]
  #version = 1

  constructor(...sources: readonly CompiledSource[]) {
    this.#sources = sources
  }

  set(...sources: readonly CompiledSource[]): void {
    this.#sources = sources.toSorted((left, right) => (left.id < right.id ? -1 : 1))
    this.#version += 1
  }

  sources = () => this.#sources
  source = (id: string) => this.#sources.find((source) => source.id === id)
  ofType = (typeName: string) => this.allOfType(typeName)[0]
  allOfType = (typeName: string) => this.#sources.filter((source) => source.typeName === typeName)
  version = () => this.#version
  unavailable: SourceCatalog['unavailable'] = () => undefined
  onChange = () => () => undefined
}

export const aRow = (namespace: string, name: string, values: TableRow['values'] = {}, labels = {}): TableRow => ({
  namespace,
  name,
  labels,
  values,
})

/** A complete collection of these rows. */
export function seenBy(source: CompiledSource, rows: readonly TableRow[], changes: Partial<RowsState> = {}): RowsState {
  const all = Table.of(
    source.columns.map(({ name }) => name),
    rows,
  )
  return {
    source: source.id,
    hash: source.hash,
    durationMs: 12,
    outcome: 'complete',
    code: '',
    message: '',
    attemptedAt: start,
    freshness: { observedAt: start, receivedAt: start + 5, source: 'pull' },
    rows: all,
    aggregations: source.aggregate(all),
    truncated: false,
    errors: [],
    errorCount: 0,
    reports: [],
    ...changes,
  }
}
