import { describe, expect, it } from 'vitest'
import type { AggregationInfoView, TableRowView } from '../contract.ts'
import { countBy, recounted } from './recount.ts'

const info = (name: string, more: Partial<AggregationInfoView>): AggregationInfoView => ({
  ...{ name, function: 'count', field: null, groupBy: null, unit: 'none', hasHistory: false },
  ...more,
})
const row = (values: TableRowView['values']): TableRowView => ({
  id: 'a',
  namespace: '',
  name: 'a',
  labels: {},
  values,
})
const counted = (...rows: readonly TableRowView[]) => ({
  countBy: (column: string) => Object.fromEntries(countBy(column, rows)),
})
const aggregations = [
  info('byType', { groupBy: 'type' }),
  info('cpu', { function: 'sum', field: 'cpu', unit: 'cores' }),
]

describe('recounted', () => {
  it('counts groups over the rows that are shown, what has no value as the hub does, and leaves sums as they were told', () => {
    const rows = counted(
      ...[row({ type: 'Normal' }), row({ type: 'Warning' }), row({ type: 'Normal' }), row({ type: null })],
    )
    expect(recounted(aggregations, { byType: { Normal: 9 }, cpu: 2 }, rows)).toEqual({
      byType: { Normal: 2, Warning: 1, _unknown_: 1 },
      cpu: 2,
    })
  })

  it('makes no number of what was not told', () => {
    expect(recounted(aggregations, { cpu: 2 }, counted(row({ type: 'Normal' })))).toEqual({ cpu: 2 })
  })
})
