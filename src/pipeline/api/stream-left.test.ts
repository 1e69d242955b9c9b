import { describe, expect, it } from 'vitest'
import { type Fate, LeftRows } from './stream-left.ts'
import type { WindowRow } from './stream-window.ts'

const row = (name: string): WindowRow => ({
  ...{ key: `west/${name}`, id: name, cluster: 'west', namespace: '', name, value: null },
  json: `{"id":"${name}"}`,
})
const fates =
  (of: Readonly<Record<string, string>>): Fate =>
  (key) => {
    const now = of[key.slice('west/'.length)]
    return now === undefined || now === 'gone' ? now : { json: now }
  }
const removed = (...names: readonly string[]) => ({ removed: names.map(row), put: new Set<string>(), puts: [] })
const none = removed()
const shown = (name: string) => ({ removed: [], put: new Set([`west/${name}`]), puts: ['put'] })

describe('rows that left a window', () => {
  it('are told again when they change, go or come again elsewhere, and no more where they are shown', () => {
    const left = new LeftRows()
    const told = (texts: readonly string[]) => texts.map((text) => (text === 'put' ? text : JSON.parse(text)))
    const a = { op: 'remove', cluster: 'west', id: 'a' }
    expect(told(left.take(removed('a', 'b'), fates({ a: '{"x":1}' })))).toEqual([
      { ...a, row: { x: 1 } },
      { ...a, id: 'b' },
    ])
    expect(left.take(none, fates({}))).toEqual([])
    expect(told(left.take(none, fates({ a: '{"x":2}', c: 'gone' })))).toEqual([{ ...a, row: { x: 2 } }])
    expect(told(left.take(none, fates({ a: 'gone' })))).toEqual([{ ...a, gone: true }])
    expect(told(left.take(none, fates({ a: '{"x":3}' })))).toEqual([{ ...a, row: { x: 3 } }])
    // Who comes from a moment ago is told the same.
    expect(told(left.texts(none, fates({ a: '{"x":3}' })))).toEqual([{ ...a, row: { x: 3 } }])
    expect(told(left.take(shown('a'), fates({ a: '{"x":4}' })))).toEqual(['put'])
    expect(left.take(none, fates({ a: 'gone' }))).toEqual([])
  })

  it('are told of as well where somebody asked for them, as long as they are not shown', () => {
    const asked = [row('a'), row('b'), row('c')]
    const left = new LeftRows(asked, [row('c')])
    const told = (texts: readonly string[]) => texts.map((text) => (text === 'put' ? text : JSON.parse(text)))
    const a = { op: 'remove', cluster: 'west', id: 'a' }
    expect(told(left.asked(fates({ a: '{"x":1}', b: 'gone', c: '{"x":1}' })))).toEqual([
      { ...a, row: { x: 1 } },
      { ...a, id: 'b', gone: true },
    ])
    expect(told(left.take(none, fates({ b: '{"x":2}', c: '{"x":2}' })))).toEqual([{ ...a, id: 'b', row: { x: 2 } }])
    expect(told(left.take(shown('a'), fates({ a: '{"x":3}' })))).toEqual(['put'])
    // However many leave after them.
    left.take(removed('a', 'c', ...Array.from({ length: 150 }, (_, at) => `p${at}`)), fates({}))
    expect(told(left.asked(() => 'gone')).map(({ id }) => id)).toEqual(['b', 'a', 'c'])
    expect(left.take(none, () => 'gone')).toHaveLength(103)
  })

  it('are a hundred at most', () => {
    const left = new LeftRows()
    left.take(removed(...Array.from({ length: 150 }, (_, at) => `p${at}`)), fates({}))
    const told = left.take(none, () => 'gone').map((text) => JSON.parse(text).id)
    expect([told.length, told[0]]).toEqual([100, 'p50'])
  })
})
