import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidCursorError, page, type SortValue } from './page.ts'

interface Item {
  readonly name: string
  readonly value: SortValue
}
const item = fc.record({
  name: fc.string({ minLength: 1, maxLength: 3 }),
  value: fc.option(fc.integer({ max: 5, min: 0 })),
})
const items = fc.uniqueArray(item, { selector: ({ name }) => name, maxLength: 40 })
const read = (list: readonly Item[], query: Parameters<typeof page>[1]) =>
  page({ items: list, name: ({ name }) => name, value: ({ value }) => value }, query)

describe('a page', () => {
  it('with the following ones is the whole list in order, each item once', () => {
    fc.assert(
      fc.property(
        items,
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom('name', 'value'),
        fc.constantFrom('asc', 'desc'),
        (list, limit, sort, order) => {
          const whole = read(list, { limit: 1000, sort, order })
          expect(whole.next).toBeNull()
          const names: string[] = []
          let cursor: string | null | undefined
          while (cursor !== null) {
            const part = read(list, { limit, sort, order, ...(cursor !== undefined && { cursor }) })
            expect(part.total).toBe(list.length)
            names.push(...part.items.map(({ name }) => name))
            cursor = part.next
          }
          expect(names).toEqual(whole.items.map(({ name }) => name))
          expect(new Set(names).size).toBe(list.length)
        },
      ),
    )
  })

  it('neither skips nor repeats what stays, while other items come and go between pages', () => {
    fc.assert(
      fc.property(items, fc.array(items, { maxLength: 20 }), fc.integer({ min: 1, max: 5 }), (stay, others, limit) => {
        const stayNames = new Set(stay.map(({ name }) => name))
        const seen: string[] = []
        let cursor: string | null | undefined
        for (let turn = 0; cursor !== null; turn++) {
          const passing = (others[turn] ?? []).filter(({ name }) => !stayNames.has(name))
          const part = read([...passing, ...stay], { limit, sort: 'value', ...(cursor !== undefined && { cursor }) })
          seen.push(...part.items.map(({ name }) => name).filter((name) => stayNames.has(name)))
          cursor = part.next
        }
        expect(seen.toSorted()).toEqual([...stayNames].toSorted())
      }),
    )
  })

  it('puts what is not known last, whichever way', () => {
    const list = [
      { name: 'a', value: null },
      { name: 'b', value: 1 },
      { name: 'c', value: 2 },
    ]
    const names = (order: 'asc' | 'desc') => read(list, { sort: 'value', order }).items.map(({ name }) => name)
    expect(names('asc')).toEqual(['b', 'c', 'a'])
    expect(names('desc')).toEqual(['c', 'b', 'a'])
  })

  it('refuses a cursor of another order, and any text that is none', () => {
    const list = [
      { name: 'a', value: 1 },
      { name: 'b', value: 2 },
    ]
    const { next } = read(list, { limit: 1 })
    expect(() => read(list, { cursor: next!, order: 'desc' })).toThrow(InvalidCursorError)
    expect(() => read(list, { cursor: next!, sort: 'value' })).toThrow(InvalidCursorError)
    fc.assert(
      fc.property(fc.string(), (cursor) => {
        expect(() => read(list, { cursor })).toThrow(InvalidCursorError)
      }),
    )
    for (const forged of ['null', '[]', '["name","asc",{},"a"]', '["name","asc",null,7]']) {
      expect(() => read(list, { cursor: Buffer.from(forged).toString('base64url') })).toThrow(InvalidCursorError)
    }
  })
})
