import { describe, expect, it } from 'vitest'
import { cpuMs } from '../../../../test/cpu.ts'
import { compilePattern, matchesPattern } from './pattern.ts'

const compiled = (pattern: string): RegExp => {
  const expression = compilePattern(pattern)
  if (expression instanceof Error) throw expression
  return expression
}

describe('matchesPattern', () => {
  it.each([
    ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$', 'clusterconnections.clusterpulse.io', true],
    [
      '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
      'clusterconnections..clusterpulse.io',
      false,
    ],
    ['^https?://', 'https://west.example.com:6443', true],
    ['^[a-z]*$', 'A', false],
  ])('answers %s of %s', (pattern, text, answer) => {
    expect(matchesPattern(compiled(pattern), text)).toBe(answer)
  })

  it.each([
    '^(a+)+$',
    '^(a|a)*$',
    '^(a*){2,}$',
    '^(a*){30}$',
    `^${'a?'.repeat(40)}${'a'.repeat(40)}$`,
    '^a*a*a*a*a*a*a*a*$',
  ])('gives up on %s instead of standing still for ever', (pattern) => {
    const startedAt = process.cpuUsage()
    const text = `${'a'.repeat(pattern.includes('(') ? 60 : 3000)}!`
    expect(matchesPattern(compiled(pattern), text)).toBeUndefined()
    expect(cpuMs(startedAt)).toBeLessThan(2_000)
    expect(matchesPattern(compiled(pattern), 'a'.repeat(60))).toBe(true)
  })
})
