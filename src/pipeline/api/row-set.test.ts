import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { allRows, both, countOf, either, hasRow, listRows, noRows, others, rowsOf, setOfRows } from './row-set.ts'

const sets = fc.integer({ min: 1, max: 512 }).chain((size) => {
  const rows = fc.oneof(
    fc.constant(Array.from({ length: size }, (_, row) => row)),
    fc.uniqueArray(fc.nat(size - 1), { maxLength: size }),
  )
  return fc.tuple(fc.constant(size), rows, rows)
})

describe('sets of rows', () => {
  it('are joined as sets are, whatever their size', () =>
    fc.assert(
      fc.property(sets, ([size, left, right]) => {
        const [a, b] = [setOfRows(left, size), setOfRows(right, size)]
        const listed = (set: Uint32Array) => [...rowsOf(set, size)]
        const every = Array.from({ length: size }, (_, row) => row)
        const [inLeft, inRight] = [new Set(left), new Set(right)]
        expect(listed(a)).toEqual(every.filter((row) => inLeft.has(row)))
        expect(listed(both(a, b, size))).toEqual(every.filter((row) => inLeft.has(row) && inRight.has(row)))
        expect(listed(either(a, b, size))).toEqual(every.filter((row) => inLeft.has(row) || inRight.has(row)))
        expect(listed(others(a, size))).toEqual(every.filter((row) => !inLeft.has(row)))
        expect(countOf(a, size)).toBe(inLeft.size)
        expect(every.filter((row) => hasRow(a, row))).toEqual(listed(a))
        const list = new Uint16Array(512)
        expect([...list.subarray(0, listRows(a, size, list))]).toEqual(listed(a))
      }),
    ))

  it('are known to be all or none where they are', () => {
    expect(setOfRows([0, 1, 2], 3)).toBe(allRows)
    expect(setOfRows([], 3)).toBe(noRows)
    expect(both(setOfRows([0], 3), setOfRows([2], 3), 3)).toBe(noRows)
    expect(either(setOfRows([0, 1], 3), setOfRows([2], 3), 3)).toBe(allRows)
  })
})
