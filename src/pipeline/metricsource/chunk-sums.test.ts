import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Chunk, Table } from '#model'
import { type AggregationPlan, aggregate } from './aggregate.ts'
import { ChunkSums } from './chunk-sums.ts'

const plan = (name: string, over: Partial<AggregationPlan>): AggregationPlan => ({
  ...{ name, function: 'count', field: undefined, groupBy: undefined, filter: undefined, percentile: 0, isVoid: false },
  ...over,
})
const plans = [plan('byStatus', { groupBy: 'status' }), plan('restarts', { function: 'sum', field: 'restarts' })]

function aKind(onRows: (rows: Table) => void) {
  return {
    access: 'pods' as const,
    aggregations: plans.map(({ name, function: how, field, groupBy }) => ({
      ...{ name, function: how, field, groupBy },
      ...{ unit: 'none' as const, hasHistory: false },
    })),
    aggregate(rows: Table) {
      onRows(rows)
      return aggregate(plans, rows)
    },
  }
}

const tableOf = (
  rows: readonly { readonly name: string; readonly status: string | null; readonly restarts: number }[],
) =>
  Table.of(
    ['status', 'restarts'],
    rows.map(({ name, ...values }) => ({ namespace: 'shop', name, labels: {}, values })),
  )

describe('ChunkSums', () => {
  it('comes to what is computed of all rows, whatever came, changed and went', () => {
    const row = fc.record({
      name: fc.integer({ min: 0, max: 3000 }).map((n) => `p${String(n).padStart(5, '0')}`),
      status: fc.constantFrom('Running', 'Pending', null),
      restarts: fc.nat(9),
    })
    const first = Array.from({ length: 2500 }, (_, i) => ({
      name: `p${String(i).padStart(5, '0')}`,
      status: i % 7 === 0 ? 'Pending' : 'Running',
      restarts: i % 3,
    }))
    fc.assert(
      fc.property(fc.array(fc.tuple(row, fc.boolean()), { maxLength: 20 }), (steps) => {
        const sums = new ChunkSums(aKind(() => undefined))
        let rows = tableOf(first)
        for (const [one, isGone] of steps) {
          rows = isGone ? rows.patch(Table.empty, [`shop/${one.name}`]) : rows.patch(tableOf([one]), [])
          expect(sums.of(rows)).toEqual(aggregate(plans, rows))
        }
      }),
      { numRuns: 20 },
    )
  })

  it('looks at no row of a chunk it has seen', () => {
    const seen: Chunk[] = []
    const sums = new ChunkSums(aKind(({ chunks }) => void seen.push(...chunks)))
    const rows = tableOf(Array.from({ length: 3000 }, (_, i) => ({ name: `p${i}`, status: 'Running', restarts: 0 })))
    sums.of(rows)
    expect(seen).toHaveLength(rows.chunks.length)
    sums.of(rows.patch(tableOf([{ name: 'p7', status: 'Failed', restarts: 1 }]), []))
    expect(seen).toHaveLength(rows.chunks.length + 1)
  })

  it('names no more groups than are named at once', () => {
    const rows = tableOf(Array.from({ length: 1500 }, (_, i) => ({ name: `p${i}`, status: `s${i}`, restarts: 0 })))
    expect(new ChunkSums(aKind(() => undefined)).of(rows)).toEqual(aggregate(plans, rows))
  })
})
