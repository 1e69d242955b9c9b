import { describe, expect, it } from 'vitest'
import { lookAgainMs } from './look-pace.ts'

const longest = (family: 'database' | 'event' | 'snapshot', failures: number, isPassing: boolean) =>
  lookAgainMs({ family, failures, isPassing }, () => 1) / 1000

describe('a sink is looked at again', () => {
  it.each(['database', 'event'] as const)('within five seconds, however long a %s is away', (family) => {
    for (const failures of [1, 2, 5, 1000]) expect(longest(family, failures, true)).toBe(5)
  })

  it('ever later where somebody has to change something, or a look costs as much as a write', () => {
    for (const [family, isPassing] of [
      ['database', false],
      ['event', false],
      ['snapshot', false],
      ['snapshot', true],
    ] as const)
      expect([1, 2, 3, 1000].map((failures) => longest(family, failures, isPassing))).toEqual([10, 15, 25, 155])
  })

  it('each hour where it answered', () => {
    expect(longest('database', 0, false)).toBe(3600)
  })
})
