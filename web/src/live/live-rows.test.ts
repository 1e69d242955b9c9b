import { describe, expect, it } from 'vitest'
import type { RowsMessage } from '../contract.ts'
import { RowQueries, type RowsBesides } from './live-rows.ts'

const pods = { type: 'pods', sort: 'status', limit: 2 } as const
const nobody = () => undefined
const begin = (query = 0): RowsMessage => ({
  ...{ kind: 'rows', query, from: 0, items: [], total: 0, isLast: true, now: 1 },
})

describe('rows beside those of a query', () => {
  it('are asked for as they are shown whenever the stream is opened, of a query that goes on and of one that is new', () => {
    const queries = new RowQueries()
    let shown: readonly string[] = []
    const leave = queries.follow(pods, nobody, () => shown)
    expect(queries.carry()).toEqual([pods])
    shown = ['west/a/x', 'west/a/y']
    expect(queries.carry()).toEqual([{ ...pods, also: shown }])
    // Somebody scrolls.
    leave()
    const further = { ...pods, cursor: 'x' }
    queries.follow(further, nobody, () => shown)
    expect(queries.isMissing).toBe(true)
    expect(queries.carry()).toEqual([{ ...further, also: shown }])
    expect(queries.isMissing).toBe(false)
  })

  it('of all who show the query are asked for once, the first hundred, and no more than an address has room for', () => {
    const names = (count: number, name = 'p') => Array.from({ length: count }, (_, at) => `w/${name}${at}`)
    const also = (...besides: readonly RowsBesides[]) => {
      const queries = new RowQueries()
      for (const one of besides) queries.follow(pods, nobody, one)
      return queries.carry()[0]?.also ?? []
    }
    const both = also(
      () => names(2),
      () => names(3),
    )
    expect(both).toEqual(names(3))
    expect(also(() => names(120))).toEqual(names(100))
    const long = also(() => names(120, 'x'.repeat(200)))
    expect(long).toEqual(names(35, 'x'.repeat(200)))
    const name = 'checkout-payments-gateway-worker-7d9f8b6c5d-x2x4'
    expect(also(() => names(120, name)).length).toBeGreaterThan(85)
    const wordy = new RowQueries()
    wordy.follow({ ...pods, where: Array.from({ length: 10 }, () => 'w'.repeat(750)) }, nobody, () => names(120))
    expect(wordy.carry()[0]?.also?.length).toBeLessThan(30)
    // Beyond all rows there are none.
    const all = new RowQueries()
    all.follow({ type: 'pods' }, nobody, () => names(1))
    expect(all.carry()).toEqual([{ type: 'pods' }])
  })

  it('are missed where rows begin again by themselves and it was not asked for all that are shown', () => {
    const queries = new RowQueries()
    let shown: readonly string[] = ['west/a/x']
    queries.follow(pods, nobody, () => shown)
    queries.carry()
    expect(queries.take(begin())).toBe(false)
    expect([queries.take(begin()), queries.isBesidesMissing]).toEqual([true, false])
    shown = ['west/a/x', 'west/a/y']
    expect([queries.take(begin()), queries.isBesidesMissing]).toEqual([true, true])
    queries.carry()
    expect([queries.take(begin()), queries.isBesidesMissing]).toEqual([false, false])
    shown = []
    expect(queries.isBesidesMissing).toBe(false)
  })
})
