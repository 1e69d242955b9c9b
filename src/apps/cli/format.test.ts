import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { age, print, share, table } from './format.ts'
import { printable } from './terminal.ts'

describe('table', () => {
  it('aligns columns and shows a dash for what is not known', () => {
    const columns = [
      { header: 'NAME', value: (row: { n: string; v: string | null }) => row.n },
      { header: 'VERSION', value: (row: { n: string; v: string | null }) => row.v },
    ]
    expect(
      table(columns, [
        { n: 'east', v: 'v1.30.1' },
        { n: 'prod-west', v: null },
      ]),
    ).toBe('NAME        VERSION\neast        v1.30.1\nprod-west   -')
    expect(table(columns, [])).toBe('NAME   VERSION')
  })
})

const UNSAFE = /[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/u

describe('printable', () => {
  it('lets no control character of a cluster reach the terminal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(text)).not.toMatch(UNSAFE)
      }),
    )
    expect(printable('\u001b[31mred\u001b[0m')).toBe('[31mred [0m')
  })
})

describe('print', () => {
  const rows = [{ name: 'east', nodes: 3 }]
  it.each(['json', 'yaml'] as const)('prints whole rows as %s', (format) => {
    expect(print(format, [], rows)).toContain('east')
  })

  it.each([
    ['json', (text: string): unknown => JSON.parse(text)],
    ['yaml', (text: string): unknown => parse(text)],
  ] as const)('escapes in %s what would reach the terminal as a command, and says the same', (format, read) => {
    const hostile = fc.string({
      unit: fc.constantFrom('\u001b', '\u009b', '\u0007', '\u202e', '\u2028', '\n', '"', 'a', ' '),
    })
    fc.assert(
      fc.property(fc.array(fc.record({ name: hostile, labels: fc.dictionary(hostile, hostile) })), (rows) => {
        const text = print(format, [], rows)
        expect(text.replaceAll('\n', '')).not.toMatch(UNSAFE)
        expect(JSON.stringify(read(text))).toEqual(JSON.stringify(rows))
      }),
    )
  })
})

it.each([
  [0, '0s'],
  [119_000, '119s'],
  [120_000, '2m'],
  [7_200_000, '2h'],
  [200_000_000, '2d'],
  [-5, '0s'],
])('says the age %d as %s', (ms, text) => expect(age(ms)).toBe(text))

it('gives no share of an amount that is not known', () => {
  expect(share(1, 4)).toBe('25%')
  expect(share(null, 4)).toBeNull()
  expect(share(1, 0)).toBeNull()
})
