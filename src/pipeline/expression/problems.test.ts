import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compileExpression } from './compile.ts'
import { nearest, problemText } from './problems.ts'

const shown = (text: string) =>
  compileExpression(text, { names: [{ name: 'capacity', kind: 'number' }] }).problems.map((problem) =>
    problemText(text, problem),
  )

describe('problemText', () => {
  it('shows the line with a mark under the place, and what was meant', () =>
    expect(shown('1 + capacty')).toEqual([
      [
        'error: there is no field or computed value capacty (line 1, column 5)',
        '  1 | 1 + capacty',
        '    |     ^^^^^^^',
        '  did you mean capacity ?',
      ].join('\n'),
    ]))

  it('counts lines, and shows only the one that is meant', () =>
    expect(shown('capacity +\n  foo(1)\n  + 2')).toEqual([
      'error: there is no function foo (line 2, column 3)\n  2 |   foo(1)\n    |   ^^^',
    ]))

  it('marks one character where something is missing at the end', () =>
    expect(shown('capacity +')).toEqual([
      'error: the expression ends where a value is missing (line 1, column 11)\n  1 | capacity +\n    |           ^',
    ]))

  it('counts characters, not their units', () =>
    expect(shown('"😀" @')[0]?.split('\n')).toEqual([
      'error: the character @ means nothing here (line 1, column 5)',
      '  1 | "😀" @',
      '    |     ^',
    ]))

  it('cuts long lines around the place', () => {
    const [text = ''] = shown(`${'1 + '.repeat(500)}foo + ${'1 + '.repeat(500)}1`)
    const [, line = '', mark = ''] = text.split('\n')
    expect(line.length).toBeLessThan(115)
    expect(line.slice(mark.indexOf('^'), mark.lastIndexOf('^') + 1)).toBe('foo')
  })

  it('lets no control character through to a terminal', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        for (const lines of shown(text)) expect(lines.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
      }),
      { numRuns: 2000 },
    ))

  it('takes a place that is not in the text', () =>
    expect(problemText('ab', { severity: 'error', code: 'x', message: 'odd', from: 50, to: 60 })).toBe(
      'error: odd (line 1, column 3)\n  1 | ab\n    |   ^',
    ))
})

describe('nearest', () => {
  it.each([
    ['capacty', 'capacity'],
    ['CAPACITY', 'capacity'],
    ['sued', 'used'],
    ['us', undefined],
    ['total', undefined],
    ['x'.repeat(10_000), undefined],
  ])('of %j is %s', (text, name) => expect(nearest(text, ['used', 'capacity', 'phase'])).toBe(name))
})
