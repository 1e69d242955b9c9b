import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyRows, type FleetRowView, noRows, type RowsMessage } from '../contract.ts'
import { RowOverlay, type ToldRows } from './overlay-rows.ts'
import { RowList } from './row-list.ts'
import type { Paged, ShownRow } from './row-pages.ts'

type Here = Extract<Paged, { state: 'here' }>
const row = (name: string, values: FleetRowView['values'] = {}): FleetRowView => ({
  ...{ cluster: 'west', id: name, namespace: '', name, labels: {} },
  values,
})
const loaded = (names: readonly string[], more: Partial<ShownRow> = {}, isWhole = true): Here => ({
  state: 'here',
  rows: RowList.of(names.map((name) => ({ ...row(name, { node: 'n1' }), rowId: name, ...more }))),
  page: { total: names.length, next: null, source: null, on: [] },
  starts: [{ at: 0, cursor: undefined }],
  isWhole,
  readAt: performance.now(),
  problem: null,
})
const held = (items: readonly FleetRowView[], total = items.length, behind: Partial<ToldRows> = {}): ToldRows => {
  const rows = noRows()
  const first: RowsMessage = { kind: 'rows', query: 0, from: 0, items: [...items], total, isLast: true, now: 1 }
  applyRows(rows, first)
  return { held: rows, limit: items.length, at: 0, ...behind }
}
const overlay = () => new RowOverlay(({ id }) => id)

