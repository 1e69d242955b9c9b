import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { digestOf, type Sealed, sealFault, sealText } from './seal.ts'

const documents = fc.uniqueArray(fc.tuple(fc.string(), fc.string()), { selector: ([name]) => name, maxLength: 6 })

describe('the seal of a set of documents', () => {
  it('holds for the very same documents in any order, and for no others', () => {
    fc.assert(
      fc.property(documents, documents, (one, other) => {
        const texts = (list: readonly Sealed[]) => list.map((pair) => JSON.stringify(pair)).sort()
        const isSame = JSON.stringify(texts(one)) === JSON.stringify(texts(other))
        expect(digestOf([...one].reverse())).toBe(digestOf(one))
        const seal = sealText('7', one.length, digestOf(one))
        const fault = sealFault(seal, { generation: '7', count: other.length, digest: digestOf(other) })
        expect(fault === undefined).toBe(isSame)
      }),
    )
  })

  it.each([
    [undefined, 'is missing'],
    ['6 2 x', 'an older version'],
    ['7 3 x', '3 were written, 2 are listed'],
    ['7 2 y', 'one of them is another'],
  ])('says of %j what is wrong', (seal, said) => {
    expect(sealFault(seal, { generation: '7', count: 2, digest: 'x' })).toContain(said)
  })
})
