import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RowList, type ShownRow } from './row-list.ts'

const row = (id: string, x = 0): ShownRow => ({
  ...{ id, rowId: id, cluster: 'west', namespace: '', name: id, labels: {} },
  values: { x },
})
const some = fc.array(fc.tuple(fc.constantFrom(...'abcdefgh'), fc.nat(9)), { maxLength: 12 })

describe('RowList', () => {
  it('is what a map of rows is, however it came to be; what it was made of stays as it was', () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), some), { maxLength: 6 }), (steps) => {
        let list = RowList.empty
        const expected = new Map<string, ShownRow>()
        for (const [isLonger, rows] of steps) {
          const before = [list, [...list.entries()]] as const
          const made = rows.map(([id, x]) => row(id, x))
          list = isLonger ? list.with(made) : list.put(made)
          for (const one of made) if (isLonger || expected.has(one.id)) expected.set(one.id, one)
          expect([...list]).toEqual([...expected])
          expect([list.size, [...list.keys()], list.items]).toEqual([
            expected.size,
            [...expected.keys()],
            [...expected.values()],
          ])
          expect([...'abcdefgh'].map((id) => list.get(id))).toEqual([...'abcdefgh'].map((id) => expected.get(id)))
          const [older, was] = before
          expect([...older.entries()]).toEqual(was)
          expect([...'abcdefgh'].filter((id) => older.has(id)).sort()).toEqual(was.map(([id]) => id).sort())
        }
      }),
      { numRuns: 50 },
    ))

  it('is the same built of parts', () =>
    fc.assert(
      fc.property(fc.array(some, { maxLength: 6 }), (parts) => {
        const built = RowList.builder()
        let list = RowList.empty
        for (const part of parts) {
          const made = part.map(([id, x]) => row(id, x))
          built.add(made)
          list = list.with(made)
        }
        expect([...built.build()]).toEqual([...list])
      }),
      { numRuns: 50 },
    ))
})
