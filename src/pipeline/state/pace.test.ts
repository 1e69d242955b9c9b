import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { restAfterMs } from './pace.ts'

describe('restAfterMs', () => {
  it('lets a change be seen soon while little happens', () => expect(restAfterMs(0)).toBe(100))

  it('leaves writing a third of the time, until the rest would be too long to wait for', () => {
    fc.assert(
      fc.property(fc.nat(100_000), (took) => {
        const rest = restAfterMs(took)
        expect(rest).toBeLessThanOrEqual(2_000)
        expect(rest >= 2 * took || rest === 2_000).toBe(true)
      }),
    )
  })
})
