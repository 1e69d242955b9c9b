import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../test/cpu.ts'
import { chooseNamespaces, wildcard } from './namespaces.ts'

/** The same by regular expression, for short texts. */
const plainly = (pattern: string) =>
  new RegExp(
    `^${pattern
      .replace(/[\\^$.|+()[\]{}]/g, '\\$&')
      .replaceAll('*', '.*')
      .replaceAll('?', '.')}$`,
    's',
  )

describe('a pattern of namespaces', () => {
  it.each([
    ['team-*', 'team-', true],
    ['team-*', 'team-a', true],
    ['team-*', 'team', false],
    ['team-?', 'team-a', true],
    ['team-?', 'team-', false],
    ['team-?', 'team-ab', false],
    ['*', '', true],
    ['*-test-*', 'a-test-b', true],
    ['*-test-*', 'a-test', false],
    ['a*b*c', 'a--b--c', true],
    ['a*b*c', 'abc', true],
    ['a*b*c', 'acb', false],
    ['*a', 'ba', true],
    ['??', 'ab', true],
    ['a.c', 'abc', false],
    ['[ab]*', 'a', false],
    ['TEAM', 'team', false],
  ])('%s fits %j: %j', (pattern, name, fits) => expect(wildcard(pattern)(name)).toBe(fits))

  it('fits what the plain reference fits', () =>
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b', '*', '?', '.', '-'), maxLength: 8 }),
        fc.string({ unit: fc.constantFrom('a', 'b', '.', '-'), maxLength: 10 }),
        (pattern, name) => {
          expect(wildcard(pattern)(name)).toBe(plainly(pattern).test(name))
        },
      ),
      { numRuns: 3000 },
    ))

  it('made to explode answers at once', () => {
    const since = process.cpuUsage()
    const matches = wildcard(`${'*a'.repeat(120)}*b`)
    for (let i = 0; i < 1000; i++) expect(matches('a'.repeat(253))).toBe(false)
    expect(wildcard('*a*a*a*a*a*a*b')('a'.repeat(100_000))).toBe(false)
    expect(cpuMs(since)).toBeLessThan(2000)
  })

  it('that excludes wins, and no includes mean all', () =>
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'b', 'a*', '*', '?b'), { maxLength: 3 }),
        fc.array(fc.constantFrom('a', 'b', 'a*', '?'), { maxLength: 3 }),
        fc.constantFrom('a', 'b', 'ab', 'bb', 'c'),
        (include, exclude, name) => {
          const { wants, exact, wantsAll } = chooseNamespaces(include, exclude)
          const any = (patterns: readonly string[]) => patterns.some((pattern) => plainly(pattern).test(name))
          const isWanted = !any(exclude) && (include.length === 0 || any(include))
          expect(wants(name)).toBe(isWanted)
          if (exact) expect(exact.includes(name)).toBe(isWanted)
          if (wantsAll) expect(isWanted).toBe(true)
        },
      ),
    ))
})
