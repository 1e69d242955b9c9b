import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { JoinedTexts, joinedTexts } from './texts.ts'

const text = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('', '\n', 'a\nb'))

describe('texts of a chunk', () => {
  it('gives every text, the empty one, and null as they were, by row and one after the other', () => {
    fc.assert(
      fc.property(fc.array(fc.option(text), { minLength: 32, maxLength: 512 }), (values) => {
        const joined = joinedTexts(values)
        expect(joined).toBeInstanceOf(JoinedTexts)
        expect(joined).toHaveLength(values.length)
        expect([...joined]).toEqual(values)
        expect(values.map((_, row) => joined.at(row))).toEqual(values)
      }),
    )
  })

  it.each<readonly [string, readonly unknown[]]>([
    ['few', ['a', 'b']],
    ['large', new Array(40).fill('x'.repeat(2 ** 14))],
    ['not all texts', [...new Array(40).fill('a'), 1]],
  ])('keeps values that are %s as they are', (_, values) => expect(joinedTexts(values)).toBe(values))

  it('has places for more characters than a small number tells', () => {
    const values = Array.from({ length: 512 }, (_, i) => `${i}`.padStart(127, 'x'))
    expect([...joinedTexts(values)]).toEqual(values)
    expect(joinedTexts(values)).toMatchObject({ starts: expect.any(Uint32Array) })
  })
})