describe('RowOverlay', () => {
  it('shows rows as the stream has them, in its order, and asks for pages where one is new to them', () => {
    const { paged, isBehind } = overlay().over(loaded(['a', 'b']), held([row('b'), row('c'), row('a')]), 0)
    expect([...paged.rows.keys()]).toEqual(['b', 'c', 'a'])
    expect([paged.page.total, paged.isWhole, isBehind]).toEqual([3, true, true])
    expect(overlay().over(loaded(['a', 'b']), held([row('b'), row('a')]), 0).isBehind).toBe(false)
  })

  it('keeps what was scrolled to beyond the first rows behind them, as it was read', () => {
    const known = loaded(['a', 'b', 'c'], {}, false)
    const { paged, isBehind, reaches } = overlay().over(known, held([row('a'), row('b', { x: 1 })], 9), 0)
    expect([...paged.rows.keys()]).toEqual(['a', 'b', 'c'])
    expect([paged.rows.get('b')?.values.x, paged.page.total, paged.isWhole]).toEqual([1, 9, false])
    // What lies beyond is not told: it is read again when something moves.
    expect([isBehind, reaches]).toEqual([false, false])
  })

  it('puts first rows that changed places in their order at once, though more is loaded, and has the pages read anew', () => {
    const known = loaded(['a', 'b', 'c', 'd'], {}, false)
    const turned = overlay().over(known, held([row('b'), row('a')], 9), 0)
    expect([[...turned.paged.rows.keys()], turned.isBehind]).toEqual([['b', 'a', 'c', 'd'], true])
    // One that left the first rows stands behind them until it is known where.
    const left = overlay().over(known, held([row('b'), row('c')], 9), 0)
    expect([[...left.paged.rows.keys()], left.isBehind]).toEqual([['b', 'c', 'a', 'd'], true])
  })

  it('stands in the order of the stream whatever moved, and loses and doubles nothing that is loaded', () => {
    const ids = 'abcdefghij'.split('')
    const shuffled = fc.shuffledSubarray(ids, { minLength: ids.length, maxLength: ids.length })
    fc.assert(
      fc.property(shuffled, shuffled, fc.integer({ min: 1, max: 10 }), (pages, now, limit) => {
        const told = now.slice(0, limit)
        const { paged } = overlay().over(
          loaded(pages, {}, false),
          held(
            told.map((name) => row(name)),
            99,
          ),
          0,
        )
        const keys = [...paged.rows.keys()]
        expect(keys.slice(0, limit)).toEqual(told)
        expect(keys.slice(limit)).toEqual(limit < 10 ? pages.filter((id) => !told.includes(id)) : [])
      }),
    )
  })

  it('puts rows that stand behind one that was read in their places amidst the others', () => {
    const known = loaded([...'abcdefgh'], {}, false)
    const behind = { cursor: 'of b', limit: 3, at: 2 }
    const over = (names: string, more: Partial<ToldRows> = {}) => {
      const told = held(
        [...names].map((name) => row(name, { x: 1 })),
        90,
        { ...behind, ...more },
      )
      const { paged, beyond: _, ...rest } = overlay().over(known, told, 0)
      return { keys: [...paged.rows.keys()].join(''), ...rest }
    }
    expect(over('cde')).toEqual({ keys: 'abcdefgh', isBehind: false, reaches: false, from: 2, to: 5 })
    // One that came, and one that went: that is looked at no more until it is known where it is.
    expect(over('cxd')).toEqual({ keys: 'abcxdefgh', isBehind: true, reaches: false, from: 2, to: 5 })
    expect(over('cef')).toEqual({ keys: 'abcefdgh', isBehind: true, reaches: false, from: 2, to: 5 })
    // Two in front of them are gone since they were asked for.
    expect(over('efg', { at: 6 })).toMatchObject({ keys: 'abcdefgh', from: 4 })
    expect(over('xyz')).toMatchObject({ keys: 'abxyzcdefgh', from: 2 })
    // Nothing stands behind the last.
    expect(over('fg')).toMatchObject({ keys: 'abcdefg', isBehind: true, from: 5, to: 7 })
    expect(over('')).toMatchObject({ keys: 'ab', isBehind: true })
  })

  it('leaves out what is gone wherever it was read, until it was read since', () => {
    const told = held([row('a'), row('b'), row('c')], 90)
    const known = { ...loaded(['a', 'b', 'c', 'd', 'e'], {}, false), readAt: performance.now() - 10_000 }
    const now = 100_000
    const change = (...changes: Extract<RowsMessage, { kind: 'rowsChange' }>['changes']): void =>
      applyRows(told.held, { kind: 'rowsChange', query: 0, changes, total: 89, now })
    change({ op: 'remove', cluster: 'west', id: 'b', gone: true }, { op: 'put', row: row('d'), at: 2 })
    const keys = (paged: Here, at = now) => [...overlay().over(paged, told, at).paged.rows.keys()].join('')
    expect(keys(known)).toBe('acde')
    expect(keys(known, now + 9000)).toBe('acde')
    // Read after it was told.
    expect(keys({ ...known, readAt: performance.now() }, now + 9000)).toBe('acdbe')
    // Who was pushed out by others is behind them still, and who came back is there.
    change({ op: 'remove', cluster: 'west', id: 'd' }, { op: 'put', row: row('b'), at: 1 })
    expect(keys(known)).toBe('abcde')
  })

  it('knows of rows that left whether they are gone or elsewhere, and what they are there', () => {
    const told = held([row('a'), row('b'), row('c')], 90)
    const change = (...changes: Extract<RowsMessage, { kind: 'rowsChange' }>['changes']): void =>
      applyRows(told.held, { kind: 'rowsChange', query: 0, changes, total: 89, now: 100_000 })
    const left = { op: 'remove', cluster: 'west' } as const
    change({ ...left, id: 'a', row: row('a', { x: 1 }) }, { ...left, id: 'b', gone: true }, { ...left, id: 'c' })
    change({ op: 'put', row: row('d'), at: 0 })
    const known = { ...loaded(['a', 'b', 'c', 'd', 'e'], {}, false), readAt: performance.now() - 10_000 }
    const { paged, beyond, reaches } = overlay().over(known, told, 100_000)
    expect(reaches).toBe(false)
    // Where it was read it stands until it is known where, as it is by now.
    expect([[...paged.rows.keys()].join(''), paged.rows.get('a')?.values.x]).toEqual(['dace', 1])
    const first = loaded(['a'], {}, false)
    const over = overlay().over(first, told, 100_000)
    expect([over.reaches, over.paged.rows.has('a'), over.beyond.get('a')?.values.x]).toEqual([true, false, 1])
    expect(['a', 'b', 'c', 'x'].map(over.beyond.isGone)).toEqual([false, true, false, false])
    expect(beyond.isGone('x')).toBe(false)
    // Among all rows nothing is elsewhere.
    const all = overlay().over(first, held([row('d')]), 100_000)
    expect([all.beyond.isGone('a'), all.beyond.get('a')]).toEqual([true, undefined])
    // One that came again beyond them is gone no more, one that went there is.
    change({ ...left, id: 'b', row: row('b', { x: 2 }) }, { ...left, id: 'a', gone: true })
    const later = overlay().over(first, told, 100_000)
    expect(['a', 'b'].map(later.beyond.isGone)).toEqual([true, false])
    expect([later.beyond.get('a'), later.beyond.get('b')?.values.x]).toEqual([undefined, 2])
  })

  it('keeps links of values that are the same, and drops those of others', () => {
    const links = [
      { column: 'node', type: 'nodes', id: 'n1' },
      { column: null, type: 'namespaces', id: 'shop' },
    ]
    const known = loaded(['a'], { links })
    const same = overlay().over(known, held([row('a', { node: 'n1' })]), 0)
    expect(same.paged.rows.get('a')?.links).toEqual(links)
    const moved = overlay().over(known, held([row('a', { node: 'n2' })]), 0)
    expect(moved.paged.rows.get('a')?.links).toEqual(links.slice(1))
  })

  it('gives the very same row for what did not move', () => {
    const one = overlay()
    const known = loaded(['a', 'b'])
    const rows = held([row('a'), row('b')])
    const before = one.over(known, rows, 0).paged.rows.get('a')
    applyRows(rows.held, {
      kind: 'rowsChange',
      query: 0,
      changes: [{ op: 'put', row: row('b', { x: 1 }) }],
      total: 2,
      now: 2,
    })
    const after = one.over(known, rows, 0).paged.rows
    expect(after.get('a')).toBe(before)
    expect(after.get('b')?.values.x).toBe(1)
  })

  it('shows nothing of a picture that is not whole', () => {
    const known = loaded(['a'])
    expect(overlay().over(known, { held: noRows(), limit: 1, at: 0 }, 0).paged).toBe(known)
  })
})
