import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import { nextLink, parseChallenges } from './header.ts'

const read = (...lines: string[]) =>
  parseChallenges(lines).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)])

describe('challenges', () => {
  it.each<[string, string[], unknown[]]>([
    [
      'of a token service',
      ['Bearer realm="https://auth.example/token",service="registry.example",scope="registry:catalog:*"'],
      [['bearer', { realm: 'https://auth.example/token', service: 'registry.example', scope: 'registry:catalog:*' }]],
    ],
    ['with spaces and bare values', ['BEARER  realm = "a" , service=b'], [['bearer', { realm: 'a', service: 'b' }]]],
    ['with a comma and a quote in a value', ['Basic realm="a, \\"b\\""'], [['basic', { realm: 'a, "b"' }]]],
    ['without parameters', ['Basic'], [['basic', {}]]],
    [
      'several in one line',
      ['Negotiate, Basic realm="x", Bearer realm="y"'],
      [
        ['negotiate', {}],
        ['basic', { realm: 'x' }],
        ['bearer', { realm: 'y' }],
      ],
    ],
    [
      'with a single value',
      ['Negotiate YWJj==, Basic realm="x"'],
      [
        ['negotiate', {}],
        ['basic', { realm: 'x' }],
      ],
    ],
    [
      'in several lines',
      ['Basic realm="x"', 'Bearer realm="y"'],
      [
        ['basic', { realm: 'x' }],
        ['bearer', { realm: 'y' }],
      ],
    ],
    ['with one name twice', ['Bearer realm="first", realm="second"'], [['bearer', { realm: 'first' }]]],
    ['that are empty', ['', ' , '], []],
    [
      'that are cut',
      ['Bearer realm="never ends'],
      [
        ['bearer', {}],
        ['realm', {}],
      ],
    ],
  ])('%s', (_, lines, found) => expect(read(...lines).slice(0, found.length)).toEqual(found))

  const token = fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,10}$/)
  const parameters = fc.dictionary(
    token.map((name) => name.toLowerCase()),
    fc.string({ unit: 'grapheme-ascii' }).filter((text) => !/[\r\n]/.test(text)),
    { minKeys: 1, maxKeys: 4 },
  )
  const quoted = (text: string) => `"${text.replace(/["\\]/g, '\\$&')}"`

  it('are read as they were written, whatever their values hold', () =>
    fc.assert(
      fc.property(fc.array(fc.tuple(token, parameters), { minLength: 1, maxLength: 3 }), (challenges) => {
        const line = challenges
          .map(
            ([scheme, given]) =>
              `${scheme} ${Object.entries(given)
                .map(([name, value]) => `${name}=${quoted(value)}`)
                .join(', ')}`,
          )
          .join(', ')
        expect(read(line)).toEqual(challenges.map(([scheme, given]) => [scheme.toLowerCase(), { ...given }]))
      }),
    ))

  it('of any text are read within a moment', () =>
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), fc.integer({ min: 1, max: 200 }), (text, times) => {
        const began = process.cpuUsage()
        parseChallenges([text.repeat(times)])
        nextLink([text.repeat(times)])
        expect(cpuMs(began)).toBeLessThan(200)
      }),
    ))

  it.each(['"', '\\', ' ', ',', '=', '<', '>', ';', '<>;', '<a>;"', ';rel="'])(
    'of nothing but %j in great number are read within a moment',
    (text) => {
      const began = process.cpuUsage()
      parseChallenges([`Bearer a="${text.repeat(32_768)}`, text.repeat(32_768)])
      nextLink([`<a>${text.repeat(32_768)}`, text.repeat(32_768)])
      expect(cpuMs(began)).toBeLessThan(500)
    },
  )
})

describe('the next page', () => {
  it.each([
    ['</v2/_catalog?last=b&n=2>; rel="next"', '/v2/_catalog?last=b&n=2'],
    ['<https://r.example/v2/_catalog?last=b>; rel=next', 'https://r.example/v2/_catalog?last=b'],
    ['</first>; rel="first", </next>; rel="next"; title="a, b; c"', '/next'],
    ['</next>; title="rel=\\"no\\""; rel="last next"', '/next'],
    ['</a;b,c>; rel="next"', '/a;b,c'],
    ['</x>;REL=Next', '/x'],
    ['< /spaces > ; rel="next"', '/spaces'],
  ])('of %s is %s', (line, address) => expect(nextLink([line])).toBe(address))

  it.each([
    '',
    '</x>',
    '</x>; rel="prev"',
    '</x>; rel="nextish"',
    '</x>; title="rel=next"',
    'rel="next"',
    '</x; rel="next"',
  ])('is not there in %j', (line) => expect(nextLink([line])).toBeUndefined())

  it('is found in any of the lines', () => expect(nextLink(['</a>; rel="prev"', '</b>; rel="next"'])).toBe('/b'))
})
