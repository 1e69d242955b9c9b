import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { restAfterDocumentsMs, restAfterMs } from './pace.ts'

describe('restAfterMs', () => {
  it('lets a change be seen at once while little happens, and documents soon', () => {
    expect(restAfterMs(0)).toBe(0)
    expect(restAfterDocumentsMs(0)).toBe(100)
  })

  it.each([restAfterMs, restAfterDocumentsMs])(
    'leaves writing a third of the time, until the rest would be too long to wait for',
    (restAfter) => {
      fc.assert(
        fc.property(fc.nat(100_000), (took) => {
          const rest = restAfter(took)
          expect(rest).toBeLessThanOrEqual(2_000)
          expect(rest >= 2 * took || rest === 2_000).toBe(true)
        }),
      )
    },
  )
})
