import fc from 'fast-check'
import { RE2JS } from 're2js'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import { documentPattern, isWildcard, maxRegexLength, re2, storedPattern, wildcard } from './pattern.ts'

/** What "*" and "?" mean, written for reading: every way is tried, and what was tried is remembered. */
function naive(pattern: string, text: string): boolean {
  const [p, t] = [[...pattern], [...text]]
  const known = new Map<number, boolean>()
  const from = (i: number, j: number): boolean => {
    const key = i * (t.length + 1) + j
    const before = known.get(key)
    if (before !== undefined) return before
    const here = t[j]
    const result =
      i === p.length
        ? j === t.length
        : p[i] === '*'
          ? from(i + 1, j) || (here !== undefined && here !== '\n' && from(i, j + 1))
          : here !== undefined && (p[i] === '?' ? here !== '\n' : p[i] === here) && from(i + 1, j + 1)
    known.set(key, result)
    return result
  }
  return from(0, 0)
}

const letters = fc.constantFrom('a', 'b', '*', '?', '\n', '.', '😀', 'é', '\ud83d', '\ude00', '|', '(')
const patterns = fc.array(letters, { maxLength: 12 }).map((all) => all.join(''))
const texts = fc
  .array(fc.constantFrom('a', 'b', '\n', '.', '😀', '\ud83d', '\ude00', '*', '|'), { maxLength: 14 })
  .map((all) => all.join(''))

describe('wildcard', () => {
  it.each([
    ['app-*', 'app-1', true],
    ['app-*', 'app-', true],
    ['app-*', 'my-app-1', false],
    ['app-*', 'App-1', false],
    ['*', '', true],
    ['**', 'anything', true],
    ['', '', true],
    ['', 'a', false],
    ['a', 'a', true],
    ['w-?', 'w-1', true],
    ['w-?', 'w-', false],
    ['w-?', 'w-12', false],
    ['w-?', 'w-😀', true],
    ['ab*ba', 'aba', false],
    ['ab*ba', 'abba', true],
    ['*-tmp-*', 'x-tmp-y', true],
    ['*-tmp-*', 'x-temp-y', false],
    ['a.c*', 'abcd', false],
    ['a|b*', 'a|b', true],
    ['a|b*', 'bx', false],
    ['[ab]*', 'a', false],
    ['a*', 'a\nb', false],
    ['a?b', 'a\nb', false],
    ['a\n*', 'a\nb', true],
  ])('%j on %j: %s', (pattern, text, expected) => expect(wildcard(pattern)(text)).toBe(expected))

  it('answers as trying every way does', () => {
    fc.assert(
      fc.property(patterns, texts, (pattern, text) => wildcard(pattern)(text) === naive(pattern, text)),
      { numRuns: 5000 },
    )
  })

  it('finds any text in which stars and marks were put for parts of it', () => {
    const parts = fc.array(
      fc.tuple(fc.constantFrom('keep', 'star', 'mark'), fc.string({ unit: 'grapheme', maxLength: 4 })),
    )
    fc.assert(
      fc.property(parts, (all) => {
        const lines = all.map(([how, text]) => [how, text.replaceAll('\n', '')] as const)
        const text = lines.map(([, part]) => part).join('')
        const pattern = lines
          .map(([how, part]) => (how === 'keep' ? part : how === 'star' ? '*' : '?'.repeat([...part].length)))
          .join('')
        return wildcard(pattern)(text)
      }),
    )
  })

  it('stays linear where trying every way explodes', () => {
    const text = `${'a'.repeat(200_000)}b`
    const started = process.cpuUsage()
    expect(wildcard(`${'a*'.repeat(500)}c`)(text)).toBe(false)
    expect(wildcard('*a?a*'.repeat(200))(text)).toBe(true)
    expect(wildcard(`*${'?*'.repeat(400)}c`)(text)).toBe(false)
    expect(wildcard(`*${'a'.repeat(20)}?c*`)(text)).toBe(false)
    expect(cpuMs(started)).toBeLessThan(2000)
  })

  it('takes a text with a star or a mark for a pattern, and no other', () => {
    expect(['a*', '?', 'a.b', '', '[a]'].map(isWildcard)).toEqual([true, true, false, false, false])
  })
})

