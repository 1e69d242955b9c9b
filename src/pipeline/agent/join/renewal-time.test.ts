import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TestAuthority } from '../../ingest/stream/test/certificates.ts'
import { lifeOf, renewalTime } from './renewal-time.ts'

describe('the time of renewal', () => {
  it('is where between a third and a quarter of the life is left, anywhere in between', async () => {
    const authority = await TestAuthority.make('test')
    const { cert } = await authority.sign('west', 'client')
    const { from, to } = lifeOf(cert)
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (random) => {
        const left = (to - renewalTime(cert, random)) / (to - from)
        expect(left).toBeGreaterThanOrEqual(0.25 - 1e-9)
        expect(left).toBeLessThanOrEqual(0.33 + 1e-9)
      }),
    )
    expect(renewalTime(cert, 0)).toBeGreaterThan(renewalTime(cert, 1))
  })
})
