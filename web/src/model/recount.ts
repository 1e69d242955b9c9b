import type { AggregatedView, AggregationInfoView, TableRowView } from '../contract.ts'
import { scalarOf } from './row-values.ts'

/** What a page has before it of all rows of a kind: it says no other number elsewhere. */
export interface Counted {
  readonly count: number
  /** all of them; null: they were counted elsewhere */
  readonly rows: readonly TableRowView[] | null
}

type Values = Readonly<Record<string, AggregatedView | null>>

/**
 * Aggregations of a kind that is built in, those that count rows counted anew over these: what stands above a table then says no other
 * numbers than the table. What adds up amounts stays as it was told.
 */
export function recounted(
  aggregations: readonly AggregationInfoView[],
  values: Values,
  rows: readonly TableRowView[],
): Values {
  const counted = aggregations.flatMap(({ name, function: how, field, groupBy }) =>
    how === 'count' && field === null && groupBy !== null && name in values
      ? [[name, countBy(groupBy, rows)] as const]
      : [],
  )
  return { ...values, ...Object.fromEntries(counted) }
}

function countBy(column: string, rows: readonly TableRowView[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>()
  for (const row of rows) {
    const group = String(scalarOf(row.values[column]) ?? '_unknown_') // as the hub names what has no value
    counts.set(group, (counts.get(group) ?? 0) + 1)
  }
  return Object.fromEntries(counts)
}
