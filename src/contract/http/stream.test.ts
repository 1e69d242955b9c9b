import { describe, expect, it } from 'vitest'
import { applyRows, noRows, type RowsMessage } from './stream.ts'
import { EventReader } from './stream-client.ts'
import type { FleetRowView } from './types.ts'

const row = (name: string, cluster = 'west'): FleetRowView => ({
  ...{ cluster, id: name, namespace: '', name },
  labels: {},
  values: {},
})
const first = (items: readonly FleetRowView[]): RowsMessage => ({
  kind: 'rows',
  query: 0,
  from: 0,
  items: [...items],
  total: items.length,
  isLast: true,
  now: 1,
})
const heldAfter = (...messages: readonly RowsMessage[]) => {
  const held = noRows()
  for (const message of messages) applyRows(held, message)
  return held
}

describe('what a query of rows holds', () => {
  it('has rows at the places that puts name, once everything that moves was taken out', () => {
    const { rows, total } = heldAfter(first(['a', 'b', 'c', 'd'].map((name) => row(name))), {
      kind: 'rowsChange',
      query: 0,
      changes: [
        { op: 'remove', cluster: 'west', id: 'b' },
        { op: 'put', row: row('d'), at: 0 },
        { op: 'put', row: row('e'), at: 2 },
      ],
      total: 9,
      now: 2,
    })
    expect([...rows.values()].map(({ name }) => name)).toEqual(['d', 'a', 'e', 'c'])
    expect(total).toBe(9)
  })

  it('knows which rows that left are nowhere any more, the latest thousand, until they come again or it begins anew', () => {
    const removed = (...ids: readonly string[]): RowsMessage => ({
      kind: 'rowsChange',
      query: 0,
      changes: ids.map((id) => ({ op: 'remove', cluster: 'west', id, gone: true })),
      total: 1,
      now: 5,
    })
    const put: RowsMessage = { ...removed(), changes: [{ op: 'put', row: row('b'), at: 0 }] } as RowsMessage
    const pushedOut: RowsMessage = {
      ...removed(),
      changes: [{ op: 'remove', cluster: 'west', id: 'c' }],
    } as RowsMessage
    const before = [first(['a', 'b', 'c'].map((name) => row(name))), removed('a', 'b'), pushedOut]
    expect([...heldAfter(...before).gone.values()]).toEqual([
      { cluster: 'west', id: 'a', at: 5 },
      { cluster: 'west', id: 'b', at: 5 },
    ])
    expect([...heldAfter(...before, put).gone.keys()]).toEqual(['west/a'])
    expect(heldAfter(...before, first([])).gone.size).toBe(0)
    const many = Array.from({ length: 1200 }, (_, at) => `r${at}`)
    expect([...heldAfter(...before, removed(...many)).gone.keys()][0]).toBe('west/r200')
  })

  it('forgets one cluster, all of it with a new beginning, and says why it ended', () => {
    const begun = [row('a'), row('a', 'east')]
    const clear: RowsMessage = {
      kind: 'rowsChange',
      query: 0,
      changes: [{ op: 'clear', cluster: 'west' }],
      total: 1,
      now: 2,
    }
    expect([...heldAfter(first(begun), clear).rows.keys()]).toEqual(['east/a'])
    expect([...heldAfter(first(begun), first([row('z')])).rows.keys()]).toEqual(['west/z'])
    const ended = heldAfter(first(begun), { kind: 'rowsEnd', query: 0, code: 'type_not_found', reason: 'no such type' })
    expect([ended.rows.size, ended.ended?.code]).toEqual([0, 'type_not_found'])
  })
})

describe('server-sent events', () => {
  it('are read however they are cut, comments and fields without data passed over', () => {
    const text =
      'retry: 2000\n\n: hello\n\nid: x\nevent: heartbeat\ndata: {"now":1}\n\nevent: synced\ndata: {"now":2}\n\n'
    for (let at = 0; at <= text.length; at++) {
      const events = new EventReader()
      const read = [...events.take(text.slice(0, at)), ...events.take(text.slice(at))]
      expect(read).toEqual([
        { kind: 'heartbeat', id: 'x', now: 1 },
        { kind: 'synced', now: 2 },
      ])
    }
  })
})
