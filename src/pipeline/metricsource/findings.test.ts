import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { printFinding, suggestionFor } from './findings.ts'

const finding = {
  severity: 'error',
  code: 'expression_unknown_name',
  path: 'spec.computed[0].expression',
  message: 'no such name',
} as const

describe('a finding for people', () => {
  it('shows the line, the place and what was meant', () =>
    expect(printFinding({ ...finding, at: { text: 'round(usd, 2)', from: 6, to: 9 }, suggestion: 'used' })).toBe(
      [
        'error: spec.computed[0].expression: no such name [expression_unknown_name]',
        '  round(usd, 2)',
        '        ^^^',
        '  did you mean used?',
      ].join('\n'),
    ))

  it('is one line without a place', () =>
    expect(printFinding(finding)).toBe('error: spec.computed[0].expression: no such name [expression_unknown_name]'))

  it('shows the right one of several lines, and says which', () =>
    expect(
      printFinding({ ...finding, at: { text: 'a +\n\tb +\nc', from: 5, to: 6 } })
        .split('\n')
        .slice(1),
    ).toEqual(['  line 2: \tb +', '          \t^']))

  it('shows a part of a long line', () => {
    const [, line, carets] = printFinding({
      ...finding,
      at: { text: `${'x'.repeat(5000)}!${'y'.repeat(5000)}`, from: 5000, to: 5001 },
    }).split('\n')
    expect(line?.length).toBeLessThan(110)
    expect(line?.[carets?.indexOf('^') ?? -1]).toBe('!')
    expect(line).toMatch(/^ {2}….*…$/)
  })

  it('points at something wherever the place is, and never throws', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', '\n', '\t', 'é', '𝄞'), maxLength: 300 }),
        fc.nat(300),
        fc.nat(300),
        (text, a, b) => {
          const [from, to] = [Math.min(a, b, text.length), Math.min(Math.max(a, b), text.length)]
          expect(printFinding({ ...finding, at: { text, from, to } })).toContain('^')
        },
      ),
    ))
})

describe('a suggestion', () => {
  it.each([
    ['usd', ['used', 'capacity'], 'used'],
    ['Used', ['used'], 'used'],
    ['capcaity', ['used', 'capacity'], 'capacity'],
    ['x', ['used', 'capacity'], undefined],
    ['something', ['used'], undefined],
    ['storageclass', ['storageClass'], 'storageClass'],
  ])('for %s of %j is %s', (text, names, suggestion) => expect(suggestionFor(text, names).suggestion).toBe(suggestion))
})
