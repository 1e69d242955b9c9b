import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../../test/cpu.ts'
import { compilePattern, type Pattern } from './pattern.ts'

const compiled = (pattern: string): Pattern => {
  const expression = compilePattern(pattern)
  if (expression instanceof Error) throw expression
  return expression
}

describe('a pattern', () => {
  it.each([
    ['(?i)^abc$', 'ABC', true],
    ['^[[:alpha:]]+$', 'abc', true],
    ['^[[:^alpha:]]+$', '123', true],
    ['\\Aabc\\z', 'xabc', false],
    ['^(?P<first>a)b$', 'ab', true],
    ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', 'a-', false],
    ['^\\_$', '_', true],
    ['^.$', '\u{1F600}', true],
    ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$', 'clusterconnections.clusterpulse.io', true],
    [
      '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
      'clusterconnections..clusterpulse.io',
      false,
    ],
    ['^https?://', 'https://west.example.com:6443', true],
    ['^[a-z]*$', 'A', false],
  ])('%s reads %s as Kubernetes does', (pattern, text, answer) => {
    expect(compiled(pattern).test(text)).toBe(answer)
  })

  it.each([
    ['([', 'error parsing regexp: missing closing ]: `[`'],
    ['(?=a)', 'error parsing regexp: invalid or unsupported Perl syntax: `(?=`'],
    ['(a)\\1', 'error parsing regexp: invalid escape sequence: `\\1`'],
    ['a{1001}', 'error parsing regexp: invalid repeat count: `{1001}`'],
  ])('%s is refused in the words of Kubernetes', (pattern, message) => {
    expect(compilePattern(pattern)).toMatchObject({ message })
  })

  it.each(['^(a+)+$', '^(a|a)*$', '^(a*){2,}$', '^(a*){30}$', '^(a?){40}a{40}$', '^a*a*a*a*a*a*a*a*$'])(
    '%s is answered in time linear in a text made for it',
    (pattern) => {
      const startedAt = process.cpuUsage()
      expect(compiled(pattern).test(`${'a'.repeat(20_000)}!`)).toBe(false)
      expect(cpuMs(startedAt)).toBeLessThan(2_000)
      expect(compiled(pattern).test('a'.repeat(60))).toBe(true)
    },
  )
})
