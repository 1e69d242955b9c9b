import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { boundClaims, CLAIMS, claimsByName } from './claims.ts'

describe('the claims of a cluster', () => {
  const anyClaims = fc.dictionary(
    fc.oneof(fc.constantFrom<string>(...Object.values(CLAIMS)), fc.string({ maxLength: 300 })),
    fc.string({ maxLength: 1100 }),
    { maxKeys: 60 },
  )

  it('are those with reserved names first, then at most twenty others by name, and bounding twice changes nothing', () =>
    fc.assert(
      fc.property(anyClaims, (claims) => {
        const bound = boundClaims(claims)
        const names = bound.map(({ name }) => name)
        const reserved = Object.values(CLAIMS).filter((name) => claims[name] && claims[name].length <= 1024)
        expect(names.slice(0, reserved.length)).toEqual(reserved)
        const others = names.slice(reserved.length)
        expect(others.length).toBeLessThanOrEqual(20)
        expect(others).toEqual(others.toSorted((a, b) => (a < b ? -1 : 1)))
        expect(bound.every(({ name, value }) => value === claims[name] && value !== '')).toBe(true)
        expect(boundClaims(claimsByName(bound))).toEqual(bound)
      }),
    ))
})
