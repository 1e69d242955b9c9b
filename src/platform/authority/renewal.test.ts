import fc from 'fast-check'
import { expect, it } from 'vitest'
import { renewalTime } from './index.ts'

it('a certificate is renewed with between 33 and 25 per cent of its life left, at a point that chance decides', () =>
  fc.assert(
    fc.property(
      fc.integer({ min: 600, max: 400 * 86_400 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (lifeS, random) => {
        const span = { notBeforeMs: 1_000_000, notAfterMs: 1_000_000 + lifeS * 1000 }
        const left = (span.notAfterMs - renewalTime(span, random)) / (lifeS * 1000)
        expect(left).toBeGreaterThan(0.2499)
        expect(left).toBeLessThan(0.3301)
      },
    ),
  ))