describe('re2', () => {
  it.each([
    ['prod', 'nonprod-1', true],
    ['^prod-', 'nonprod-1', false],
    ['^prod-.*$', 'prod-east', true],
    ['(?i)PROD', 'prod', true],
    ['', 'anything', true],
    ['^a.c$', 'a\nc', false],
  ])('finds %j in %j: %s', (text, value, expected) => expect(re2(text).matches?.(value)).toBe(expected))

  it.each([
    ['^ab?c', 'ac', true],
    ['^ab*', 'a', true],
    ['^ab{0,1}', 'a', true],
    ['^ab+', 'a', false],
    ['^a|b', 'xb', true],
    ['^(a|b)', 'b', true],
    ['^x(a|b)?', 'x', true],
    ['^x(a|b*)', 'x', true],
    ['^x(?:a|(b|c)d)', 'xcd', true],
    ['^x(?i:a|b)', 'xB', true],
    ['^x(a|b)', 'xc', false],
    ['^a\\Q[\\E|b', 'xb', true],
    ['^(a[]|b]c)', 'a]c', true],
    ['^a\\|b', 'a|b', true],
    ['^(?i)a', 'A', true],
    ['^a(?i)b', 'aB', true],
    ['^ü', 'ü', true],
    ['^', '', true],
    ['^a-b_1.', 'a-b_1x', true],
  ])('takes no short cut past %j on %j: %s', (text, value, expected) =>
    expect(re2(text).matches?.(value)).toBe(expected),
  )

  it('answers as the engine does, whatever it begins with', () => {
    const parts = fc.array(
      fc.constantFrom(
        '^',
        'a',
        'b',
        '-',
        '?',
        '*',
        '+',
        '|',
        '(',
        ')',
        '[',
        ']',
        '\\',
        '{2}',
        '{0,1}',
        '\\Q',
        '\\E',
        '(?:',
        '.',
        '$',
      ),
      { maxLength: 8 },
    )
    fc.assert(
      fc.property(parts, fc.string({ unit: fc.constantFrom('a', 'b', '-'), maxLength: 4 }), (pattern, value) => {
        const text = `^${pattern.join('')}`
        const { matches } = re2(text)
        if (matches) expect(matches(value)).toBe(RE2JS.compile(text).test(value))
      }),
      { numRuns: 3000 },
    )
  })

  it.each(['[invalid', '(?=a)', '(a)\\1', 'a{1001}', '(', '*a', '\\8', '(?<=a)b'])('returns a fault for %j', (text) => {
    const { fault, matches } = re2(text)
    expect(matches).toBeUndefined()
    expect(fault).toMatch(/\w/)
  })

  it('counts the length in characters, and for the original in bytes', () => {
    expect(re2('ü'.repeat(maxRegexLength)).fault).toBeUndefined()
    expect(re2('ü'.repeat(maxRegexLength + 1)).fault).toBe('it has 257 characters and may have 256')
    expect(re2('ü'.repeat(200), 'original').fault).toBe('it has 400 bytes and may have 256')
  })

  it.each(['(a+)+$', '(a|a?)*$', '(a*)*b', '(.*a){20}', '([a-z]+)*!'])('stays linear on %j', (text) => {
    const { matches } = re2(text)
    const started = process.cpuUsage()
    matches?.(`${'a'.repeat(20_000)}!x`)
    expect(cpuMs(started)).toBeLessThan(2000)
  })

  it('never throws, whatever it is given', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (text, value) => {
        const { fault, matches } = re2(text)
        expect(fault === undefined).toBe(typeof matches?.(value) === 'boolean')
      }),
    )
  })
})

describe('patterns as stored', () => {
  it('escapes everything that is no wildcard', () => {
    expect(documentPattern('app-*')).toEqual(['app-*', '^app-.*$'])
    expect(documentPattern('a.b|(c)?')).toEqual(['a.b|(c)?', '^a\\.b\\|\\(c\\).$'])
  })

  it('mean the same as a wildcard and as the expression beside it', () => {
    const wellFormed = fc.array(
      fc.constantFrom('a', '*', '?', '\n', '.', '|', '(', '\\', '^', '$', '😀', '+', '[', '{'),
    )
    fc.assert(
      fc.property(wellFormed, wellFormed, (pattern, value) => {
        const pair = documentPattern(pattern.join(''))
        const text = value.join('')
        const expected = naive(pair[0], text)
        expect(storedPattern(pair, 'strict', 'allowed').matches?.(text)).toBe(expected)
        expect(storedPattern(pair, 'strict', 'denied').matches?.(text)).toBe(expected)
        expect(storedPattern(pair, 'original', 'denied').matches?.(text)).toBe(expected)
      }),
    )
  })

  it('keeps what the original let through for the original, and only for it', () => {
    const leaky = ['dev|prod*', '^dev|prod.*$'] as const
    expect(storedPattern(leaky, 'original', 'allowed').matches?.('development')).toBe(true)
    expect(storedPattern(leaky, 'strict', 'allowed').matches?.('development')).toBe(false)
    expect(storedPattern(leaky, 'strict', 'allowed').matches?.('dev|prod-1')).toBe(true)
  })

  it('denies what either reading of an original pair denies, and allows what both allow', () => {
    const pair = ['(prod|stage)-*', '^(prod|stage)-.*$'] as const
    const is = (list: 'allowed' | 'denied', text: string) => storedPattern(pair, 'strict', list).matches?.(text)
    expect(['prod-1', 'stage-', '(prod|stage)-1', 'dev-1'].map((text) => is('denied', text))).toEqual([
      true,
      true,
      true,
      false,
    ])
    expect(['prod-1', '(prod|stage)-1', 'dev-1'].map((text) => is('allowed', text))).toEqual([false, false, false])
  })

  it.each([
    ['an expression that cannot be read', ['a(*', '^a(.*$']],
    ['an expression that says something else', ['app-*', '^app-[0-9]+$']],
  ] as const)('reports %s', (_, pair) => {
    expect(storedPattern(pair, 'strict', 'denied').fault).toMatch(/\w/)
  })

  it('reports to the original only what it cannot read', () => {
    expect(storedPattern(['a(*', '^a(.*$'], 'original', 'denied').fault).toMatch(/missing closing/)
    expect(storedPattern(['app-*', '^app-[0-9]+$'], 'original', 'denied').matches?.('app-7')).toBe(true)
  })
})
