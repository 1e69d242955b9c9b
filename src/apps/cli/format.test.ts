import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { age, print, printable, share, table } from './format.ts'

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

describe('printable', () => {
  it('lets no control character of a cluster reach the terminal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: that is the promise
        expect(printable(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
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
