import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareRows, type Row } from '#extract'
import type { TargetRows } from '../rows.ts'
import { hashOf, unpackRow } from './packed-row.ts'
import { RowStore } from './row-store.ts'

const KEY = { namespace: 'team-a', name: 'apps' }

const aRow = (name: string, value: unknown = 1, more: Partial<Row> = {}): Row => ({
  targetNamespace: 'team-a',
  targetName: 'apps',
  namespace: 'team-a',
  name,
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  uid: `uid-${name}`,
  attributes: { value },
  ...more,
})

const rowsIn = (store: RowStore, key = KEY): Row[] => {
  const state = store.state(key)
  return state.kind === 'rows' ? state.rows.map(unpackRow) : []
}

describe('RowStore', () => {
  it('gives rows back as they came, in canonical order', () => {
    const store = new RowStore(() => undefined)
    const rows = [aRow('b', { list: [1, 'x', null] }), aRow('a'), aRow('ä'), aRow('😀'), aRow('￿')]
    store.target(KEY).put(rows)
    expect(rowsIn(store)).toEqual([...rows].sort(compareRows))
  })

  it('keeps a row of the core group without a group', () => {
    const store = new RowStore(() => undefined)
    const { group: _, ...pod } = aRow('pod')
    store.target(KEY).put([pod])
    expect(rowsIn(store)).toStrictEqual([pod])
  })

  it('wakes nobody for an equal row, whatever order its attributes came in', () => {
    const woken: string[] = []
    const store = new RowStore((namespace) => woken.push(namespace))
    const target = store.target(KEY)
    target.put([aRow('a', 1, { attributes: { x: 1, y: { a: 1, b: 2 } } })])
    expect(woken).toEqual(['team-a'])
    target.put([aRow('a', 1, { attributes: { y: { b: 2, a: 1 }, x: 1 } })])
    target.replace([aRow('a', 1, { attributes: { y: { b: 2, a: 1 }, x: 1 } })])
    target.remove([aRow('gone')])
    target.setComplete(false)
    expect(woken).toEqual(['team-a'])
  })

  it('keeps one row of an object whose version changed', () => {
    const store = new RowStore(() => undefined)
    store.target(KEY).put([aRow('a', 1, { version: 'v1beta1' })])
    store.target(KEY).put([aRow('a')])
    expect(rowsIn(store)).toEqual([aRow('a')])
  })

  it('leaves what somebody reads as it was', () => {
    const store = new RowStore(() => undefined)
    const target = store.target(KEY)
    target.put([aRow('a'), aRow('b')])
    const state = store.state(KEY)
    target.put([aRow('a', 2), aRow('c')])
    target.remove([aRow('b')])
    expect(state.kind === 'rows' && state.rows.map(unpackRow)).toEqual([aRow('a'), aRow('b')])
  })

  it('tells a target that chooses nothing from one it never heard of', () => {
    const store = new RowStore(() => undefined)
    expect(store.state(KEY).kind).toBe('unknown')
    const target = store.target(KEY)
    expect(store.state(KEY)).toMatchObject({ kind: 'rows', isComplete: false })
    target.drop()
    expect(store.state(KEY).kind).toBe('dropped')
    target.put([aRow('late')])
    expect(store.state(KEY).kind).toBe('dropped')
    store.target(KEY).put([aRow('again')])
    expect(rowsIn(store)).toHaveLength(1)
  })

  it('forgets what left longest ago, and says so', () => {
    const store = new RowStore(() => undefined, { maxDepartures: 2 })
    const target = store.target(KEY)
    target.put(['a', 'b', 'c'].map((name) => aRow(name)))
    const before = store.sequence
    for (const name of ['a', 'b']) target.remove([aRow(name)])
    expect(store.departedSince(before)).toHaveLength(2)
    target.remove([aRow('c')])
    expect(store.departedSince(before)).toBeUndefined()
    expect(store.departedSince(store.sequence)).toEqual([])
  })

  const step = fc.oneof(
    fc.record({
      verb: fc.constant('put' as const),
      names: fc.array(fc.nat(120), { maxLength: 100 }),
      value: fc.nat(3),
    }),
    fc.record({
      verb: fc.constant('remove' as const),
      names: fc.array(fc.nat(120), { maxLength: 40 }),
      value: fc.nat(3),
    }),
    fc.record({
      verb: fc.constant('replace' as const),
      names: fc.array(fc.nat(120), { maxLength: 120 }),
      value: fc.nat(3),
    }),
    fc.record({ verb: fc.constant('drop' as const), names: fc.constant([]), value: fc.nat(0) }),
  )

  it('holds what a map would hold, and its changes since any moment lead from then to now', () =>
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.nat(12), (steps, from) => {
        const store = new RowStore(() => undefined)
        const model = new Map<string, Row>()
        let base = { sequence: 0, rows: new Map<string, Row>() }
        for (const [at, { verb, names, value }] of steps.entries()) {
          if (at === from) base = { sequence: store.sequence, rows: new Map(model) }
          const rows = names.map((name, place) => aRow(String(name), value + (place % 2)))
          act(store.target(KEY), model, verb, rows)
        }
        const expected = [...model.values()].sort(compareRows)
        expect(rowsIn(store)).toEqual(expected)
        if (from < steps.length) expect(replayed(store, base)).toEqual(expected)
      }),
    ))

  it('gives equal rows equal hashes and different rows different ones', () => {
    const hash = (row: Row) => {
      const store = new RowStore(() => undefined)
      store.target(KEY).put([row])
      const state = store.state(KEY)
      return state.kind === 'rows' && state.rows[0] && hashOf(state.rows[0])
    }
    const row = aRow('a')
    const all = [row, aRow('b'), aRow('a', 2), { ...row, uid: 'u' }, { ...row, kind: 'X' }, { ...row, namespace: 'n' }]
    expect(new Set(all.map(hash)).size).toBe(all.length)
    expect(hash(row)).toBe(hash(structuredClone(row)))
    expect(hash(row)).toHaveLength(32)
  })
})

function act(target: TargetRows, model: Map<string, Row>, verb: string, rows: readonly Row[]): void {
  if (verb === 'put') target.put(rows)
  if (verb === 'remove') target.remove(rows)
  if (verb === 'replace') target.replace(rows)
  if (verb === 'drop') target.drop()
  if (verb === 'replace' || verb === 'drop') model.clear()
  for (const row of rows) verb === 'remove' ? model.delete(row.name) : model.set(row.name, row)
}

function replayed(store: RowStore, { sequence, rows }: { sequence: number; rows: Map<string, Row> }): Row[] {
  for (const { key } of store.departedSince(sequence) ?? []) rows.delete(key.name)
  const state = store.state(KEY)
  for (const row of state.kind === 'rows' ? state.rows : []) {
    if (row.sequence > sequence) rows.set(row.name, unpackRow(row))
  }
  return [...rows.values()].sort(compareRows)
}
