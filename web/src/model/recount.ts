import type { AggregatedView, AggregationInfoView, SourceView, TableRowView } from '../contract.ts'
import { scalarOf } from './row-values.ts'

/** What a page has before it of all rows of a kind: it says no other number elsewhere. */
export interface Counted {
  readonly count: number
  /** all of them; null: they were counted elsewhere */
  readonly rows: CountedRows | null
}

export interface CountedRows {
  /** how many have which value of a column */
  countBy(column: string): Readonly<Record<string, number>>
}

type Values = Readonly<Record<string, AggregatedView | null>>

/** The columns by whose values aggregations of a source count rows. */
export const countedColumns = (source: Pick<SourceView, 'aggregations'> | null): readonly string[] =>
  (source?.aggregations ?? []).flatMap((info) => countedColumn(info) ?? [])

/** The column by whose values an aggregation counts rows; null: that is not what it does. */
export const countedColumn = ({ function: how, field, groupBy }: AggregationInfoView): string | null =>
  how === 'count' && field === null ? groupBy : null

/**
 * Aggregations of a kind that is built in, those that count rows counted anew over these: what stands above a table then says no other
 * numbers than the table. What adds up amounts stays as it was told.
 */
export function recounted(aggregations: readonly AggregationInfoView[], values: Values, rows: CountedRows): Values {
  const counted = aggregations.flatMap((info) => {
    const column = countedColumn(info)
    return column !== null && info.name in values ? [[info.name, rows.countBy(column)] as const] : []
  })
  return { ...values, ...Object.fromEntries(counted) }
}

/** What it is counted as. */
export const groupOf = (column: string, { values }: Pick<TableRowView, 'values'>): string =>
  String(scalarOf(values[column]) ?? '_unknown_') // as the hub names what has no value

/** Counts these rows among the others: -1 takes them out. */
export function countBy(
  column: string,
  rows: Iterable<Pick<TableRowView, 'values'>>,
  groups = new Map<string, number>(),
  by = 1,
): Map<string, number> {
  for (const row of rows) {
    const group = groupOf(column, row)
    groups.set(group, (groups.get(group) ?? 0) + by)
  }
  return groups
}
