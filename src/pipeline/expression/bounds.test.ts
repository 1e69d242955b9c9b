import { describe, expect, it } from 'vitest'
import { compileExpression } from './compile.ts'
import { leastMs } from './testing/stopwatch.ts'
import type { Value } from './types.ts'

const MIB = 2 ** 20
const NAMES = [
  { name: 'a', kind: 'string' },
  { name: 'b', kind: 'string' },
  { name: 'n', kind: 'number' },
] as const

/** The value, whether it was told to be beyond its bounds, and how long it took. */
function evaluated(text: string, slots: readonly Value[], tries = 1): { value: Value; exceeded: boolean; ms: number } {
  const { expression, problems } = compileExpression(text, { names: NAMES })
  if (!expression) throw new Error(JSON.stringify(problems))
  let [value, exceeded]: [Value, boolean] = [null, false]
  const context = { now: 0, exceeded: () => (exceeded = true) }
  const ms = leastMs(() => (value = expression.evaluate(slots, context)), 10, tries)
  return { value, exceeded, ms }
}

describe('bounds of one evaluation', () => {
  it('a text of 1 MiB is made, one more unit is not', () => {
    const half = 'x'.repeat(MIB / 2)
    expect(evaluated('a + a', [half])).toMatchObject({ value: 'x'.repeat(MIB), exceeded: false })
    expect(evaluated('concat(a, b, a)', [half, 'y'])).toMatchObject({ value: null, exceeded: true })
    expect(evaluated('a + b + a', [half, 'y'])).toMatchObject({ value: null, exceeded: true })
    expect(evaluated('concat(a, a, a) ?? "lost"', [half])).toMatchObject({ value: null, exceeded: true })
    expect(evaluated('if(len(a + a + a) > 0, 1, 2)', [half])).toMatchObject({ value: null, exceeded: true })
  })

  it('a text that is only passed on may have any length', () => {
    const long = 'x'.repeat(3 * MIB)
    expect(evaluated('a ?? "-"', [long])).toMatchObject({ value: long, exceeded: false })
    expect(evaluated('upper(a)', [long])).toMatchObject({ value: null, exceeded: true })
  })

  it('many costly steps on long texts end the evaluation', () => {
    const sum = Array(1000).fill('len(a)').join(' + ')
    expect(evaluated(sum, ['x'.repeat(100)])).toMatchObject({ value: 100_000, exceeded: false })
    expect(evaluated(sum, ['x'.repeat(MIB)])).toMatchObject({ value: null, exceeded: true })
  })

  it('each evaluation begins anew', () => {
    const { expression } = compileExpression('upper(a)', { names: NAMES })
    let exceeded = 0
    const context = { now: 0, exceeded: () => exceeded++ }
    expect(expression?.evaluate(['x'.repeat(3 * MIB)], context)).toBeNull()
    expect(expression?.evaluate(['x'], context)).toBe('X')
    expect(exceeded).toBe(1)
  })

  const ascii = 'a'.repeat(MIB)
  const other = `${'a'.repeat(MIB - 1)}b`
  const texts: readonly (readonly [string, string, string])[] = [
    ['ASCII', ascii, other],
    ['two bytes', 'é'.repeat(MIB), `${'é'.repeat(MIB - 1)}b`],
    ['beyond the first plane', '😀'.repeat(MIB / 2), `${'😀'.repeat(MIB / 2 - 1)}bb`],
    ['letters that become many', 'ßa'.repeat(MIB / 2), `${'ßa'.repeat(MIB / 2 - 1)}bb`],
    ['capital Greek', 'Σİ'.repeat(MIB / 2), `${'Σİ'.repeat(MIB / 2 - 1)}bb`],
    ['letters of the second plane', '𐐨ß'.repeat(349_525), `${'𐐨ß'.repeat(349_524)}bbb`],
    ['digits', '9'.repeat(MIB), `${'9'.repeat(MIB - 1)}x`],
    ['a part that almost fits everywhere', ascii, `b${'a'.repeat(MIB / 2)}`],
    ['a part that fits late', ascii, `${'a'.repeat(MIB / 2)}b`],
    ['a short part that almost fits everywhere', ascii, `b${'a'.repeat(199)}`],
  ]
  const long = (term: string) => Array(Math.floor(16_000 / (term.length + 8))).fill(term)
  const expressions = [
    ...[
      'lower(a)',
      'upper(a)',
      'len(a)',
      'substr(a, 500000, 400000)',
      'a == b',
      'a < b',
      'a * 1',
      'a == 5',
      'toNumber(a)',
      'age(a)',
    ],
    ...[
      'contains(a, b)',
      'startsWith(a, b)',
      'endsWith(a, b)',
      'contains(b, a)',
      'round(a)',
      'formatBytes(a)',
      'a + 1',
      'n == a',
    ],
    ...[
      'len(a)',
      'len(upper(a))',
      'contains(a, b)',
      'len(lower(a))',
      'len(substr(a, n))',
      '(a - n)',
      'len(formatBytes(n))',
      'len(a + 1)',
    ].map((term) => long(term).join(' + ')),
    ...[
      'a == b',
      'a < b',
      'endsWith(a, b)',
      'startsWith(a, b)',
      'contains(b, a)',
      'a == 5',
      'upper(a) == lower(b)',
    ].map((term) => long(`!(${term})`).join(' == ')),
    `concat(${long('n').join(', ')})`,
    long('n').join(' + "" + '),
    long('round(n, 20)').join(' + '),
  ]

  it.each(texts)('1 MiB of %s take at most 10 ms, whatever is done with them', (_, a, b) => {
    for (const text of expressions) {
      const { ms } = evaluated(text, [a, b, 1.7976931348623157e308], 12)
      expect(ms, `${text.slice(0, 60)} … ${text.length}`).toBeLessThan(10)
    }
  })
})
