import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareRows, type Row } from '#extract'
import { type Composition, changesSince, compose, type Given, type Snapshot } from './compose.ts'
import { RowStore } from './store/index.ts'

const aRow = (targetName: string, name: string, value: unknown = 1, more: Partial<Row> = {}): Row => ({
  targetNamespace: 'team-a',
  targetName,
  namespace: 'team-a',
  name,
  version: 'v1',
  kind: 'Pod',
  uid: `uid-${name}`,
  attributes: { value },
  ...more,
})

const target = (name: string, namespace = 'team-a') => ({ name, namespace })
const all = (...names: string[]): Composition => ({ targets: names.map((name) => target(name)), onceEach: false })
const given = (snapshot: Snapshot): Given => ({
  sequence: snapshot.sequence,
  clearedAt: snapshot.sequence,
  composition: snapshot.composition,
})

function aStore(rows: Readonly<Record<string, readonly Row[]>>): RowStore {
  const store = new RowStore(() => undefined)
  for (const [name, list] of Object.entries(rows)) {
    store.target(target(name)).put(list)
    store.target(target(name)).setComplete(true)
  }
  return store
}

const namesOf = (rows: Iterable<Row> = []) => Array.from(rows, ({ name }) => name)

describe('a snapshot', () => {
  it('holds the rows of its targets in canonical order, and of no other', () => {
    const store = aStore({ b: [aRow('b', 'x')], a: [aRow('a', 'z'), aRow('a', 'y')], other: [aRow('other', 'o')] })
    const snapshot = compose(store, all('a', 'b'))
    expect([...snapshot.rows()].map(({ targetName, name }) => `${targetName}/${name}`)).toEqual(['a/y', 'a/z', 'b/x'])
    expect(snapshot.itemCount).toBe(3)
  })

  it('is complete when every target is, was dropped, or none is asked for; not while one was never heard of', () => {
    const store = aStore({ a: [aRow('a', 'x')] })
    expect(compose(store, all('a')).isComplete).toBe(true)
    expect(compose(store, all()).isComplete).toBe(true)
    expect(compose(store, all('a', 'late'))).toMatchObject({ isComplete: false, waitsFor: [target('late')] })
    const late = store.target(target('late'))
    expect(compose(store, all('a', 'late')).isComplete).toBe(false)
    late.drop()
    expect(compose(store, all('a', 'late')).isComplete).toBe(true)
    store.target(target('a')).setComplete(false)
    expect(compose(store, all('a')).waitsFor).toEqual([target('a')])
  })

  it('stays as it was while rows change', () => {
    const store = aStore({ a: [aRow('a', 'x'), aRow('a', 'y')] })
    const snapshot = compose(store, all('a'))
    store.target(target('a')).put([aRow('a', 'x', 2)])
    store.target(target('a')).remove([aRow('a', 'y')])
    expect([...snapshot.rows()]).toEqual([aRow('a', 'x'), aRow('a', 'y')])
    expect(snapshot.checksum).toBe(compose(aStore({ a: [aRow('a', 'x'), aRow('a', 'y')] }), all('a')).checksum)
  })

  it('of a roll-up merges cluster targets whose rows lie between each other', () => {
    const store = new RowStore(() => undefined)
    const at = (name: string, namespace: string) =>
      aRow(name, 'x', 1, { targetNamespace: namespace, namespace, uid: `${namespace}-${name}` })
    for (const name of ['one', 'two']) store.target(target(name, '')).put(['a', 'b', 'c'].map((ns) => at(name, ns)))
    const snapshot = compose(store, { targets: [target('two', ''), target('one', '')], onceEach: false })
    const rows = [...snapshot.rows()]
    expect(rows).toEqual([...rows].sort(compareRows))
    expect(rows).toHaveLength(6)
    expect(
      snapshot.shards().map(({ namespace, itemCount, targetCount }) => [namespace, itemCount, targetCount]),
    ).toEqual([
      ['a', 2, 2],
      ['b', 2, 2],
      ['c', 2, 2],
    ])
  })

  it('of a roll-up takes only its namespaces, and cluster objects as those of `default`', () => {
    const store = aStore({
      a: [aRow('a', 'x'), aRow('a', 'y', 1, { namespace: 'b' }), aRow('a', 'node', 1, { namespace: '' })],
    })
    const of = (...namespaces: string[]) =>
      [...compose(store, { ...all('a'), namespaces: new Set(namespaces) }).rows()].map(({ name }) => name)
    expect(of('b')).toEqual(['y'])
    expect(of('default')).toEqual(['node'])
    expect(of('team-a', 'b')).toEqual(['y', 'x'])
  })

  it('with one row for each object takes the first by target, whoever came first', () => {
    const rows = { b: [aRow('b', 'x', 'of b')], a: [aRow('a', 'x', 'of a')] }
    const store = aStore(rows)
    const snapshot = compose(store, { ...all('a', 'b'), onceEach: true })
    expect([...snapshot.rows()].map(({ attributes }) => attributes.value)).toEqual(['of a'])
    expect(snapshot.itemCount).toBe(1)
    expect(changesSince(store, { ...all('a', 'b'), onceEach: true }, snapshot, given(snapshot))).toBeUndefined()
  })

  it('has the checksum of its rows alone, whatever way they took', () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(30), fc.nat(2)), { maxLength: 60 }), (puts) => {
        const store = aStore({ a: [] })
        for (const [name, value] of puts) store.target(target('a')).put([aRow('a', String(name), value)])
        store.target(target('a')).remove([aRow('a', '0')])
        const rows = [...compose(store, all('a')).rows()]
        expect(compose(store, all('a')).checksum).toBe(compose(aStore({ a: rows.reverse() }), all('a')).checksum)
        const other = aStore({ a: [...rows, aRow('a', 'more')] })
        expect(compose(other, all('a')).checksum).not.toBe(compose(store, all('a')).checksum)
      }),
    ))

  it('tells what differs from the one before, and that alone', () => {
    const store = aStore({
      a: Array.from({ length: 1000 }, (_, at) => aRow('a', String(at))),
      other: [aRow('other', 'o')],
    })
    const before = compose(store, all('a'))
    store.target(target('a')).put([aRow('a', '7', 2), aRow('a', 'new'), aRow('a', '8')])
    store.target(target('a')).remove([aRow('a', '9')])
    store.target(target('other')).remove([aRow('other', 'o')])
    const after = compose(store, all('a'))
    const changes = changesSince(store, all('a'), after, given(before))
    expect(namesOf(changes?.put)).toEqual(['7', 'new'])
    expect(changes?.removed.map(({ name }) => name)).toEqual(['9'])
  })

  it('takes nothing away while it is incomplete, and all that left once it is complete', () => {
    const store = aStore({ a: [aRow('a', 'x'), aRow('a', 'y'), aRow('a', 'z')] })
    const first = compose(store, all('a'))
    const rows = store.target(target('a'))
    rows.setComplete(false)
    rows.remove([aRow('a', 'x'), aRow('a', 'y')])
    const second = compose(store, all('a'))
    const none = changesSince(store, all('a'), second, given(first))
    expect([namesOf(none?.put), none?.removed, none?.kept]).toEqual([[], [], 2])
    rows.put([aRow('a', 'y', 2)])
    rows.setComplete(true)
    const third = compose(store, all('a'))
    const known = { ...given(second), clearedAt: first.sequence }
    const changes = changesSince(store, all('a'), third, known)
    expect(namesOf(changes?.put)).toEqual(['y'])
    expect(changes?.removed.map(({ name }) => name)).toEqual(['x'])
  })

  it('is not compared with one of other targets, nor with one too long ago', () => {
    const store = new RowStore(() => undefined, { maxDepartures: 1 })
    const rows = store.target(target('a'))
    rows.put(['x', 'y', 'z'].map((name) => aRow('a', name)))
    rows.setComplete(true)
    const before = compose(store, all('a'))
    rows.remove([aRow('a', 'x')])
    expect(changesSince(store, all('a', 'b'), compose(store, all('a', 'b')), given(before))).toBeUndefined()
    expect(changesSince(store, all('a'), compose(store, all('a')), given(before))?.removed).toHaveLength(1)
    rows.remove([aRow('a', 'y')])
    expect(changesSince(store, all('a'), compose(store, all('a')), given(before))).toBeUndefined()
  })
})
