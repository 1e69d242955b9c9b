import { describe, expect, it } from 'vitest'
import { type JsonValue, Table } from '#model'
import { movedRows } from './moved-rows.ts'

const table = (rows: Readonly<Record<string, JsonValue>>) =>
  Table.of(
    ['value'],
    Object.entries(rows).map(([name, value]) => ({ namespace: 'a', name, labels: {}, values: { value } })),
  )
const said = (one: Table) => [...one.rows()].map(({ name, values }) => `${name}=${values.value}`)

describe('rows that moved between two moments', () => {
  it('are those that changed, came and went, as they were and as they are', () => {
    const { before, now } = movedRows(
      { rows: table({ a: 1, b: 1, c: 1 }), measured: Table.empty },
      { rows: table({ a: 1, b: 2, d: 1 }), measured: Table.empty },
    )
    expect([said(before), said(now)]).toEqual([
      ['b=1', 'c=1'],
      ['b=2', 'd=1'],
    ])
  })

  it('are also those whose measurements moved, each once', () => {
    const rows = table({ a: 1, b: 1, c: 1 })
    const { before, now } = movedRows(
      { rows, measured: table({ a: 10, b: 10, gone: 1 }) },
      { rows: rows.patch(table({ b: 2 }), []), measured: table({ a: 11, b: 11 }) },
    )
    expect([said(before), said(now)]).toEqual([
      ['a=1', 'b=1'],
      ['a=1', 'b=2'],
    ])
  })
})
