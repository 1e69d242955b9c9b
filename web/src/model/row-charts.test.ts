import { describe, expect, it } from 'vitest'
import { aggregation } from '../../testing/customs.ts'
import { rowCharts } from './row-charts.ts'

describe('rowCharts', () => {
  it('puts alike beside alike: counts together, sums of a unit together, each field for itself', () => {
    const charts = rowCharts([
      aggregation('total', 'count'),
      aggregation('pending', 'count'),
      aggregation('capacity_bytes', 'sum', { field: 'capacity', unit: 'bytes' }),
      aggregation('requested_bytes', 'sum', { field: 'requested', unit: 'bytes' }),
      aggregation('max_capacity', 'max', { field: 'capacity', unit: 'bytes' }),
      aggregation('avg_days', 'avg', { field: 'daysLeft' }),
      aggregation('min_days', 'min', { field: 'daysLeft' }),
    ])
    expect(charts.map(({ title, unit, lines }) => [title, unit, lines.map(({ metric }) => metric)])).toEqual([
      ['Counts', 'count', ['total', 'pending']],
      ['Sizes', 'bytes', ['capacity_bytes', 'requested_bytes']],
      ['Max capacity', 'bytes', ['max_capacity']],
      ['Days left', 'amount', ['avg_days', 'min_days']],
    ])
  })
  it('leaves out what is not kept over time', () => {
    expect(rowCharts([aggregation('by', 'count', { groupBy: 'phase' })])).toEqual([])
  })
  it('draws at most four lines on a chart, and each of them differently', () => {
    const charts = rowCharts(Array.from({ length: 9 }, (_, index) => aggregation(`c${index}`, 'count')))
    expect(charts.map(({ lines }) => lines.length)).toEqual([4, 4, 1])
    for (const { lines } of charts) expect(new Set(lines.map(({ stroke }) => stroke)).size).toBe(lines.length)
    expect(new Set(charts.map(({ id }) => id)).size).toBe(3)
    expect(charts.map(({ title }) => title)).toEqual(['Counts', 'Counts, 2', 'Counts, 3'])
  })
})
