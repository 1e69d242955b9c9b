import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { anythingBeyond, type Beyond, hold, inOrder, keptNear, type OrderedRows, orderedRows } from './ordered-rows.ts'

interface Row {
  readonly key: string
  readonly turn: number
}
const rowsOf = (keys: readonly string[], turn = 0): OrderedRows<Row> =>
  orderedRows(
    keys.map((key) => ({ key, turn })),
    ({ key }) => key,
  )
const keysOf = (rows: OrderedRows<Row>) => [...rows.keys()]
const keys = fc.uniqueArray(fc.stringMatching(/^[a-f]{1,2}$/))

describe('hold', () => {
  it('never moves a row that is shown, shows every row once and as it is now, and puts new ones at the end', () =>
    fc.assert(
      fc.property(keys, fc.array(keys, { minLength: 1, maxLength: 4 }), (first, turns) => {
        let shown = rowsOf(first)
        for (const [at, now] of turns.entries()) {
          const arranged = rowsOf(now, at + 1)
          const held = hold(shown, arranged, arranged)
          const order = keysOf(held.rows)
          expect(order.slice(0, shown.size)).toEqual(keysOf(shown))
          expect(order.slice(shown.size)).toEqual(now.filter((key) => !shown.has(key)))
          expect([...held.gone]).toEqual(order.filter((key) => !now.includes(key)))
          expect(held.moved).toBe(order.join() !== now.join())
          const expected = order.map((key) => arranged.get(key) ?? shown.get(key))
          expect([...held.rows.values()]).toEqual(expected)
          expect(held.rows.slice(1, 3)).toEqual(expected.slice(1, 3))
          expect(order.map((key) => held.rows.get(key))).toEqual(expected)
          expect(held.rows.has('none')).toBe(false)
          shown = held.rows
        }
      }),
    ))

  it('tells which rows are shown only because the order is held, those in sight first', () => {
    const shown = rowsOf(['a', 'b', 'c', 'd', 'e', 'f'])
    const arranged = rowsOf(['b', 'd'])
    const beyond = { get: () => undefined, isGone: (key: string) => key === 'f' }
    const held = hold(shown, arranged, arranged, beyond)
    expect(keptNear(held, beyond, 3, 4)).toEqual(['e', 'c', 'f', 'a'])
    expect(keptNear(inOrder(shown), beyond, 0, 4)).toEqual([])
    // Nobody has read yet where it is.
    const told = { ...beyond, get: (key: string) => (key === 'b' ? { key, turn: 1 } : undefined) }
    expect(keptNear(inOrder(shown), told, 0, 4)).toEqual(['b'])
  })

  it('comes to rest: holding twice is holding once', () =>
    fc.assert(
      fc.property(keys, keys, (shown, now) => {
        const arranged = rowsOf(now)
        const once = hold(rowsOf(shown), arranged, arranged)
        const twice = hold(once.rows, arranged, arranged)
        expect([keysOf(twice.rows), twice.gone]).toEqual([keysOf(once.rows), once.gone])
      }),
    ))

  it('keeps a row that the filter leaves out by now, as it is, and calls it not gone', () => {
    const all = rowsOf(['a', 'b'], 1)
    const held = hold(rowsOf(['a', 'b']), rowsOf(['b'], 1), all)
    expect([...held.rows.values()]).toEqual([...all.values()])
    expect([held.gone.size, held.moved]).toEqual([0, true])
  })

  it('keeps a row that left a part of all rows, as it is now, and calls gone only what is known to be', () => {
    const [shown, arranged] = [rowsOf(['a', 'b', 'c']), rowsOf(['c'], 1)]
    const moved = { key: 'a', turn: 1 }
    const beyond: Beyond<Row> = { get: (key) => (key === 'a' ? moved : undefined), isGone: (key) => key === 'b' }
    const held = hold(shown, arranged, arranged, beyond)
    expect([...held.rows.values()]).toEqual([moved, { key: 'b', turn: 0 }, { key: 'c', turn: 1 }])
    expect([[...held.gone], [...held.elsewhere]]).toEqual([['b'], [['a', true]]])
    // Told of no more: what was known of both stays.
    const later = hold(held.rows, arranged, arranged, anythingBeyond)
    expect([...later.rows.values()]).toEqual([...held.rows.values()])
    expect([[...later.gone], [...later.elsewhere]]).toEqual([['b'], [['a', false]]])
    // One is gone, and the other came again elsewhere.
    const turned = hold(later.rows, arranged, arranged, {
      get: (key) => (key === 'b' ? { key, turn: 2 } : undefined),
      isGone: (key) => key === 'a',
    })
    expect([[...turned.gone], [...turned.elsewhere]]).toEqual([['a'], [['b', true]]])
    expect(turned.rows.get('b')?.turn).toBe(2)
  })

  it('is the list itself as long as that only grows', () => {
    const arranged = rowsOf(['a', 'b', 'c'])
    expect(hold(rowsOf(['a', 'b']), arranged, arranged)).toEqual(inOrder(arranged))
  })
})
