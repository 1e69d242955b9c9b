import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { sameJson } from './json.ts'

describe('sameJson', () => {
  it('agrees with comparing sorted text', () => {
    const sortedText = (value: unknown): string =>
      JSON.stringify(value, (_, v: unknown) =>
        v && typeof v === 'object' && !Array.isArray(v)
          ? Object.fromEntries(Object.entries(v).sort(([x], [y]) => (x < y ? -1 : 1)))
          : v,
      )
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), (a, b) => {
        expect(sameJson(a, JSON.parse(JSON.stringify(a)))).toBe(true)
        expect(sameJson(a, b)).toBe(sortedText(a) === sortedText(b))
      }),
    )
  })

  it('does not take what every object inherits for a member', () => {
    const inherited = ['__proto__', 'constructor', 'toString', 'valueOf']
    for (const name of inherited)
      for (const value of ['{}', 'null', '1']) {
        const [a, b] = [JSON.parse(`{"${name}": ${value}}`), { other: 1 }]
        expect(sameJson(a, b)).toBe(false)
        expect(sameJson(b, a)).toBe(false)
        expect(sameJson(a, JSON.parse(JSON.stringify(a)))).toBe(true)
      }
  })

  it('tells a member without a value from one that is not there', () => {
    expect(sameJson({ a: undefined }, { b: undefined })).toBe(false)
    expect(sameJson({ a: undefined, b: 1 }, { b: 1 })).toBe(false)
    expect(sameJson({ b: 1 }, { a: undefined, b: 1 })).toBe(false)
  })
})
