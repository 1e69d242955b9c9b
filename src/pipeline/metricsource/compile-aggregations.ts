import { type AggregationPlan, IDENTITY_COLUMNS } from './aggregate.ts'
import { cut, type Draft, type DraftAggregation } from './draft.ts'
import { compileFilter } from './filter.ts'
import { type Findings, suggestionFor } from './findings.ts'
import type { AggregationInfo, ColumnInfo } from './types.ts'
import { unitOfName } from './units.ts'

export const DEFAULT_PERCENTILE = 95

export interface CompiledAggregations {
  readonly plans: readonly AggregationPlan[]
  readonly infos: readonly AggregationInfo[]
  /** those in force: of equal names the last */
  readonly drafts: readonly DraftAggregation[]
}

/**
 * What is summed up, and whether it can be. A column that is not declared is one without values, as in the original: its sum is
 * 0, its rows are one group, and a warning says so.
 */
export function compileAggregations(
  { aggregations }: Draft,
  columns: readonly ColumnInfo[],
  findings: Findings,
): CompiledAggregations {
  const known = new Map(IDENTITY_COLUMNS.map((name): readonly [string, ColumnInfo] => [name, identityColumn(name)]))
  for (const column of columns) known.set(column.name, column)
  const last = new Map(aggregations.map(({ name }, i) => [name, i]))
  const compiled = aggregations.flatMap((draft, i) => {
    const plan = compileOne(draft, known, findings)
    if (last.get(draft.name) === i) return [{ draft, plan, info: infoOf(draft, known) }]
    if (draft.name !== '') {
      const message = `a later aggregation is called ${JSON.stringify(cut(draft.name))} as well, and counts instead`
      findings.warning('aggregation_name_duplicate', `${draft.at}.name`, message)
    }
    return []
  })
  return {
    plans: compiled.map(({ plan }) => plan),
    infos: compiled.map(({ info }) => info),
    drafts: compiled.map(({ draft }) => draft),
  }
}

const identityColumn = (name: string): ColumnInfo => ({
  name,
  kind: 'string',
  type: 'string',
  isComputed: false,
  unit: 'none',
})

function compileOne(
  draft: DraftAggregation,
  known: ReadonlyMap<string, ColumnInfo>,
  findings: Findings,
): AggregationPlan {
  const { at, name, function: fn, field, filter, groupBy } = draft
  const column = (named: string | undefined, code: string, place: string): string | undefined => {
    if (named === undefined || known.has(named)) return named
    if (known.has(`_${named}`)) return `_${named}`
    const message = `there is no field or computed value called ${JSON.stringify(cut(named))}: it is empty in every object`
    findings.warning(code, place, message, suggestionFor(named, known.keys()))
    return named
  }
  const filtered = column(filter?.field, 'filter_unknown_field', `${at}.filter.field`)
  const looked = { ...draft, field: fn === 'count' ? field : column(field, 'aggregation_unknown_field', `${at}.field`) }
  return {
    name,
    function: fn,
    field: looked.field,
    filter: filter && compiledFilter({ ...filter, field: filtered ?? filter.field }, at, known, findings),
    groupBy: column(groupBy, 'group_unknown_field', `${at}.groupBy`),
    percentile: checkedPercentile(draft, findings),
    isVoid: !checkField(looked, known, findings),
  }
}

const NUMERIC: readonly string[] = ['sum', 'avg', 'percentile']

/** Whether there is a column to look at. */
function checkField(
  { at, function: fn, field }: DraftAggregation,
  known: ReadonlyMap<string, ColumnInfo>,
  findings: Findings,
): boolean {
  if (fn === 'count') return true
  if (field === undefined) {
    findings.warning('aggregation_field_missing', at, `${fn} needs a field: the result is always null`)
    return false
  }
  const column = known.get(field)
  if (!column || column.kind === 'any' || column.kind === 'number' || !NUMERIC.includes(fn)) return true
  const what = column.type === 'timestamp' ? 'a time' : column.kind === 'boolean' ? 'true or false' : 'text'
  const rest =
    column.kind === 'string' && column.type !== 'timestamp'
      ? 'only texts that are decimal numbers count'
      : 'nothing counts'
  findings.warning(
    'aggregation_type_unlikely',
    `${at}.field`,
    `${fn} needs numbers and ${JSON.stringify(cut(field))} is ${what}: ${rest}`,
  )
  return true
}

function compiledFilter(
  filter: NonNullable<DraftAggregation['filter']>,
  at: string,
  known: ReadonlyMap<string, ColumnInfo>,
  findings: Findings,
): NonNullable<AggregationPlan['filter']> {
  const { field, operator, value } = filter
  const compiled = compileFilter(filter, known.get(field)?.type ?? 'any')
  const place = `${at}.filter.value`
  if (compiled.fault !== undefined) {
    findings.error('filter_pattern_invalid', place, compiled.fault, { at: { text: value, from: 0, to: value.length } })
  } else if (compiled.warning !== undefined) {
    findings.warning('filter_value_unlikely', place, `${JSON.stringify(cut(value))} ${compiled.warning}`)
  }
  const { start = () => () => false, usesBudget = false } = compiled
  return { field, start, usesBudget, key: JSON.stringify([field, operator, value]) }
}

function checkedPercentile({ at, function: fn, percentile }: DraftAggregation, findings: Findings): number {
  if (percentile === undefined) return DEFAULT_PERCENTILE
  if (fn === 'percentile' && (percentile < 0 || percentile > 100)) {
    findings.error('percentile_out_of_range', `${at}.percentile`, `must be from 0 to 100, not ${percentile}`)
  }
  return percentile
}

function infoOf(
  { name, function: fn, field, groupBy }: DraftAggregation,
  known: ReadonlyMap<string, ColumnInfo>,
): AggregationInfo {
  const column = field === undefined ? undefined : known.get(field)
  const isCount = fn === 'count' || fn === 'distinct'
  const named = unitOfName(name)
  const unit = isCount ? 'none' : column && column.unit !== 'none' ? column.unit : named
  const isOfText =
    (fn === 'min' || fn === 'max') && (column === undefined || column.kind === 'string' || column.kind === 'boolean')
  return { name, function: fn, field, groupBy, unit, hasHistory: groupBy === undefined && !isOfText }
}
