import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arrange, groupLines } from './arrange.ts'
import { compileFilter } from './filter.ts'

interface Row {
  name: string
  size: number | null
}
const everything = compileFilter<Row>('', { fields: {}, words: ({ name }) => name })
const bySize = (rows: Row[], descending = false) =>
  arrange(rows, { filter: everything, sortValue: ({ size }) => size, descending, name: ({ name }) => name }).map(
    ({ name }) => name,
  )

describe('arrange', () => {
  it('puts node-2 before node-10, and unknown values last in both directions', () => {
    const rows = [
      { name: 'node-10', size: 1 },
      { name: 'node-2', size: 1 },
      { name: 'lost', size: null },
      { name: 'big', size: 7 },
    ]
    expect(bySize(rows)).toEqual(['node-2', 'node-10', 'big', 'lost'])
    expect(bySize(rows, true)).toEqual(['big', 'node-2', 'node-10', 'lost'])
  })

  it('gives one order, whatever order the rows arrive in', () =>
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.record({ name: fc.stringMatching(/^[a-z]{1,4}[0-9]{0,3}$/), size: fc.option(fc.nat(5)) }), {
          selector: ({ name }) => `${name.toLowerCase().replace(/\d+/, (digits) => String(Number(digits)))}`,
        }),
        (rows) => {
          expect(bySize(rows.toReversed())).toEqual(bySize(rows))
        },
      ),
    ))

  it('filters and sorts 100 000 rows within a blink', () => {
    const rows = Array.from({ length: 100_000 }, (_, index) => ({
      name: `node-${(index * 7919) % 100_000}`,
      size: index % 97,
    }))
    const filter = compileFilter<Row>('size>10', {
      fields: { size: { kind: 'number', read: ({ size }) => size } },
      words: ({ name }) => name,
    })
    const run = () =>
      arrange(rows, { filter, sortValue: ({ size }) => size, descending: true, name: ({ name }) => name })
    run()
    // Time of the processor, not of the wall: other work on the machine does not count.
    const times = Array.from({ length: 5 }, () => {
      const before = process.cpuUsage()
      run()
      return process.cpuUsage(before).user / 1000
    })
    // The bar is 100 ms on an idle machine; the margin is for a slow one.
    expect(Math.min(...times)).toBeLessThan(400)
  })
})

describe('groupLines', () => {
  it('orders groups by their first row and keeps every row once', () => {
    const rows = ['b1', 'a1', 'b2', 'a2']
    const lines = groupLines(
      rows,
      (row) => row,
      (row) => row[0] ?? '',
    )
    const all = lines.slice(0, lines.length)
    expect(all.map((line) => (line.kind === 'group' ? `[${line.group} ${line.rows.length}]` : line.row))).toEqual([
      '[b 2]',
      'b1',
      'b2',
      '[a 2]',
      'a1',
      'a2',
    ])
  })

  it('makes lines of rows without groups as they are looked at, as if all were there', () => {
    const lines = groupLines(['a', 'b', 'c'], (row) => row)
    expect(lines.length).toBe(3)
    expect(lines.slice(1, 9)).toEqual([
      { kind: 'row', key: 'b', row: 'b', index: 1 },
      { kind: 'row', key: 'c', row: 'c', index: 2 },
    ])
  })
})
